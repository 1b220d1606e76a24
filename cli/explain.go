package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/host"
)

func (a *App) explainCommand() *cobra.Command {
	var agent, argsFlag, session, task string
	c := &cobra.Command{
		Use:   "explain TOOL [KEY=TEXT | KEY:=JSON]...",
		Short: "Say what would be decided about a call, and why",
		Long: `Decide a call without making it: every reason that spoke, with the line of the
configuration it came from, and all that the call would reach.
Exit code 3 when it would be denied, 4 when a person would be asked.`,
		Example: `  writ explain delete_file --agent coder path=old.txt
  writ explain shell_command --agent coder --args '{"command":"make","writable":["/srv/out"]}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if first(args) == "" {
				return Usagef("expected a tool's name; 'writ tool list' shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			args, err := callArgs(argsFlag, words[1:])
			if err != nil {
				return err
			}
			daemon, err := a.Connect(cmd.Context())
			if agent == "" {
				var only []string
				if err == nil {
					only = agentNames(cmd.Context(), daemon)
				}
				if len(only) != 1 {
					return Usagef("name the agent with --agent; 'writ agent list' shows them")
				}
				agent = only[0]
			}
			if err != nil {
				return err
			}
			x, err := daemon.Explain(cmd.Context(), client.ExplainRequest{Agent: agent, Tool: words[0], Args: args, Session: session, Task: cmp.Or(task, session)})
			if err != nil {
				return err
			}
			return errors.Join(a.showExplanation(x), effectCode(x.Effect))
		},
	}
	c.ValidArgsFunction = a.offer(toolNames)
	c.Flags().StringVar(&agent, "agent", "", "the agent that would call; not needed where there is but one")
	a.flagValues(c, "agent", agentNames)
	c.Flags().StringVar(&argsFlag, "args", "", "arguments as a JSON object; - reads them from standard input")
	c.Flags().StringVar(&session, "session", "", "the session whose counts are held against it")
	c.Flags().StringVar(&task, "task", "", "the task, by id (default: the session)")
	a.flagValues(c, "session", sessionIDs)
	a.flagValues(c, "task", openTasks)
	return c
}

func effectCode(effect string) error {
	switch effect {
	case "deny":
		return ExitCode(ExitDenied)
	case "ask":
		return ExitCode(ExitPending)
	}
	return nil
}

func (a *App) showExplanation(x client.Explanation) error {
	if a.JSON {
		return PrintJSON(x)
	}
	fmt.Printf("%s   (action %s, risk %s, class %s)\n\n", strings.ToUpper(x.Effect), x.Action, x.Risk, x.Class)
	showReasons(os.Stdout, x.Reasons)
	fmt.Println()
	showReach(os.Stdout, x.Confine)
	return nil
}

func showReasons(out io.Writer, reasons []writ.Reason) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range reasons {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.Effect, r.Source, OneLine(r.Text), r.Where)
	}
	w.Flush()
}

// showReach prints a confinement in full.
func showReach(out io.Writer, c writ.Confinement) {
	list := func(items []string) string {
		if len(items) == 0 {
			return "nothing"
		}
		return OneLine(strings.Join(items, ", "))
	}
	if c.Server != nil {
		fmt.Fprintf(out, "  server       %s\n  never        %s\n", OneLine(reachOf(c.Server)), list(c.Hide))
		return
	}
	if c.Exec.Mode != writ.ExecNone {
		listed := map[writ.ExecMode]string{writ.ExecListed: " as far as listed"}[c.Exec.Mode]
		fmt.Fprintf(out, "  can use      the system's programs%s, its libraries, a few files of /etc, a /tmp of its own\n", listed)
	}
	fmt.Fprintf(out, "  can read     %s\n  can write    %s\n  never        %s\n", list(c.Read), list(c.Write), list(c.Hide))
	if len(c.Named) > 0 {
		fmt.Fprintf(out, "  unprotected  %s\n", list(c.Named))
	}
	hosts := "no network"
	if c.Network.Mode != writ.NetworkNone {
		hosts = list(c.Network.Hosts)
		if c.Exec.Mode != writ.ExecNone && slices.ContainsFunc(slices.Concat(c.Network.Hosts, c.Network.Reads), isLoopback) {
			hosts += "; this machine's loopback by the proxy http://" + egress.ProxyAddress.String() + " alone"
		}
		if len(c.Network.Reads) > 0 {
			hosts += "; only to read: " + list(c.Network.Reads)
		}
	}
	programs := map[writ.ExecMode]string{writ.ExecNone: "nothing besides the tool itself", writ.ExecAny: "any program it can read"}[c.Exec.Mode]
	if c.Exec.Mode == writ.ExecListed {
		programs = fmt.Sprintf("%d listed files", len(c.Exec.Files))
	}
	fmt.Fprintf(out, "  can reach    %s\n  can execute  %s\n  isolation    %s\n", hosts, programs, c.Isolation)
	for _, s := range c.SSH {
		fmt.Fprintf(out, "  signs in     %s\n", OneLine(fmt.Sprintf("by ssh at %s as %s, by an agent outside, with the key %s", s.Host, s.User, s.Key)))
	}
	if n := c.Connection; n != nil {
		fmt.Fprintf(out, "  connection   %s\n", OneLine(fmt.Sprintf("%s: %s, auth: %s%s", n.Name, n.URL, n.Auth, inEnvironment(n.Environment))))
	}
	if c.Limits.Wall > 0 {
		fmt.Fprintf(out, "  time limit   %s\n", c.Limits.Wall)
	}
}

func isLoopback(text string) bool {
	p, err := host.ParsePattern(text)
	return err == nil && p.Loopback()
}

func inEnvironment(name string) string {
	if name == "" {
		return ""
	}
	return ", environment " + name
}

// reachOf is what a server that does the work of a call reaches.
func reachOf(s *writ.Server) string {
	switch {
	case s.Box:
		return fmt.Sprintf("%s: its box reads %s, writes %s, reaches %s", s.Name, reaches(s.Read, "the system's programs"), reaches(s.Write, "nothing"), reaches(s.Hosts, "no network"))
	case s.URL != "":
		return fmt.Sprintf("%s: goes to %s, which writ does not confine", s.Name, s.URL)
	}
	return s.Name + ": part of the program that writ is in, which it does not confine"
}
