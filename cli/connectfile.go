package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/connect"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/spell"
)

func (a *App) writeClient(ctx context.Context, c connect.Client, o *connecting) error {
	if a.JSON && !o.yes && !o.dryRun {
		return Usagef("--json asks nothing; add --yes to write, or --dry-run to look")
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
	if !a.JSON {
		a.showChange(file, change, o)
	}
	if change.Action != connect.Unchanged && !o.dryRun {
		if err := o.agreed(ctx); err != nil {
			return err
		}
		if out.Backup, err = file.Write(change.After, target.Mode, time.Now()); err != nil {
			return err
		}
		if change.After == nil {
			if err := target.Tidy(); err != nil {
				return err
			}
		}
	}
	if a.JSON {
		return PrintJSON(out)
	}
	sayConnected(c, o, agent, file, change, out)
	return nil
}

func targetOf(c connect.Client, o *connecting) (connect.Target, error) {
	if c.Name == "codex" {
		return connect.Codex()
	}
	if !slices.Contains(connect.Scopes, o.scope) {
		return connect.Target{}, Usagef("--scope %q: write %s%s", o.scope, strings.Join(connect.Scopes, ", "), spell.Hint(o.scope, connect.Scopes))
	}
	dir, err := os.Getwd()
	if err != nil {
		return connect.Target{}, err
	}
	return connect.ClaudeCode(o.scope, dir)
}

func (a *App) connectChange(target connect.Target, file *connect.File, o *connecting) (change connect.Change, agent string, err error) {
	cfg, agent, err := a.agentFor(o)
	if err != nil {
		return change, "", err
	}
	var server connect.Server
	if o.http {
		server.URL, err = MCPURL(cfg)
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

// agreed asks whether to write, or takes --yes for it.
func (o *connecting) agreed(ctx context.Context) error {
	if o.yes {
		return nil
	}
	if !IsTerminal(os.Stdin) {
		return Usagef("there is no terminal to ask on, and nothing was written; add --yes to write, or --dry-run to look")
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
