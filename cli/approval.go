package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) approvalCommand() *cobra.Command {
	return Noun("approval", "See and answer what waits for a person",
		`  writ approval list
  writ approval show call_abc123
  writ approval approve call_abc123
  writ approval reject call_abc123 --reason 'use the staging copy'
  writ approval watch                     all of it on a live screen`,
		a.approvalList(), a.approvalShow(), a.approvalDecide(true), a.approvalDecide(false), a.approvalEdit(),
		a.approvalGrant(), a.approvalGrants(), a.approvalRevoke(), a.approvalWatch())
}

func (a *App) approvalList() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use: "list", Short: "List requests that wait", Args: Exactly(0, "no arguments"),
		Example: "  writ approval list\n  writ approval list --state all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if !slices.Contains(states, state) {
				return Usagef("there is no state %q; there are %s", state, strings.Join(states, ", "))
			}
			if state == "all" {
				state = ""
			}
			rs, err := daemon.Approvals(state).All(cmd.Context())
			if err != nil {
				return err
			}
			slices.Reverse(rs) // the newest last, beside the prompt
			if a.JSON {
				return PrintJSON(rs)
			}
			if len(rs) == 0 {
				fmt.Println("nothing waits")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSTATE\tAGENT\tTOOL\tASKED\tEXPIRES\tARGUMENTS")
			for _, r := range rs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.State, r.Agent, r.Tool, Ago(r.Requested), expires(r.State, r.Expires), r.Preview)
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", "pending", "pending, approved, used, rejected, expired, void or all")
	a.flagValues(c, "state", stateNames)
	return c
}

var states = []string{"pending", "approved", "rejected", "expired", "void", "used", "all"}

func Ago(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	return Span(time.Since(t)) + " ago"
}

// Span is a length of time in the two largest units that it has.
func Span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%ds", max(0, d)/time.Second)
	}
}

func until(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	if t.Year() == 9999 {
		return "never"
	}
	if d := time.Until(t); d > 0 {
		return "in " + Span(d)
	}
	return Span(-time.Until(t)) + " ago"
}

// expires is until, of what can expire or has; what ended otherwise does not.
func expires(state, at string) string {
	switch state {
	case "pending", "approved", "expired", "live":
		return until(at)
	}
	return "-"
}

func (a *App) approvalShow() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(pendingIDs),
		Use:               "show ID", Short: "Show one request whole: what will run, what it can reach, why it asks",
		Example: "  writ approval show call_abc123", Args: Exactly(1, "the id of a request; 'writ approval list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := daemon.Approval(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(r)
			}
			end, err := endOf(cmd.Context(), daemon, r)
			if err != nil {
				return err
			}
			return a.showRequest(cmd.Context(), r, end)
		},
	}
}

// endOf says when and why a request ended that nobody answered.
func endOf(ctx context.Context, daemon *client.Client, r client.Approval) (string, error) {
	if r.State != "void" || r.ReplacedBy != "" { // what it was edited into is shown anyway
		return "", nil
	}
	i, err := daemon.Invocation(ctx, r.ID, 0)
	return Ago(i.Completed) + ": " + ending(i), err
}

func (a *App) approvalDecide(approve bool) *cobra.Command {
	use, short, example := "reject ID", "Reject a request", "  writ approval reject call_abc123 --reason 'use the staging copy'"
	if approve {
		use, short, example = "approve ID", "Approve a request, once, as it is shown", "  writ approval approve call_abc123\n  writ approval approve call_abc123 --as alice"
	}
	var src PassphraseSource
	var reason, digest string
	c := &cobra.Command{
		Use: use, Short: short, Args: Exactly(1, "the id of a request; 'writ approval list' shows them"),
		Long: short + `. It takes the passphrase of a person with the role
approver or admin, typed on the terminal.`,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bounded("reason", reason, MaxWords); err != nil {
				return err
			}
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			return a.decide(cmd.Context(), daemon, args[0], client.DecisionRequest{Digest: digest, Approve: approve, Reason: reason}, &src)
		},
	}
	c.ValidArgsFunction = a.offer(pendingIDs)
	a.PersonFlags(c, &src)
	c.Flags().StringVar(&digest, "digest", "", "decide only if the request has this digest (default: the one shown now)")
	if !approve {
		c.Flags().StringVar(&reason, "reason", "", fmt.Sprintf("why, at most %d bytes; the agent is told, marked as a person's words", MaxWords))
	}
	return c
}

func (a *App) PersonFlags(c *cobra.Command, src *PassphraseSource) {
	c.Flags().StringVar(&src.Name, "as", "", "who you are (default: the only person there is)")
	a.flagValues(c, "as", personNames)
	c.Flags().BoolVar(&src.Stdin, "passphrase-stdin", false, "read the passphrase from standard input, for password managers")
}

// showRequest prints a request whole, page by page where the terminal is too small.
func (a *App) showRequest(ctx context.Context, r client.Approval, end string) error {
	var text strings.Builder
	if err := writeRequest(&text, r, end); err != nil {
		return err
	}
	return readThrough(ctx, text.String())
}

// decide shows the request and sends back the digest of what was shown.
func (a *App) decide(ctx context.Context, daemon *client.Client, id string, req client.DecisionRequest, src *PassphraseSource) error {
	r, err := daemon.Approval(ctx, id)
	if err != nil {
		return err
	}
	if !a.JSON {
		if err := a.showRequest(ctx, r, ""); err != nil {
			return err
		}
	}
	if req.Digest == "" {
		req.Digest = r.Digest
	}
	return a.answer(ctx, daemon, id, req, src)
}

// answer sends a decision with a person's passphrase, and says what came of it.
func (a *App) answer(ctx context.Context, daemon *client.Client, id string, req client.DecisionRequest, src *PassphraseSource) (err error) {
	if req.By, err = src.credentials(ctx); err != nil {
		return err
	}
	r, err := daemon.Decide(ctx, id, req)
	if err != nil {
		return err
	}
	if a.JSON {
		return PrintJSON(r)
	}
	switch {
	case r.State == "pending":
		fmt.Printf("%s has %d of %d answers it takes\n", r.ID, len(r.Votes), r.Quorum)
	case req.Grant != nil:
		fmt.Printf("%s approved by %s; it runs now, once\n%s covers %d later calls; to end it: %s approval revoke %s\n", r.ID, r.By, r.Grant, req.Grant.Uses, Self(), r.Grant)
	case req.Approve:
		fmt.Printf("%s approved by %s; it runs now, once\n", r.ID, r.By)
	default:
		fmt.Printf("%s %s by %s\n", r.ID, r.State, r.By)
	}
	return nil
}
