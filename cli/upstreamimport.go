package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/wire"
)

// importing is what the flags of import say.
type importing struct {
	serverFlags
	yes, dryRun bool
}

func (a *App) upstreamImport() *cobra.Command {
	var o importing
	c := &cobra.Command{
		Use: "import FILE [NAME…]", Short: "Put the servers of an MCP client's file behind the gateway",
		Long: `Put the servers that an MCP client knows behind the gateway: all in its file, or those
that are named. FILE is a client's JSON with mcpServers (Claude Code, Claude Desktop,
Cursor and others) or servers (VS Code); - is standard input. What would be written is
shown first, without secrets; all is added or nothing. The client's file stays as it
is: take the servers out there, and 'writ connect' has the client use writ instead.

A program runs in a box that reaches the system's programs, itself, the directory of its
script and the one it starts in, and no network. What else one server needs, and values
that are better kept by 'writ secret set', are said with the flags of add, for one that is
named. The exit code is 1 if one is written and does not come up.`,
		Example: `  writ upstream import ~/.cursor/mcp.json
  writ upstream import .vscode/mcp.json github --dry-run
  writ upstream import ~/.cursor/mcp.json notes --write ~/notes --secret-env NOTES_KEY=store:notes
  writ upstream import ~/.claude.json --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return Usagef("expected a client's file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.JSON && !o.yes && !o.dryRun {
				return Usagef("--json asks nothing; add --yes to write, or --dry-run to look")
			}
			return a.importServers(cmd, args[0], args[1:], &o)
		},
	}
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.serverFlags(c, &o.serverFlags)
	c.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be written")
	return c
}

func (a *App) importServers(cmd *cobra.Command, file string, names []string, o *importing) error {
	ctx := cmd.Context()
	text, err := readClientFile(file)
	if err != nil {
		return err
	}
	entries, err := clientServers(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if entries, err = wantedOf(entries, names); err != nil {
		return err
	}
	plans, notes, err := plansOf(entries, o.changes(cmd))
	if !a.JSON || err != nil {
		for _, n := range notes {
			fmt.Fprintln(os.Stderr, "note:", Visible(n))
		}
	}
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return errors.New("there is nothing to import; nothing was written")
	}
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	cfg, err := checked(path, plans)
	if err != nil {
		return err
	}
	if !a.JSON {
		for _, p := range plans {
			fmt.Printf("+++ %s\n%s\n", config.ServerPath(path, p.name), Visible(string(p.server.Shown().Text())))
		}
	}
	if o.dryRun {
		foretell(plans)
		return a.dryImport(path, plans, notes)
	}
	if err := a.warned(ctx, cfg, plans, true); err != nil { // whether to go on is asked next
		return err
	}
	if err := agreed(ctx, o.yes, "Write it?", "nothing was written"); err != nil {
		return err
	}
	if err := writeServers(path, plans); err != nil {
		return err
	}
	return a.taken(ctx, path, cfg, plans, "added")
}

// changes puts what the flags say onto an entry; nil: they say nothing.
func (o *importing) changes(cmd *cobra.Command) func(*config.Upstream) error {
	if anyChanged(cmd, slices.Concat(boxFlags, webFlags, ruleFlags)...) == "" {
		return nil
	}
	return func(u *config.Upstream) error { return o.onto(cmd, u) }
}

func (a *App) dryImport(path string, plans []planned, notes []string) error {
	type row struct {
		Name string `json:"name"`
		File string `json:"file"`
		Text string `json:"text"`
	}
	var rows []row
	for _, p := range plans {
		for _, n := range p.notes {
			notes = append(notes, p.name+": "+n)
		}
		rows = append(rows, row{p.name, config.ServerPath(path, p.name), string(p.server.Shown().Text())})
	}
	return a.Tell("nothing was written (--dry-run)", map[string]any{"dry_run": true, "servers": rows, "notes": notes})
}

func readClientFile(file string) ([]byte, error) {
	in := os.Stdin
	if file != "-" {
		// Before it is opened: opening a pipe that nobody writes to waits for ever.
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a file; name a client's JSON file", file)
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, wire.MaxBytes+1)) // one byte too many is refused when it is read
}

// wantedOf are the entries that are named, as the client or as writ names them; all
// where none is.
func wantedOf(entries []clientEntry, names []string) ([]clientEntry, error) {
	if len(names) == 0 {
		return entries, nil
	}
	var out []clientEntry
	for _, n := range names {
		i := slices.IndexFunc(entries, func(e clientEntry) bool { return e.name == n })
		if i < 0 {
			i = slices.IndexFunc(entries, func(e clientEntry) bool { return serverNameOf(e.name) == n })
		}
		if i < 0 {
			var known []string
			for _, e := range entries {
				known = append(known, e.name)
			}
			return nil, fmt.Errorf("the file has no server %q%s; it has %s", n, spell.Hint(n, known), strings.Join(known, ", "))
		}
		out = append(out, entries[i])
	}
	return out, nil
}

// plansOf makes servers of entries, and says what is not taken over as it was. All that
// cannot be taken over comes at once.
func plansOf(entries []clientEntry, change func(*config.Upstream) error) (plans []planned, notes []string, err error) {
	if change != nil && len(entries) != 1 {
		return nil, nil, Usagef("what the flags say is for one server, and there are %d; name one after the file", len(entries))
	}
	var errs []error
	from := map[string]string{}
	for _, e := range entries {
		u, skip, err := e.server()
		name := serverNameOf(e.name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
			continue
		case skip != "":
			notes = append(notes, fmt.Sprintf("%s is left out: %s", e.name, skip))
			continue
		case name == "":
			errs = append(errs, fmt.Errorf("%q has no letter or digit to make a name of; use 'writ upstream add'", e.name))
			continue
		case from[name] != "":
			errs = append(errs, fmt.Errorf("%s and %s would both be named %s; import one of them by its name, and the other with 'writ upstream add'", from[name], e.name, name))
			continue
		case name != e.name:
			notes = append(notes, fmt.Sprintf("%s is named %s here", e.name, name))
		}
		if change != nil {
			if err := change(&u); err != nil {
				return nil, notes, err
			}
		}
		if err := references(u, u.Dir); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
			continue
		}
		from[name] = e.name
		plans = append(plans, planned{name, u, startable(&u)})
	}
	if len(errs) > 0 {
		return nil, notes, fmt.Errorf("nothing was written:\n%w", errors.Join(errs...))
	}
	return plans, notes, nil
}

// serverNameOf is a client's name for a server as one of writ's: lower case, - for what
// it may not hold. Empty where nothing is left.
func serverNameOf(name string) string {
	mapped := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	for strings.Contains(mapped, "__") {
		mapped = strings.ReplaceAll(mapped, "__", "_")
	}
	mapped = strings.Trim(mapped, "-_")
	if mapped == "builtin" || strings.HasPrefix(mapped, "writ") {
		mapped = "mcp-" + mapped
	}
	return strings.TrimRight(mapped[:min(len(mapped), 32)], "-_")
}
