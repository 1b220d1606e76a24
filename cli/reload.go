package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) configReload() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Have the daemon take up the configuration as it is now", Args: Exactly(0, "no arguments"),
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
			short, err := TooFewPeople(cmd.Context(), c)
			if err != nil {
				return err
			}
			r.Warnings = append(r.Warnings, short...)
			if a.JSON {
				return PrintJSON(r)
			}
			for _, w := range r.Warnings {
				fmt.Println("warning:", Visible(w))
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
			fmt.Printf("suspended: %d tools of server %s; a person accepts them: %s upstream accept %s\n", len(held), u.Name, Self(), u.Name)
		}
		if starts(u) {
			fmt.Printf("server %s is starting; whether its tools are still as they were accepted: %s upstream show %s\n", u.Name, Self(), u.Name)
		}
	}
	for t, err := range c.Tools().Each(ctx) {
		if err != nil {
			return err
		}
		if t.Held != "" && !of[t.Name] {
			fmt.Println("suspended:", Visible(t.Held))
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

// TooFewPeople names every quorum in force that is larger than the number of people
// who may approve. The configuration alone cannot tell: people are kept in the store.
func TooFewPeople(ctx context.Context, daemon *client.Client) ([]string, error) {
	people, err := daemon.People().All(ctx)
	if err != nil || len(people) == 0 { // which is said anyway
		return nil, err
	}
	people = slices.DeleteFunc(people, func(p client.Person) bool { return p.Role != "approver" && p.Role != "admin" })
	var out []string
	for v, err := range daemon.Config().Each(ctx) {
		if err != nil {
			return nil, err
		}
		quorum, err := strconv.Atoi(v.Value)
		if strings.HasSuffix(v.Key, ".quorum") && err == nil && quorum > len(people) {
			out = append(out, fmt.Sprintf("%s: %s is %d, and %d may approve, so nothing that takes it is ever approved; add somebody: writ person add NAME approver", v.From, v.Key, quorum, len(people)))
		}
	}
	return out, nil
}
