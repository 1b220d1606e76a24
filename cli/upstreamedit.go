package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/spell"
)

// planned is a server that is about to have a file of its own.
type planned struct {
	name   string
	server config.Upstream
	notes  []string // what was made of it beyond what was said
}

// checked holds the configuration as it would be, before anything of it is written.
func checked(path string, plans []planned) (*config.Config, error) {
	var files []config.ServerFile
	for _, p := range plans {
		if _, err := os.Lstat(config.ServerPath(path, p.name)); err == nil {
			return nil, writ.Fail(writ.Conflict, fmt.Sprintf("%s is there already; '%s upstream set %s' changes it, and '%s upstream remove %s' removes it", config.ServerPath(path, p.name), Self(), p.name, Self(), p.name), nil)
		}
		files = append(files, config.ServerFile{Name: p.name, Text: p.server.Text()})
	}
	return catalog.Config(path, files...)
}

// writeServers writes the files: all of them, or none.
func writeServers(path string, plans []planned) (err error) {
	dir := filepath.Dir(config.ServerPath(path, "x"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var done []string
	defer func() {
		if err != nil {
			for _, file := range done {
				err = errors.Join(err, os.Remove(file))
			}
		}
	}()
	for _, p := range plans {
		file := config.ServerPath(path, p.name)
		if err := newFile(file, p.server.Text()); err != nil {
			return fmt.Errorf("write %s: %w; nothing was added", file, err)
		}
		done = append(done, file)
	}
	return nil
}

// newFile writes a file that must not be there, for its owner alone, so that nobody
// ever reads half of it.
func newFile(path string, text []byte) error {
	return placeFile(path, text, os.Link) // which replaces nothing, as a rename would
}

// replaceFile writes one in the place of another.
func replaceFile(path string, text []byte) error { return placeFile(path, text, os.Rename) }

func placeFile(path string, text []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".writ-upstream-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}

// takeUp has a daemon that runs read the configuration. It gives nil where none runs:
// the next one reads it anyway.
func (a *App) takeUp(ctx context.Context, cfg *config.Config) (*client.Client, error) {
	daemon := client.Dial(cfg.StatePath)
	r, err := daemon.Reload(ctx)
	if client.IsDown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the files are as they were to be, and the daemon did not take them up: %w; then: %s config reload", err, Self())
	}
	if r.Ended > 0 && !a.JSON {
		fmt.Printf("%d requests and unused approvals ended: their calls are decided again when they are made again\n", r.Ended)
	}
	return daemon, nil
}

// settled waits until a server is connected or has failed, as long as connecting takes
// at most.
func settled(ctx context.Context, daemon *client.Client, name string, within time.Duration) (client.Upstream, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		u, err := daemon.Upstream(ctx, name)
		if err != nil || u.State != "starting" && u.State != "idle" && u.State != "reading" {
			return u, err
		}
		select {
		case <-ctx.Done():
			return u, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// taken has servers that were added or changed taken up, and says what became of them.
func (a *App) taken(ctx context.Context, path string, cfg *config.Config, plans []planned, did string) error {
	daemon, err := a.takeUp(ctx, cfg)
	if err != nil {
		return err
	}
	type result struct {
		Name   string           `json:"name"`
		File   string           `json:"file"`
		Server *client.Upstream `json:"server,omitempty"`
	}
	var out []result
	var failed []string
	for _, p := range plans {
		r := result{Name: p.name, File: config.ServerPath(path, p.name)}
		if !a.JSON {
			fmt.Printf("%s %s: %s\n", did, p.name, r.File)
		}
		if daemon != nil {
			within := time.Duration(p.server.InForce().ConnectTimeout) + time.Second
			u, err := settled(ctx, daemon, p.name, within)
			if err != nil {
				return err
			}
			r.Server = &u
			if u.State == "failed" {
				failed = append(failed, fmt.Sprintf("%s is not connected, and stays as it was written in %s; '%s upstream set %s' changes it, and '%s upstream remove %s' removes it", p.name, r.File, Self(), p.name, Self(), p.name))
			}
			if !a.JSON {
				fmt.Println()
				showUpstream(u)
			}
			clashes(u)
		}
		out = append(out, r)
	}
	switch {
	case a.JSON:
		if err := PrintJSON(out); err != nil {
			return err
		}
	case daemon == nil:
		fmt.Println("no daemon runs; the next one takes it up")
		for _, p := range plans {
			fmt.Printf("its tools are suspended then until a person accepts them: %s upstream accept %s\nand an agent may use them once its allowed has \"@%s\"\n", Self(), p.name, p.name)
		}
	}
	for _, f := range failed {
		fmt.Fprintln(os.Stderr, "writ:", f)
	}
	if failed != nil {
		return ExitCode(ExitError)
	}
	return nil
}

// clashes says that tools of a server and of others took each other away.
func clashes(u client.Upstream) {
	with := map[string]int{}
	for _, r := range u.Refused {
		if r.With != "" {
			with[r.With]++
		}
	}
	for _, other := range slices.Sorted(maps.Keys(with)) {
		fmt.Fprintf(os.Stderr, "warning: %d tools of %s have the names of tools of %s, and neither server's can be used; have their servers' names before them: %s upstream set %s --prefix name\n", with[other], u.Name, OneLine(other), Self(), u.Name)
	}
}

// warned says what is known against servers before they are written, and what taking them
// up ends. On a terminal a person may leave it at that.
func (a *App) warned(ctx context.Context, cfg *config.Config, plans []planned, yes bool) error {
	foretell(plans)
	ends := endsRequests(ctx, cfg)
	if ends == "" {
		return nil
	}
	fmt.Fprintln(os.Stderr, "note:", ends)
	if yes || a.JSON || !IsTerminal(os.Stdin) {
		return nil
	}
	return agreed(ctx, false, "Go on?", "nothing was written")
}

// endsRequests says what a change of the configuration ends that is open now.
func endsRequests(ctx context.Context, cfg *config.Config) string {
	daemon, n := client.Dial(cfg.StatePath), 0
	for _, state := range []string{"pending", "approved"} {
		open, err := daemon.Approvals(state).All(ctx)
		if err != nil {
			return "" // no daemon runs, or it says so itself in a moment
		}
		n += len(open)
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d open requests and unused approvals, of all agents, end when the daemon takes this up; their calls are decided again when they are made again", n)
}

// agreed asks a question on the terminal, or takes --yes for it.
func agreed(ctx context.Context, yes bool, question, none string) error {
	if yes {
		return nil
	}
	if !IsTerminal(os.Stdin) {
		return Usagef("there is no terminal to ask on, and %s; add --yes", none)
	}
	fmt.Fprint(os.Stderr, question+" [y/N] ")
	said := make(chan string, 1)
	go func() { // reading a terminal cannot be called off; Ctrl-C ends the program
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-said:
		if answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
	}
	return errors.New(none)
}

func (a *App) upstreamRemove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		ValidArgsFunction: a.offer(upstreamNames),
		Use:               "remove NAME", Short: "Remove a server and its tools", Args: Exactly(1, aServer),
		Long: `Remove the file upstreams/NAME.yaml of a server. What is removed is printed, and a
daemon that runs ends the server at once. What people accepted of it stays on record;
the same definitions are accepted when it is added again. A server that is written in
the configuration itself is removed there.`,
		Example: "  writ upstream remove files",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := config.Path(a.ConfigFlag)
			if err != nil {
				return err
			}
			if a.JSON && !yes {
				return Usagef("--json asks nothing; add --yes")
			}
			return a.removeServer(cmd.Context(), path, args[0], yes)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	return c
}

func (a *App) removeServer(ctx context.Context, path, name string, yes bool) error {
	file := config.ServerPath(path, name)
	if filepath.Base(file) != name+".yaml" || strings.HasPrefix(name, ".") {
		return Usagef("expected %s", aServer)
	}
	if _, err := os.Lstat(file); err != nil {
		return noServerFile(path, name)
	}
	now, nowErr := catalog.Config(path)
	after, err := catalog.Config(path, config.ServerFile{Name: name})
	if err != nil {
		return fmt.Errorf("without %s the configuration does not hold, and nothing was removed:\n%w", name, err)
	}
	if !a.JSON {
		fmt.Printf("--- %s\n", file)
		if nowErr == nil {
			fmt.Print(Visible(string(now.File.Upstreams[name].Shown().Text())))
		} else { // what it says cannot be shown without what may be secret in it
			fmt.Println("(its content is not shown: the configuration does not hold with it)")
			printLines("", nowErr.Error())
		}
	}
	if ends := endsRequests(ctx, after); ends != "" && !a.JSON {
		fmt.Fprintln(os.Stderr, "note:", ends)
	}
	if err := agreed(ctx, yes, "Remove it?", "nothing was removed"); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	daemon, err := a.takeUp(ctx, after)
	if err != nil {
		return err
	}
	if daemon == nil && !a.JSON {
		fmt.Println("no daemon runs; the next one is without it")
	}
	return a.said("removed", name)
}

// noServerFile says where a server is written that has no file of its own.
func noServerFile(path, name string) error {
	cfg, err := catalog.Config(path)
	if err != nil {
		return err
	}
	if _, ok := cfg.File.Upstreams[name]; ok {
		return writ.Fail(writ.Conflict, fmt.Sprintf("server %s is written at %s, which is yours to edit; change or remove it there, then: %s config reload", name, cfg.At("upstreams."+name), Self()), nil)
	}
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no server %q%s; '%s upstream list' shows them", name, spell.Hint(name, slices.Sorted(maps.Keys(cfg.File.Upstreams))), Self()), nil)
}
