package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/api"
	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

func (a *app) serveCommand() *cobra.Command {
	var end bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon: the gate, its store and its front doors. Agents come over HTTP on
loopback with a bearer token; you come over a socket only your user can open.
Other commands start a daemon in the background when none runs. Ctrl-C ends it.`,
		Example: "  writ serve\n  writ serve --stop     end the daemon that runs",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if end {
				return a.endDaemon(cmd.Context())
			}
			return a.serve(cmd.Context())
		},
	}
	c.Flags().BoolVar(&end, "stop", false, "end the daemon that runs")
	return c
}

func (a *app) serve(ctx context.Context) error {
	if err := cli.WithholdMemory(); err != nil {
		return err
	}
	told := hangups()
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	e, err := engine.Open(ctx, engine.Options{Config: path, Log: log})
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w: a daemon already runs on it; '%s serve --stop' ends it", err, cli.Self())
	}
	if err != nil {
		return err
	}
	l, err := api.Listen(e.Config().File.Listen, e.Config().StatePath, e.Reach)
	if err != nil {
		return errors.Join(a.portHeld(ctx, err), e.Close())
	}
	if err := banner(ctx, e, l.URL()); err != nil {
		return errors.Join(err, e.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go reloadOnSignal(ctx, e, log, told)
	return errors.Join(api.Serve(ctx, e, l, log), e.Close())
}

// banner says what runs, what it does not protect, and what to do next.
func banner(ctx context.Context, e *engine.Engine, url string) error {
	fmt.Printf("writ %s %s %s\n", writ.Version(), cli.Serving, url)
	fmt.Printf("  configuration %s\n  state         %s\n  mode          %s\n", e.Config().Path, e.Config().StatePath, api.Mode)
	for _, w := range e.Config().Warnings {
		fmt.Printf("  warning       %s\n", w)
	}
	people, err := e.People(ctx)
	if err != nil {
		return err
	}
	fmt.Println(nextSteps(e, len(people) > 0))
	return nil
}

func nextSteps(e *engine.Engine, someone bool) string {
	agent := "NAME"
	if len(e.Config().Agents) > 0 {
		agent = e.Config().Agents[0].Name
	}
	steps := `
Next, in another terminal:
  SELF agent token AGENT        a token for the agent, shown once
  export WRIT_TOKEN=writ_…
  SELF call list_directory      an allowed call
  SELF approval list            what waits for you
  SELF doctor                   what is enforced here`
	if !someone {
		steps = `
Nobody can approve yet. In another terminal:
  SELF init                     choose a passphrase, get a token for agent AGENT and calls to try
  (no terminal? echo PASSPHRASE | SELF init --passphrase-stdin)`
	}
	return strings.NewReplacer("SELF", cli.Self(), "AGENT", agent).Replace(steps)
}

// endsWithin is how long is waited for a daemon to stop listening. It goes on by itself
// where calls take longer to end.
const endsWithin = 5 * time.Second

func (a *app) endDaemon(ctx context.Context) error {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	c := client.Dial(config.StateOf(path))
	err = c.Shutdown(ctx)
	if client.IsDown(err) {
		return errors.New("no daemon runs")
	}
	if err != nil {
		return err
	}
	fmt.Println("the daemon is ending")
	for until := time.Now().Add(endsWithin); time.Now().Before(until); time.Sleep(cli.StartLook) {
		if _, err := c.Health(ctx); err != nil { // the next one can have its port
			return nil
		}
	}
	return nil
}
