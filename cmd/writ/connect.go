package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/connect"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/spell"
)

// connecting is what the flags of connect say.
type connecting struct {
	agent, scope                       string
	http, remove, replace, yes, dryRun bool
}

const connectLong = `Have an MCP client start writ as its server "writ". The files of Claude Code and
Codex are edited: what changes is shown first, everything else in the file stays as
it is, byte for byte, and the file as it was is kept beside it. For other clients it
prints what to paste, and where. Without a client it lists them.

--http has the client call the daemon over HTTP with the token in $WRIT_TOKEN, which
says who the agent is, instead of starting 'writ mcp'.

Scopes of Claude Code: user (every project of yours), project (.mcp.json here, for
everybody who works on it), local (you, in this project).`

func (a *app) connectCommand() *cobra.Command {
	var o connecting
	c := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Have an MCP client use writ: Claude Code, Codex and others", Long: connectLong,
		Example: `  writ connect                                  the clients there are
  writ connect claude-code
  writ connect claude-code --agent coder --scope project
  writ connect codex --dry-run                  only show what would change
  writ connect codex --remove                   take it out again
  writ connect cursor                           print what to paste`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("expected one client; 'writ connect' lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listClients(cmd)
			}
			return a.connectClient(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent that the client is (default: the only one)")
	f.StringVar(&o.scope, "scope", "user", "whose configuration of Claude Code: "+strings.Join(connect.Scopes, ", "))
	f.BoolVar(&o.http, "http", false, "call the daemon over HTTP, with the token in $WRIT_TOKEN")
	f.BoolVar(&o.remove, "remove", false, "take the entry out again")
	f.BoolVar(&o.replace, "replace", false, `also an entry "writ" that is not of this program`)
	f.BoolVar(&o.yes, "yes", false, "write without asking")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	c.ValidArgsFunction = a.offer(clientNames)
	a.flagWords(c, "scope", connect.Scopes)
	a.flagValues(c, "agent", func(context.Context, *client.Client) []string {
		if cfg, err := a.loadConfig(); err == nil {
			return configured(cfg)
		}
		return nil
	})
	return c
}

func clientNames(context.Context, *client.Client) []string {
	var out []string
	for _, c := range connect.Clients {
		out = append(out, c.Name+"\t"+c.Title)
	}
	return out
}

func configured(cfg *config.Config) []string {
	var out []string
	for _, g := range cfg.Agents {
		out = append(out, g.Name)
	}
	return out
}

func (a *app) listClients(cmd *cobra.Command) error {
	if anyChanged(cmd, "agent", "scope", "http", "remove", "replace", "yes", "dry-run") != "" {
		return usagef("expected a client; 'writ connect' alone lists them")
	}
	type row struct {
		Client string `json:"client"`
		Title  string `json:"title"`
		Writes bool   `json:"writes"`
		File   string `json:"file"`
	}
	var rows []row
	for _, c := range connect.Clients {
		rows = append(rows, row{c.Name, c.Title, !c.Printed(), c.File})
	}
	if a.json {
		return printJSON(rows)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENT\tNAME\tCONNECT\tFILE")
	for _, r := range rows {
		does := "prints"
		if r.Writes {
			does = "writes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Client, r.Title, does, r.File)
	}
	return w.Flush()
}

// anyChanged is the first of flags that was given, or "".
func anyChanged(cmd *cobra.Command, flags ...string) string {
	for _, f := range flags {
		if cmd.Flags().Changed(f) {
			return f
		}
	}
	return ""
}

func (a *app) connectClient(cmd *cobra.Command, name string, o *connecting) error {
	var known []string
	for _, c := range connect.Clients {
		if known = append(known, c.Name); c.Name != name {
			continue
		}
		if flag := anyChanged(cmd, "scope", "http", "remove", "replace", "yes", "dry-run"); c.Printed() && flag != "" {
			return usagef("--%s is for clients whose file is written; for %s it is printed what to paste", flag, c.Title)
		}
		if c.Printed() {
			return a.printClient(c, o)
		}
		if name != "claude-code" && cmd.Flags().Changed("scope") {
			return usagef("--scope is for claude-code; %s has one file", c.Title)
		}
		return a.writeClient(cmd.Context(), c, o)
	}
	return usagef("unknown client %q%s ('writ connect' lists them, and 'writ connect generic' is for any other)", name, spell.Hint(name, known))
}

func (a *app) printClient(c connect.Client, o *connecting) error {
	cfg, agent, err := a.agentFor(o)
	if err != nil {
		return err
	}
	server, err := a.stdioServer(cfg, agent)
	if err != nil {
		return err
	}
	server.URL, err = mcpURL(cfg)
	if err != nil {
		server.URL = "http://127.0.0.1:7323/mcp"
	}
	if a.json {
		return printJSON(map[string]string{"client": c.Name, "file": c.File, "stdio": c.Stdio(server), "http": c.HTTP(server), "note": c.Note})
	}
	fmt.Printf("%s: put this in %s\n\n%s\nOr, for a daemon that runs, over HTTP; 'writ agent token %s' makes the token:\n\n%s",
		c.Title, c.File, c.Stdio(server), agent, c.HTTP(server))
	if c.Note != "" {
		fmt.Printf("\n%s\n", c.Note)
	}
	return nil
}

// connected is the outcome for machines.
type connected struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Action string `json:"action"`
	Backup string `json:"backup"`
	DryRun bool   `json:"dry_run,omitempty"`
}

func (a *app) writeClient(ctx context.Context, c connect.Client, o *connecting) error {
	if a.json && !o.yes && !o.dryRun {
		return usagef("--json asks nothing; add --yes to write, or --dry-run to look")
	}
	target, err := targetOf(c, o)
	if err != nil {
		return err
	}
	file, err := connect.Read(target.File, target.Within)
	if err != nil {
		return err
	}
	var change connect.Change
	agent := ""
	if o.remove {
		change, err = connect.Disconnect(target.Language, file.Data, file.Backups(), o.replace)
	} else {
		change, agent, err = a.connectChange(target, file, o)
	}
	if err != nil {
		return a.cannotEdit(file, err, o)
	}
	out := connected{Client: c.Name, File: file.Path, Action: change.Action, DryRun: o.dryRun}
	if !a.json {
		a.showChange(file, change, o)
	}
	if change.Action != connect.Unchanged && !o.dryRun {
		if err := o.agreed(ctx); err != nil {
			return err
		}
		if out.Backup, err = file.Write(change.After, target.Mode, time.Now()); err != nil {
			return err
		}
	}
	if a.json {
		return printJSON(out)
	}
	sayConnected(c, o, agent, file, change, out)
	return nil
}

func targetOf(c connect.Client, o *connecting) (connect.Target, error) {
	if c.Name == "codex" {
		return connect.Codex()
	}
	if !slices.Contains(connect.Scopes, o.scope) {
		return connect.Target{}, usagef("--scope %q: write %s%s", o.scope, strings.Join(connect.Scopes, ", "), spell.Hint(o.scope, connect.Scopes))
	}
	dir, err := os.Getwd()
	if err != nil {
		return connect.Target{}, err
	}
	return connect.ClaudeCode(o.scope, dir)
}

func (a *app) connectChange(target connect.Target, file *connect.File, o *connecting) (change connect.Change, agent string, err error) {
	cfg, agent, err := a.agentFor(o)
	if err != nil {
		return change, "", err
	}
	var server connect.Server
	if o.http {
		server.URL, err = mcpURL(cfg)
	} else {
		server, err = a.stdioServer(cfg, agent)
	}
	if err != nil {
		return change, "", err
	}
	warnWhere(cfg, file.Path)
	change, err = connect.Connect(target.Language, file.Data, server, o.replace)
	return change, agent, err
}

// warnWhere says where an agent could change what the client is told to start.
func warnWhere(cfg *config.Config, file string) {
	if agent := inWorkspace(cfg, file); agent != "" && policy.WriteProtected(file) == "" {
		fmt.Fprintf(os.Stderr, "warning: %s lies in the workspace of agent %s, which can change it\n", file, agent)
	}
}

// inWorkspace is an agent in whose workspace a path lies, by its name or really.
func inWorkspace(cfg *config.Config, path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	for _, g := range cfg.Agents {
		if policy.Below(path, g.Workspace.Path) || err == nil && policy.Below(dir, g.Workspace.Path) {
			return g.Name
		}
	}
	return ""
}

// agentFor is the agent that the client is to be.
func (a *app) agentFor(o *connecting) (*config.Config, string, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, "", err
	}
	names := configured(cfg)
	switch {
	case len(names) == 0:
		return nil, "", fmt.Errorf("%s has no agents; add one below the key agents", cfg.Path)
	case o.agent == "" && len(names) > 1:
		return nil, "", usagef("there are several agents; name one with --agent: %s", strings.Join(names, ", "))
	case o.agent == "":
		return cfg, names[0], nil
	case !slices.Contains(names, o.agent):
		return nil, "", usagef("%s has no agent %q, but %s%s", cfg.Path, o.agent, strings.Join(names, ", "), spell.Hint(o.agent, names))
	}
	return cfg, o.agent, nil
}

// stdioServer is this program as a client starts it. A configuration that is not the
// default one is named: the client's environment is not this one.
func (a *app) stdioServer(cfg *config.Config, agent string) (connect.Server, error) {
	program, err := programPath(cfg)
	if err != nil {
		return connect.Server{}, err
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} {
		if policy.Below(program, dir) {
			fmt.Fprintf(os.Stderr, "warning: %s lies in a directory for temporary files and may be gone one day; install writ, then connect again\n", program)
			break
		}
	}
	args := []string{"mcp", "--agent", agent}
	if a.configFlag != "" || os.Getenv("WRIT_CONFIG") != "" {
		args = append(args, "--config", cfg.Path)
	}
	return connect.Server{Command: program, Args: args}, nil
}

// programPath is how this program was found, where that is the same file: what is
// behind a link of a package manager moves with every version. A link in a workspace is
// its agent's to move, and not taken.
func programPath(cfg *config.Config) (string, error) {
	me, err := os.Executable()
	if err != nil {
		return "", err
	}
	real, err := os.Stat(me)
	if err != nil {
		return "", fmt.Errorf("this program is not where it was started from any more: %w; install writ, then connect again", err)
	}
	found, _ := exec.LookPath("writ")
	for _, p := range []string{found, os.Args[0]} {
		abs, err := filepath.Abs(p)
		if err != nil || !strings.ContainsRune(p, filepath.Separator) || inWorkspace(cfg, abs) != "" {
			continue
		}
		if info, err := os.Stat(abs); err == nil && os.SameFile(info, real) {
			return abs, nil
		}
	}
	return me, nil
}

// mcpURL is where the daemon answers MCP clients.
func mcpURL(cfg *config.Config) (string, error) {
	at, err := netip.ParseAddrPort(cfg.File.Listen.Address)
	if err != nil || at.Port() == 0 {
		return "", fmt.Errorf("%s: listen is %s, which no client can be told; give it a port, such as 127.0.0.1:7323", cfg.Path, cfg.File.Listen.Address)
	}
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
	}
	scheme := "http"
	if cfg.File.Listen.Certificate != "" {
		scheme = "https"
	}
	return scheme + "://" + at.String() + "/mcp", nil
}

// cannotEdit names the file, and shows an entry that is somebody else's.
func (a *app) cannotEdit(file *connect.File, err error, o *connecting) error {
	var foreign *connect.Foreign
	var line *connect.BadLine
	switch {
	case errors.As(err, &foreign):
		if !a.json {
			fmt.Printf("%s has, from line %d:\n%s\n", file.Path, foreign.Line, visible(strings.TrimRight(foreign.Text, "\n")))
		}
		verb := "replaces"
		if o.remove {
			verb = "removes"
		}
		return fmt.Errorf("%s %w; nothing was changed; --replace %s it", file.Path, err, verb)
	case errors.As(err, &line):
		return fmt.Errorf("%s %w", file.Path, err)
	}
	return err
}

func (a *app) showChange(file *connect.File, change connect.Change, o *connecting) {
	if file.Link != "" {
		fmt.Printf("%s is a link to %s; that file is edited, and the link stays\n", file.Link, file.Path)
	}
	if change.Action == connect.Unchanged {
		return
	}
	from, to := file.Path, file.Path
	if file.Data == nil {
		from = "(no file)"
	}
	if change.After == nil {
		to = "(no file)"
	}
	fmt.Printf("--- %s\n+++ %s\n%s\n", from, to, visible(connect.Diff(file.Data, change.After)))
	if o.scope == "project" && !o.remove {
		fmt.Println(".mcp.json is a protected name: nothing that runs in a box can change it. Whatever runs outside\none can, so Claude Code asks each person before it starts what a project names.")
	}
}

// agreed asks whether to write, or takes --yes for it.
func (o *connecting) agreed(ctx context.Context) error {
	if o.yes {
		return nil
	}
	if !isTerminal(os.Stdin) {
		return usagef("there is no terminal to ask on, and nothing was written; add --yes to write, or --dry-run to look")
	}
	fmt.Fprint(os.Stderr, "Write it? [Y/n] ")
	said := make(chan string, 1)
	go func() { // reading a terminal cannot be called off; Ctrl-C ends the program
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			line = "n"
		}
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-said:
		if answer == "" || answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
	}
	return errors.New("nothing was written")
}

func sayConnected(c connect.Client, o *connecting, agent string, file *connect.File, change connect.Change, out connected) {
	undo := "writ connect " + c.Name
	if o.scope != "user" {
		undo += " --scope " + o.scope
	}
	switch {
	case change.Action == connect.Unchanged && o.remove:
		fmt.Printf("not connected: %s has no entry %q\n", file.Path, connect.Name)
	case change.Action == connect.Unchanged:
		fmt.Printf("already connected: %s\n", file.Path)
		if len(change.Was.Also) > 0 {
			fmt.Printf("its entry also has: %s\n", oneLine(strings.Join(change.Was.Also, ", ")))
		}
	case o.dryRun:
		fmt.Println("nothing was written (--dry-run)")
	case o.remove:
		fmt.Printf("disconnected: %s does not start writ any more\n", c.Title)
	case o.http:
		fmt.Printf("connected: %s calls writ over HTTP\nIt needs a token: 'writ agent token %s' makes one; export WRIT_TOKEN where the client starts.\n", c.Title, agent)
	default:
		fmt.Printf("connected: %s starts writ as agent %s\n", c.Title, agent)
	}
	if out.Backup != "" {
		fmt.Printf("backup: %s\n", out.Backup)
	}
	if change.Action != connect.Unchanged && !o.dryRun && !o.remove {
		fmt.Printf("undo: %s --remove\n", undo)
	}
}
