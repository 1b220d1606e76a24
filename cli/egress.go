package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/spell"
)

func (a *App) egressCommand() *cobra.Command {
	return Noun("egress", "See what left sandboxes, and what was refused to",
		"  writ egress log\n  writ egress log --refused --follow\n  writ egress log --call call_abc123",
		a.egressLog())
}

func (a *App) egressLog() *cobra.Command {
	var of client.EgressOf
	var follow bool
	limit := number{n: 50, least: 1, most: 1000}
	c := &cobra.Command{
		Use: "log", Short: "List connections and names asked for, the newest last", Args: Exactly(0, "no arguments"),
		Long: `List every connection that something in a sandbox made or wanted to make, and every
name it asked for: when, for which call, where to, what was decided and by which
rule. Of a host that no rule names, "needs" is the rule that would allow it.
A name that was refused twice in a row is shown once. With --json each is one line.`,
		Example: "  writ egress log\n  writ egress log --call call_abc123\n  writ egress log --agent coder --refused\n  writ egress log --follow",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, v := range map[string]string{"call": of.Call, "agent": of.Agent} {
				if v == "" && cmd.Flags().Changed(flag) {
					return Usagef("--%s is empty; name one, or leave it out to list all", flag)
				}
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			page, err := daemon.Egress(of).Page(cmd.Context(), limit.n, "")
			if err != nil {
				return err
			}
			if len(page.Data) == 0 {
				if err := nobodys(cmd.Context(), daemon, of); err != nil {
					return err
				}
			}
			slices.Reverse(page.Data)
			last, err := a.showEgressPage(page, follow)
			if err != nil || !follow {
				return err
			}
			return a.followEgress(cmd.Context(), daemon, of, last)
		},
	}
	c.Flags().StringVar(&of.Call, "call", "", "only what this call did")
	c.Flags().StringVar(&of.Agent, "agent", "", "only what this agent's calls did")
	c.Flags().BoolVar(&of.Refused, "refused", false, "only what was not let through")
	c.Flags().Var(&limit, "limit", "how many, the newest; at most 1000")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as more is logged")
	a.flagValues(c, "agent", agentNames)
	a.flagValues(c, "call", func(ctx context.Context, c *client.Client) []string { return invocationIDs(ctx, c, "") })
	return c
}

// nobodys says why nothing is listed where the agent or the call is not there. What the
// daemon does itself is logged under other names than agents': under such a name nothing
// may have been logged yet.
func nobodys(ctx context.Context, daemon *client.Client, of client.EgressOf) error {
	names := agentNames(ctx, daemon)
	own := strings.ContainsAny(of.Agent, " .") // as in "writ run" and "webhook NAME": no agent's name has any
	if of.Agent != "" && !own && !slices.Contains(names, of.Agent) {
		return writ.Fail(writ.NotFound, fmt.Sprintf("there is no agent %q%s", of.Agent, spell.Hint(of.Agent, names)), nil)
	}
	if of.Call == "" {
		return nil
	}
	var refusal *client.Problem
	if _, err := daemon.Invocation(ctx, of.Call, 0); errors.As(err, &refusal) && refusal.Kind == writ.NotFound {
		return writ.Fail(writ.NotFound, fmt.Sprintf("there is no call %q; '%s invocation list' shows them", of.Call, Self()), nil)
	}
	return nil
}

// The widths are fixed, so that what is followed stays below what was there. That of
// addresses takes any of IPv4; one of IPv6 moves the rest of its line.
const egressLine = "%-19s  %-23s  %-7s  %-24s  %-19s  %-16s  %7s  %8s  %s\n"

// showEgressPage shows what there is, and says which was the last.
func (a *App) showEgressPage(page client.Page[client.Egress], follow bool) (last int64, err error) {
	switch {
	case a.JSON:
	case len(page.Data) == 0 && !follow:
		fmt.Println("none")
	default:
		fmt.Printf(egressLine, "TIME", "CALL OR AGENT", "KIND", "HOST", "ADDRESS", "VERDICT", "SENT", "RECEIVED", "RULE")
	}
	for _, e := range page.Data {
		if err := a.showEgress(e); err != nil {
			return last, err
		}
		last = e.N
	}
	if page.HasMore {
		fmt.Fprintln(os.Stderr, "older ones are left out; --limit shows up to 1000")
	}
	return last, nil
}

func (a *App) showEgress(e client.Egress) error {
	if a.JSON {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = fmt.Println(spelled(string(line)))
		}
		return err
	}
	if saidBefore(a.leaving, e) {
		return nil
	}
	a.leaving = e
	_, err := fmt.Printf(egressLine, e.At[:min(19, len(e.At))], OneLine(cmp.Or(e.Call, e.Agent, "-")), OneLine(e.Kind), OneLine(cmp.Or(e.Host, "-")), OneLine(cmp.Or(e.Address, "-")),
		OneLine(e.Verdict), fmt.Sprint(e.Sent), fmt.Sprint(e.Received), OneLine(ruleOf(e)))
	return err
}

// saidBefore says whether a row is the refusal of a name that the one before it was: programs ask
// for addresses of both kinds.
func saidBefore(before, e client.Egress) bool {
	return e.Kind == "dns" && e.Verdict != string(egress.Allowed) && before.Kind == e.Kind && before.Call == e.Call && before.Agent == e.Agent &&
		before.Host == e.Host && before.Verdict == e.Verdict && before.Needs == e.Needs && before.Rule == e.Rule && before.Detail == e.Detail
}

// ruleOf says by which rule something was decided, or, where none speaks of it, which
// would allow it; and what more there is to say of a refusal.
func ruleOf(e client.Egress) string {
	rule := cmp.Or(e.Rule, "-")
	if e.Needs != "" {
		rule = "needs " + e.Needs
	}
	why := e.Detail
	if e.Class != "" && e.Verdict != string(egress.Allowed) {
		why = strings.TrimSuffix(e.Class+": "+why, ": ")
	}
	if why != "" {
		rule += " (" + why + ")"
	}
	return rule
}

// followEgress shows more as it is logged, until it is interrupted. A daemon that is
// started anew goes on where the one before ended.
func (a *App) followEgress(ctx context.Context, daemon *client.Client, of client.EgressOf, last int64) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for wasDown := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var down bool
		var err error
		last, down, err = a.showEgressAfter(ctx, daemon, of, last)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if down && !wasDown {
			fmt.Fprintln(os.Stderr, "the daemon is down; waiting for it")
		}
		wasDown = down
	}
}

// showEgressAfter shows what came after the last; down is that no daemon answered, or not
// to the end.
func (a *App) showEgressAfter(ctx context.Context, daemon *client.Client, of client.EgressOf, last int64) (_ int64, down bool, _ error) {
	var refusal *client.Problem
	for e, err := range daemon.EgressAfter(of, last).Each(ctx) {
		if err != nil && !errors.As(err, &refusal) {
			return last, true, nil
		}
		if err == nil {
			err = a.showEgress(e)
		}
		if err != nil {
			return last, false, err
		}
		last = e.N
	}
	return last, false, nil
}
