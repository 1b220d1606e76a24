package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) approvalGrant() *cobra.Command {
	var src PassphraseSource
	uses, lasts := grantBounds()
	var match []string
	c := &cobra.Command{
		Use: "grant ID", Short: "Approve a request, and later calls like it",
		Long: `Approve a request, and later calls of the same agent and tool with the same
arguments, so many and for so long. --match lets one argument vary: for a path a
glob (src/**), for any other text * stands for one plain word, never an option or
anything that a shell reads as more. What is dangerous is never granted. A change of
the tool or of the configuration ends the grant, and so does a stop of the agent.`,
		Example: `  writ approval grant call_abc123 --for 1h
  writ approval grant call_abc123 --for 30m --uses 5 --match 'path=build/**'
  writ approval grant call_abc123 --match 'command=git log *'`,
		Args: Exactly(1, "the id of a request; 'writ approval list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			patterns, err := matchFlags(match)
			if err != nil {
				return err
			}
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			return a.grant(cmd.Context(), daemon, args[0], client.GrantTerms{Uses: uses.n, Seconds: int64(lasts.Duration / time.Second), Match: patterns}, &src)
		},
	}
	c.ValidArgsFunction = a.offer(pendingIDs)
	a.PersonFlags(c, &src)
	c.Flags().Var(&lasts, "for", "how long it is good for, at most 7d")
	c.Flags().Var(&uses, "uses", "how many later calls, at most 1000")
	c.Flags().StringArrayVar(&match, "match", nil, "ARGUMENT=PATTERN: let this argument vary (repeatable)")
	return c
}

// grantBounds are the terms of a grant where nobody says others, and what they can be.
func grantBounds() (uses number, lasts lasting) {
	return number{n: 20, least: 1, most: 1000}, lasting{Duration: time.Hour, most: 7 * 24 * time.Hour}
}

func matchFlags(match []string) (map[string]string, error) {
	patterns := map[string]string{}
	for _, m := range match {
		name, pattern, ok := strings.Cut(m, "=")
		if !ok || name == "" {
			return nil, Usagef("--match: %q is not ARGUMENT=PATTERN", m)
		}
		if _, twice := patterns[name]; twice {
			return nil, Usagef("--match: %s is given twice; one argument has one pattern", name)
		}
		patterns[name] = pattern
	}
	return patterns, nil
}

// grant shows what is granted and the request, and approves it as it was shown.
func (a *App) grant(ctx context.Context, daemon *client.Client, id string, terms client.GrantTerms, src *PassphraseSource) error {
	r, err := daemon.Approval(ctx, id)
	if err != nil {
		return err
	}
	if r.Shown == nil {
		return fmt.Errorf("request %s is %s; only one that waits can be granted", id, r.State)
	}
	if err := matchable(r.Shown.Args, terms.Match); err != nil {
		return err
	}
	if !a.JSON {
		fmt.Printf("grants    %d later calls, for %s\n", terms.Uses, shortly(time.Duration(terms.Seconds)*time.Second))
		for _, name := range slices.Sorted(maps.Keys(terms.Match)) {
			fmt.Printf("          %s may match %s\n", OneLine(name), OneLine(terms.Match[name]))
		}
		if err := a.showRequest(ctx, r, ""); err != nil {
			return err
		}
	}
	return a.answer(ctx, daemon, id, client.DecisionRequest{Digest: r.Digest, Approve: true, Grant: &terms}, src)
}

// matchable refuses patterns of what a call does not have; the daemon would, after a
// passphrase was typed.
func matchable(args json.RawMessage, match map[string]string) error {
	var has map[string]any
	if err := json.Unmarshal(args, &has); err != nil {
		return err
	}
	for name := range match {
		if _, text := has[name].(string); !text {
			return fmt.Errorf("--match: %q is not an argument of this call with a text as its value; it has %s", name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(has)), ", "), "none"))
		}
	}
	return nil
}

func (a *App) approvalGrants() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "grants", Short: "List standing approvals", Args: Exactly(0, "no arguments"), Example: "  writ approval grants\n  writ approval grants --all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			gs, err := daemon.Grants().All(cmd.Context())
			if err != nil {
				return err
			}
			if !all {
				gs = slices.DeleteFunc(gs, func(g client.Grant) bool { return g.State != "live" })
			}
			if a.JSON {
				return PrintJSON(gs)
			}
			if len(gs) == 0 {
				fmt.Println("nothing is granted")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSTATE\tAGENT\tTOOL\tUSED\tEXPIRES\tBY\tCOVERS")
			for _, g := range gs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", g.ID, g.State, OneLine(g.Agent), OneLine(g.Tool), g.Uses, g.Max, expires(g.State, g.Expires), OneLine(g.By), covers(g))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that are used up, expired, revoked or void")
	return c
}

// covers says in a line which calls a grant is for.
func covers(g client.Grant) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g.Args)) {
		parts = append(parts, name+"="+string(g.Args[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Match)) {
		parts = append(parts, name+"~"+g.Match[name])
	}
	return OneLine(strings.Join(parts, " "))
}

func (a *App) approvalRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke GRANT", Short: "End a standing approval; it takes no passphrase", Args: Exactly(1, "the id of a grant; 'writ approval grants' lists them"),
		Example: "  writ approval revoke gr_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.RevokeGrant(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(client.Status{Status: "revoked"})
			}
			fmt.Printf("%s revoked\n", args[0])
			return nil
		},
	}
	c.ValidArgsFunction = a.offer(grantIDs)
	return c
}
