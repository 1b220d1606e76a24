package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
)

func (a *App) upstreamSet() *cobra.Command {
	var o serverFlags
	var unset []string
	var yes bool
	c := &cobra.Command{
		Use: "set NAME [-- PROGRAM ARGUMENT…]", Short: "Change a server that is there",
		Long: `Change a server that has a file upstreams/NAME.yaml. Paths, hosts and lists of tools are
added to what it has, variables and headers are set by name, and all else is replaced;
--unset takes something away again: a whole key, or one value of it. What would be
changed is shown first, without secrets, and the whole configuration is checked with it.

What a server is (its program, address, variables, headers and what its box reaches) is
part of what a person accepted: its tools are suspended when it changes. Times, lists of
tools and --read-action are not, and neither is the value behind a reference. The exit
code is 1 if it is written and does not come up.`,
		Example: `  writ upstream set files --read ~/notes --call-timeout 2m
  writ upstream set files --unset read=/data --unset env=LEVEL
  writ upstream set tracker --bearer store:tracker --unset headers
  writ upstream set files -- /opt/mcp/files-server --verbose /data`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) == 0 || args[0] == "" || dash == 0 || dash < 0 && len(args) > 1 || dash > 1 {
				return Usagef("expected %s; a program stands after --", aServer)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.JSON && !yes {
				return Usagef("--json asks nothing; add --yes")
			}
			path, err := config.Path(a.ConfigFlag)
			if err != nil {
				return err
			}
			was, err := serverOf(path, args[0])
			if err != nil {
				return err
			}
			is := copied(was)
			if err := without(&is, unset); err != nil {
				return err
			}
			if len(args) > 1 {
				is.Command = args[1:]
			}
			if err := o.onto(cmd, &is); err != nil {
				return err
			}
			p := planned{name: args[0], server: is}
			if len(args) > 1 || o.dir != "" {
				p.notes = startable(&p.server)
			}
			return a.setServer(cmd.Context(), path, was, p, yes)
		},
	}
	c.ValidArgsFunction = a.offer(upstreamNames)
	a.serverFlags(c, &o)
	c.Flags().StringVar(&o.url, "url", "", aURL)
	c.Flags().StringArrayVar(&unset, "unset", nil, "KEY, or KEY=VALUE for one of several, or env=NAME; may be given several times")
	c.Flags().BoolVar(&yes, "yes", false, "write without asking")
	a.FlagWords(c, "unset", unsettable())
	return c
}

// serverOf is a server that has a file, as it is in force.
func serverOf(path, name string) (config.Upstream, error) {
	if file := config.ServerPath(path, name); filepath.Base(file) != name+".yaml" || strings.HasPrefix(name, ".") {
		return config.Upstream{}, Usagef("expected %s", aServer)
	}
	if _, err := os.Lstat(config.ServerPath(path, name)); err != nil {
		return config.Upstream{}, noServerFile(path, name)
	}
	cfg, err := catalog.Config(path)
	if err != nil {
		return config.Upstream{}, err
	}
	return cfg.File.Upstreams[name], nil
}

// copied shares nothing with what it is of.
func copied(u config.Upstream) config.Upstream {
	u.Env, u.Headers, u.SecretEnv, u.Auth.Headers = maps.Clone(u.Env), maps.Clone(u.Headers), maps.Clone(u.SecretEnv), maps.Clone(u.Auth.Headers)
	u.Command = slices.Clone(u.Command)
	return u
}

func (a *App) setServer(ctx context.Context, path string, was config.Upstream, p planned, yes bool) error {
	if string(was.Text()) == string(p.server.Text()) {
		return a.Tell("that is what it is already; nothing was written", map[string]any{"status": "unchanged", "id": p.name})
	}
	cfg, err := catalog.Config(path, config.ServerFile{Name: p.name, Text: p.server.Text()})
	if err != nil {
		return fmt.Errorf("that does not hold, and nothing was written:\n%w", err)
	}
	file := config.ServerPath(path, p.name)
	if !a.JSON {
		fmt.Println("+++", file)
		showLines(was, p.server)
		if text, err := os.ReadFile(file); err == nil && strings.Contains("\n"+string(text), "\n#") {
			fmt.Fprintln(os.Stderr, "note: comments of the file are not kept")
		}
	}
	if err := a.warned(ctx, cfg, []planned{p}, true); err != nil { // whether to go on is asked next
		return err
	}
	if err := agreed(ctx, yes, "Write it?", "nothing was written"); err != nil {
		return err
	}
	if err := replaceFile(file, p.server.Text()); err != nil {
		return fmt.Errorf("write %s: %w; it is as it was", file, err)
	}
	return a.taken(ctx, path, cfg, []planned{p}, "changed")
}

// showLines shows the lines in which two texts of a server differ, and names those values
// that are hidden and differ.
func showLines(was, is config.Upstream) {
	before, after := strings.Split(string(was.Shown().Text()), "\n"), strings.Split(string(is.Shown().Text()), "\n")
	only := func(mark string, lines, other []string) {
		for _, line := range lines {
			if !slices.Contains(other, line) {
				fmt.Println(mark, Visible(line))
			}
		}
	}
	only("-", before, after)
	only("+", after, before)
	for what, sides := range map[string][3]map[string]string{"env": {was.Env, is.Env, is.Shown().Env}, "headers": {was.Headers, is.Headers, is.Shown().Headers}} {
		for _, name := range slices.Sorted(maps.Keys(sides[1])) {
			if old, there := sides[0][name]; there && old != sides[1][name] && sides[2][name] == config.Hidden {
				fmt.Printf("~ %s: %s: another value, which is hidden\n", what, Visible(name))
			}
		}
	}
}
