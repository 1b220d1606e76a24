package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
)

// completion offers values of the first argument or of a flag, from a daemon that
// runs; pressing Tab starts none.
type completion func(ctx context.Context, c *client.Client) []string

func (a *app) offer(what completion) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		path, err := config.Path(a.configFlag)
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

func pendingIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	rs, _ := c.Approvals("pending").All(ctx)
	for _, r := range rs {
		out = append(out, r.ID+"\t"+r.Agent+" "+r.Tool)
	}
	return out
}

func stateNames(context.Context, *client.Client) []string { return states }

// flagValues offers values of a flag, whatever the arguments are.
func (a *app) flagValues(c *cobra.Command, flag string, what completion) {
	values := a.offer(what)
	err := c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return values(cmd, nil, word)
	})
	if err != nil {
		panic(err) // a flag that does not exist: a programming error
	}
}
