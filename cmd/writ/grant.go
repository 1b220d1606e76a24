package main

import (
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

func (a *app) approvalGrant() *cobra.Command {
	var src passphraseSource
	var lasts time.Duration
	var uses int
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
		Args: exactly(1, "the id of a request; 'writ approval list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			patterns := map[string]string{}
			for _, m := range match {
				name, pattern, ok := strings.Cut(m, "=")
				if !ok || name == "" {
					return usagef("--match: %q is not ARGUMENT=PATTERN", m)
				}
				patterns[name] = pattern
			}
			if lasts < time.Second {
				return usagef("--for: a grant lasts at least a second; write 30m or 1h")
			}
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if !a.json {
				fmt.Printf("grants    %d later calls, for %s\n", uses, lasts)
				for _, name := range slices.Sorted(maps.Keys(patterns)) {
					fmt.Printf("          %s may match %s\n", oneLine(name), oneLine(patterns[name]))
				}
			}
			return a.decide(cmd.Context(), daemon, args[0], client.DecisionRequest{
				Approve: true, Grant: &client.GrantTerms{Uses: uses, Seconds: int64(lasts / time.Second), Match: patterns},
			}, &src)
		},
	}
	c.ValidArgsFunction = a.offer(pendingIDs)
	a.personFlags(c, &src)
	c.Flags().DurationVar(&lasts, "for", time.Hour, "how long it is good for, at most 168h")
	c.Flags().IntVar(&uses, "uses", 20, "how many later calls, at most 1000")
	c.Flags().StringArrayVar(&match, "match", nil, "ARGUMENT=PATTERN: let this argument vary (repeatable)")
	return c
}

func (a *app) approvalGrants() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "grants", Short: "List standing approvals", Args: exactly(0, "no arguments"), Example: "  writ approval grants\n  writ approval grants --all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.connect(cmd.Context())
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
			if a.json {
				return a.print(gs)
			}
			if len(gs) == 0 {
				fmt.Println("nothing is granted")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSTATE\tAGENT\tTOOL\tUSED\tEXPIRES\tBY\tCOVERS")
			for _, g := range gs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", g.ID, g.State, oneLine(g.Agent), oneLine(g.Tool), g.Uses, g.Max, until(g.Expires), oneLine(g.By), covers(g))
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
	return oneLine(strings.Join(parts, " "))
}

func (a *app) approvalRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke GRANT", Short: "End a standing approval; it takes no passphrase", Args: exactly(1, "the id of a grant; 'writ approval grants' lists them"),
		Example: "  writ approval revoke gr_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.RevokeGrant(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.json {
				return a.print(client.Status{Status: "revoked"})
			}
			fmt.Printf("%s revoked\n", args[0])
			return nil
		},
	}
	c.ValidArgsFunction = a.offer(grantIDs)
	return c
}
