package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/writ-run/writ/connect"
)

// printClient shows what to paste: both ways, or that over HTTP alone.
func (a *App) printClient(c connect.Client, o *connecting) error {
	cfg, agent, err := a.agentFor(o)
	if err != nil {
		return err
	}
	server, err := a.stdioServer(cfg, agent)
	if err != nil {
		return err
	}
	server.URL, err = MCPURL(cfg)
	switch {
	case err != nil && o.http:
		return err
	case err != nil:
		server.URL = "http://127.0.0.1:7323/mcp"
	}
	if a.JSON {
		out := map[string]string{"client": c.Name, "file": c.File, "http": c.HTTP(server), "note": c.Note}
		if !o.http {
			out["stdio"] = c.Stdio(server)
		}
		return PrintJSON(out)
	}
	fmt.Printf("%s: put this in %s\n\n", c.Title, c.File)
	if !o.http {
		fmt.Printf("%s\nOr, for a daemon that runs, over HTTP; 'writ agent token %s' makes the token:\n\n", c.Stdio(server), agent)
	}
	fmt.Print(c.HTTP(server))
	if o.http {
		fmt.Printf("\n'writ agent token %s' makes the token, for a daemon that runs.\n", agent)
	}
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

func (a *App) showChange(file *connect.File, change connect.Change, o *connecting) {
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
	fmt.Printf("--- %s\n+++ %s\n%s\n", from, to, Visible(connect.Diff(file.Data, change.After)))
	if o.scope == "project" && !o.remove {
		fmt.Println(".mcp.json is a protected name: nothing that runs in a box can change it. Whatever runs outside\none can, so Claude Code asks each person before it starts what a project names.")
	}
}

// cannotEdit names the file, and shows an entry that is somebody else's.
func (a *App) cannotEdit(file *connect.File, err error, o *connecting) error {
	var foreign *connect.Foreign
	var line *connect.BadLine
	switch {
	case errors.As(err, &foreign):
		if !a.JSON {
			fmt.Printf("%s has, from line %d:\n%s\n", file.Path, foreign.Line, Visible(strings.TrimRight(foreign.Text, "\n")))
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
			fmt.Printf("its entry also has: %s\n", OneLine(strings.Join(change.Was.Also, ", ")))
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
