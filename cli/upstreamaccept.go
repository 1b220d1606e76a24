package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/spell"
)

func (a *App) upstreamAccept() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "accept NAME [TOOL…]", Short: "Let a server's tools be used as they are defined now",
		Long: `Accept definitions of a server: all that are suspended, or the tools that are named.
Each is shown first: of a new one all that its server says of it, of a changed one what
changed, and the class that its annotations propose; and what became of the server
itself, where that is another program or address now. Exactly what was shown is
accepted, all of it or nothing. It takes the passphrase of a person with the role operator or admin.`,
		Example: "  writ upstream accept files\n  writ upstream accept files files__read files__list --as alice",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return Usagef("expected %s", aServer)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			daemon, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			u, err := settled(ctx, daemon, args[0], startWithin)
			if err != nil {
				return err
			}
			chosen, err := suspended(u, args[1:])
			if err != nil {
				return err
			}
			if len(chosen) == 0 && u.State != "ready" {
				return fmt.Errorf("server %s is %s, and what it offers is not known; '%s upstream show %s' says why", u.Name, u.State, Self(), u.Name)
			}
			if len(chosen) == 0 {
				return a.Tell(fmt.Sprintf("nothing of %s is suspended", u.Name), map[string]any{"status": "unchanged", "id": u.Name, "tools": []string{}})
			}
			if err := src.who(ctx, daemon); err != nil {
				return err
			}
			req, names, err := a.shownFor(ctx, daemon, u, chosen)
			if err != nil {
				return err
			}
			if req.By, err = src.credentials(ctx); err != nil {
				return err
			}
			if err := daemon.AcceptUpstream(ctx, u.Name, req); err != nil {
				return err
			}
			said := fmt.Sprintf("accepted %d of %s", len(names), u.Name)
			if u.Remedy != "" {
				said += "\n" + OneLine(u.Remedy)
			}
			return a.Tell(said, map[string]any{"status": "accepted", "id": u.Name, "tools": names})
		},
	}
	a.PersonFlags(c, &src)
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.offer(upstreamNames)(cmd, args, word)
		}
		return a.offer(func(ctx context.Context, c *client.Client) []string { return suspendedNames(ctx, c, args[0]) })(cmd, nil, word)
	}
	return c
}

func suspendedNames(ctx context.Context, c *client.Client, server string) []string {
	var out []string
	u, _ := c.Upstream(ctx, server)
	for _, t := range u.Suspended() {
		out = append(out, t.Name+"\t"+t.Title)
	}
	return out
}

// suspended are a server's tools that wait for a person: all, or those that are named.
func suspended(u client.Upstream, names []string) ([]client.UpstreamTool, error) {
	if len(names) == 0 {
		return u.Suspended(), nil
	}
	byName, known := map[string]client.UpstreamTool{}, []string{}
	for _, t := range u.Tools {
		byName[t.Name] = t
		known = append(known, t.Name)
	}
	var out []client.UpstreamTool
	for _, n := range names {
		t, ok := byName[n]
		if !ok {
			t, ok = byName[u.Name+"__"+n]
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("the server %s has no tool %q%s; '%s upstream show %s' lists them", u.Name, n, spell.Hint(n, known), Self(), u.Name)
		case t.State != "new" && t.State != "changed":
			return nil, fmt.Errorf("tool %s is %s as it is; leave it out", t.Name, t.State)
		}
		out = append(out, t)
	}
	return out, nil
}
