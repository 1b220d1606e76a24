package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/person"
)

// completion offers values of the first argument or of a flag, from a daemon that
// runs; pressing Tab starts none.
type completion func(ctx context.Context, c *client.Client) []string

func (a *App) offer(what completion) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		path, err := config.Path(a.ConfigFlag)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		return what(ctx, client.Dial(config.StateOf(path))), cobra.ShellCompDirectiveNoFileComp
	}
}

func toolNames(ctx context.Context, c *client.Client) []string {
	var out []string
	tools, _ := c.Tools().All(ctx) // nothing to offer is not an error
	for _, t := range tools {
		out = append(out, t.Name+"\t"+t.Title)
	}
	return out
}

func agentNames(ctx context.Context, c *client.Client) []string {
	var out []string
	agents, _ := c.Agents().All(ctx)
	for _, g := range agents {
		out = append(out, g.Name)
	}
	return out
}

// tokenIDs are the tokens that can be revoked.
func tokenIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	agents, _ := c.Agents().All(ctx)
	for _, g := range agents {
		for _, t := range g.Tokens {
			if t.Revoked == "" {
				out = append(out, t.ID+"\t"+g.Name)
			}
		}
	}
	return out
}

func pendingIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	rs, _ := c.Approvals("pending").All(ctx)
	for _, r := range rs {
		out = append(out, r.ID+"\t"+r.Agent+" "+r.Tool)
	}
	return out
}

func sandboxIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	all, _ := c.Sandboxes().All(ctx)
	for _, b := range all {
		out = append(out, b.ID+"\t"+b.Agent+" "+runsNow(b))
	}
	return out
}

func grantIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	gs, _ := c.Grants().All(ctx)
	for _, g := range gs {
		if g.State == "live" {
			out = append(out, g.ID+"\t"+g.Agent+" "+g.Tool)
		}
	}
	return out
}

// openInvocations offers what waits or runs; unknownInvocations what nobody knows.
func openInvocations(ctx context.Context, c *client.Client) []string {
	return append(invocationIDs(ctx, c, "pending"), invocationIDs(ctx, c, "running")...)
}

func unknownInvocations(ctx context.Context, c *client.Client) []string {
	return invocationIDs(ctx, c, "unknown")
}

func invocationIDs(ctx context.Context, c *client.Client, state string) []string {
	var out []string
	page, _ := c.Invocations(state).Page(ctx, 50, "")
	for _, i := range page.Data {
		out = append(out, i.ID+"\t"+i.Agent+" "+i.Tool)
	}
	return out
}

func personNames(ctx context.Context, c *client.Client) []string {
	var out []string
	people, _ := c.People().All(ctx)
	for _, p := range people {
		out = append(out, p.Name+"\t"+p.Role)
	}
	return out
}

// offerRole offers values of a first argument, where there are any, and roles for
// the second.
func (a *App) offerRole(first completion) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 1:
			return person.Roles, cobra.ShellCompDirectiveNoFileComp
		case first != nil:
			return a.offer(first)(cmd, args, word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func stateNames(context.Context, *client.Client) []string { return states }

// FlagWords offers the same words for a flag, whatever runs.
func (a *App) FlagWords(c *cobra.Command, flag string, words []string) {
	a.flagValues(c, flag, func(context.Context, *client.Client) []string { return words })
}

// flagValues offers values of a flag, whatever the arguments are.
func (a *App) flagValues(c *cobra.Command, flag string, what completion) {
	values := a.offer(what)
	err := c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return values(cmd, nil, word)
	})
	if err != nil {
		panic(err) // a flag that does not exist: a programming error
	}
}
