package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func (a *app) configReload() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Have the daemon take up the configuration as it is now", Args: exactly(0, "no arguments"),
		Long: `Have the daemon read the configuration, the tool definitions and the profiles again.
All of it is checked first; what does not hold changes nothing. Calls that run keep
what they were decided under; requests that wait, and approvals not yet used, end, so
that they are decided again. SIGHUP does the same. Changes of store and listen need a
new start: writ serve --stop.`,
		Example: "  writ config check && writ config reload",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connectQuietly(cmd.Context())
			if err != nil {
				return err
			}
			r, err := c.Reload(cmd.Context())
			if err != nil {
				return err
			}
			short, err := tooFewPeople(cmd.Context(), c)
			if err != nil {
				return err
			}
			r.Warnings = append(r.Warnings, short...)
			if a.json {
				return printJSON(r)
			}
			for _, w := range r.Warnings {
				fmt.Println("warning:", visible(w))
			}
			fmt.Println("reloaded; policy", r.Policy)
			if r.Ended > 0 {
				fmt.Printf("%d requests and unused approvals ended: their calls are decided again when they are made again\n", r.Ended)
			}
			return sayHeld(cmd.Context(), c)
		},
	}
}

// sayHeld names the tools that a person has to look at, those of a server together.
func sayHeld(ctx context.Context, c *client.Client) error {
	servers, err := settledServers(ctx, c)
	if err != nil {
		return err
	}
	of := map[string]bool{}
	for _, u := range servers {
		held := u.Suspended()
		for _, t := range held {
			of[t.Name] = true
		}
		if len(held) > 0 {
			fmt.Printf("suspended: %d tools of server %s; a person accepts them: %s upstream accept %s\n", len(held), u.Name, self(), u.Name)
		}
		if starts(u) {
			fmt.Printf("server %s is starting; whether its tools are still as they were accepted: %s upstream show %s\n", u.Name, self(), u.Name)
		}
	}
	for t, err := range c.Tools().Each(ctx) {
		if err != nil {
			return err
		}
		if t.Held != "" && !of[t.Name] {
			fmt.Println("suspended:", visible(t.Held))
		}
	}
	return nil
}

func starts(u client.Upstream) bool { return u.State == "starting" || u.State == "reading" }

// settledServers is the servers there are, when those that a change has started anew have said
// what they offer, or have taken too long.
func settledServers(ctx context.Context, c *client.Client) ([]client.Upstream, error) {
	const enough, often = 5 * time.Second, 50 * time.Millisecond
	for until := time.Now().Add(enough); ; {
		servers, err := c.Upstreams().All(ctx)
		if err != nil || !slices.ContainsFunc(servers, starts) || time.Now().After(until) {
			return servers, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(often):
		}
	}
}

// hangups are the signals that tell the process to reload. They are listened for
// before anything else: one that comes while the daemon starts must not end it.
func hangups() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	if hangup != nil {
		signal.Notify(told, hangup)
	}
	return told
}

// reloadOnSignal reloads whenever the process is told to, until ctx ends.
func reloadOnSignal(ctx context.Context, e *engine.Engine, log *slog.Logger, told <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			if _, err := e.Reload(ctx); err != nil {
				log.Error("the configuration was not reloaded", "err", err)
			}
		}
	}
}
