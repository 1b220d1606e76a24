// Package cli is the command line: what people type, as far as it needs no engine. A
// program adds what does (cmd/writd), or hands over to one (cmd/writ).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/spell"
)

// Exit codes, as the help says.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitUsage   = 2
	ExitDenied  = 3
	ExitPending = 4
)

// Program is what a program has of the command line besides what every one has.
type Program struct {
	Commands func(*App) map[string]func() *cobra.Command
	Store    *Store // nil: it has neither, and hands over
}

// Store is what some commands do with the store themselves, while no daemon has it. Where
// one has, or another program does, the error is store.ErrLocked.
type Store struct {
	// Recover sets the passphrase of a person, which is asked for when the store is open.
	Recover func(ctx context.Context, config, name string, choose func() (string, error)) error
	// Unconfined lends the ledger, for commands that run with nothing around them.
	Unconfined func(ctx context.Context, config string, record func(UnconfinedRecord) error) error
}

// Main runs the command line of this process, and ends it.
func Main(p Program) {
	args := os.Args[1:]
	if p.Store == nil && !here(args) {
		fmt.Fprintln(os.Stderr, "writ: "+handOver().Error())
		os.Exit(ExitError)
	}
	ahead := beginAhead(args)
	collectLater()
	log.SetOutput(io.Discard) // net/http tells it what strangers say: they would write on our terminal
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, p, args, ahead)
	if interrupted { // whoever began this one wants to know, shells in the middle of a loop
		signal.Reset(os.Interrupt)
		if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(os.Interrupt) == nil {
			time.Sleep(time.Second)
		}
	}
	os.Exit(code)
}

// interrupted says that Ctrl-C has ended the command that this program ran.
var interrupted bool

// collectLater lets a command that is soon over end without collecting its garbage: that
// would take a part of its time, and all of it goes with the process.
func collectLater() {
	usual := debug.SetGCPercent(800)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(usual) })
}

func run(ctx context.Context, p Program, args []string, ahead *native.Ahead) int {
	root := newRoot(p, args, ahead)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var quiet ExitCode
	if errors.As(err, &quiet) {
		return int(quiet)
	}
	var usage usageError
	wrong := errors.As(err, &usage)
	code := codeOf(err)
	if wrong {
		code = ExitUsage
	}
	if asJSON, _ := root.PersistentFlags().GetBool("json"); asJSON && PrintJSON(asProblem(err, wrong)) == nil {
		return code
	}
	fmt.Fprintln(os.Stderr, "writ: "+Visible(message(err)))
	if wrong {
		fmt.Fprintf(os.Stderr, "Run '%s --help' for how it is used.\n", cmd.CommandPath())
	}
	return code
}

// asProblem is an error as --json shows it: the daemon's own, or one in that form.
func asProblem(err error, usage bool) any {
	var p *client.Problem
	if errors.As(err, &p) {
		return p
	}
	kind := writ.KindOf(err)
	if usage {
		kind = writ.Invalid
	}
	return struct {
		Type   string    `json:"type"`
		Detail string    `json:"detail"`
		Kind   writ.Kind `json:"kind"`
	}{"urn:writ:problem:" + string(kind), message(err), kind}
}

// ExitCode ends the program without another message.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

type usageError struct{ error }

func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func message(err error) string {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Detail
	}
	return err.Error()
}

func codeOf(err error) int {
	kind := writ.KindOf(err)
	var p *client.Problem
	if errors.As(err, &p) {
		kind = p.Kind
	}
	switch kind {
	case writ.Denied, writ.Rejected, writ.Expired, writ.Stopped, writ.Cancelled:
		return ExitDenied
	case writ.Pending:
		return ExitPending
	}
	return ExitError
}

// App is what every command shares.
type App struct {
	ConfigFlag string
	JSON       bool
	store      *Store
	leaving    client.Egress // the last that was shown of the egress log
	ahead      *native.Ahead // a sandbox that is being begun; nil: none
}

func newRoot(p Program, args []string, ahead *native.Ahead) *cobra.Command {
	a := &App{ahead: ahead, store: p.Store}
	root := &cobra.Command{
		Use:   "writ",
		Short: "A gate between AI agents and the tools they call",
		Long: `writ stands between AI agents and the tools they call. One gate decides every
call, asks a person where a person must be asked, writes down what is about to
happen, and only then lets the tool run, in a sandbox that can reach exactly
what was decided.

Exit codes: 0 ok, 1 error, 2 usage, 3 denied, 4 needs approval.`,
		Example: `  writ init                              set up: configuration, yourself, an agent's token
  writ call read_file path=README.md     call a tool as the agent of $WRIT_TOKEN
  writ approval list                     see what waits for you
  writ explain delete_file --agent coder --args '{"path":"x"}'
  writ ledger verify                     check the record of everything`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usagef("unknown command %q%s", args[0], spell.Hint(args[0], names(cmd)))
			}
			return nil
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       writ.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&a.ConfigFlag, "config", "", "configuration file (default $WRIT_CONFIG, else writ/writ.yaml in your configuration directory)")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(flagError)
	all := a.commands()
	if p.Commands != nil {
		maps.Copy(all, p.Commands(a))
	}
	if len(args) > 0 && all[args[0]] != nil { // no other, since to make them takes a while
		root.AddCommand(all[args[0]]())
		return root
	}
	for _, make := range all {
		root.AddCommand(make())
	}
	if len(args) > 0 && args[0] == "completion" {
		root.InitDefaultCompletionCmd(args...)
		if c, _, err := root.Find(args[:1]); err == nil {
			c.Args, c.RunE = Noun("", "", "").Args, Noun("", "", "").RunE
		}
	}
	return root
}

// commands are those that every program has, by name.
func (a *App) commands() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"agent":      a.agentCommand,
		"approval":   a.approvalCommand,
		"batch":      a.batchCommand,
		"call":       a.callCommand,
		"config":     a.configCommand,
		"connect":    a.connectCommand,
		"connection": a.connectionCommand,
		"egress":     a.egressCommand,
		"explain":    a.explainCommand,
		"invocation": a.invocationCommand,
		"ledger":     a.ledgerCommand,
		"mcp":        a.mcpCommand,
		"person":     a.personCommand,
		"run":        a.runCommand,
		"sandbox":    a.sandboxCommand,
		"secret":     a.secretCommand,
		"session":    a.sessionCommand,
		"shell":      a.shellCommand,
		"stop":       a.stopCommand,
		"task":       a.taskCommand,
		"tool":       a.toolCommand,
		"upstream":   a.upstreamCommand,
		"webhook":    a.webhookCommand,
	}
}

// listedFlag is a flag in the list that the help has.
var listedFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)`) })

// flagError says which flag was probably meant by one that is not there.
func flagError(c *cobra.Command, err error) error {
	got, unknown := strings.CutPrefix(err.Error(), "unknown flag: ")
	if !unknown {
		return usageError{err}
	}
	var known []string
	for _, m := range listedFlag().FindAllStringSubmatch(c.Flags().FlagUsages(), -1) {
		known = append(known, m[1])
	}
	return usageError{fmt.Errorf("%w%s", err, spell.Hint(got, known))}
}

// Exactly is cobra.ExactArgs with an error that counts as usage. An empty argument is
// none: it comes from a variable that is not set.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n || slices.Contains(args, "") {
			return Usagef("expected %s", what)
		}
		return nil
	}
}

// Noun is a command that only groups verbs.
func Noun(use, short, example string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usagef("unknown verb %q%s", args[0], spell.Hint(args[0], names(cmd)))
		}
		return nil
	}, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	c.AddCommand(verbs...)
	return c
}

// names are the names of the commands below one, for suggestions.
func names(c *cobra.Command) []string {
	var out []string
	for _, sub := range c.Commands() {
		out = append(out, sub.Name())
	}
	return out
}
