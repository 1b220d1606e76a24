package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *app) approvalCommand() *cobra.Command {
	return noun("approval", "See and answer what waits for a person",
		a.approvalList(), a.approvalShow(), a.approvalDecide(true), a.approvalDecide(false))
}

func (a *app) approvalList() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use: "list", Short: "List requests that wait", Args: exactly(0, "no arguments"),
		Example: "  writ approval list\n  writ approval list --state all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if !slices.Contains(states, state) {
				return usagef("there is no state %q; there are %s", state, strings.Join(states, ", "))
			}
			if state == "all" {
				state = ""
			}
			rs, err := daemon.Approvals(state).All(cmd.Context())
			if err != nil {
				return err
			}
			slices.Reverse(rs) // the newest last, beside the prompt
			if a.json {
				return a.print(rs)
			}
			if len(rs) == 0 {
				fmt.Println("nothing waits")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSTATE\tAGENT\tTOOL\tASKED\tEXPIRES\tARGUMENTS")
			for _, r := range rs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.State, r.Agent, r.Tool, ago(r.Requested), until(r.Expires), oneLine(r.Preview))
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", "pending", "pending, approved, rejected, expired, void, used or all")
	a.flagValues(c, "state", stateNames)
	return c
}

var states = []string{"pending", "approved", "rejected", "expired", "void", "used", "all"}

func ago(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	return time.Since(t).Round(time.Second).String() + " ago"
}

func until(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	if d := time.Until(t); d > 0 {
		return "in " + d.Round(time.Minute).String()
	}
	return "over"
}

func (a *app) approvalShow() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(pendingIDs),
		Use:               "show ID", Short: "Show one request whole: what will run, what it can reach, why it asks",
		Example: "  writ approval show ap_abc123", Args: exactly(1, "the id of a request; 'writ approval list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := daemon.Approval(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(r)
			}
			showRequest(r)
			return nil
		},
	}
}

// showRequest prints everything that the digest binds. Nothing is cut.
func showRequest(r client.Approval) {
	fmt.Printf("request   %s (%s)\nagent     %s\ntool      %s\nasked     %s, expires %s\n", r.ID, r.State, oneLine(r.Agent), oneLine(r.Tool), ago(r.Requested), until(r.Expires))
	if r.By != "" {
		fmt.Printf("decided   by %s %s %s\n", r.By, ago(r.Decided), oneLine(r.Reason))
	}
	if s := r.Shown; s != nil {
		fmt.Printf("action    %s, risk %s, class %s\ndirectory %s\n\narguments (%d bytes)\n", s.Action, s.Risk, s.Class, oneLine(s.Dir), len(s.Args))
		var pretty bytes.Buffer
		if json.Indent(&pretty, s.Args, "  ", "  ") != nil {
			pretty.Write(s.Args)
		}
		fmt.Printf("  %s\n", visible(pretty.String()))
		for _, n := range s.Resolved {
			fmt.Printf("  %s is %s\n", oneLine(n.Argument), oneLine(n.Is))
		}
		fmt.Println("\nwhy it asks")
		showReasons(s.Reasons)
		fmt.Println("\nwhat it can reach")
		showReach(s.Confine)
		fmt.Println()
	} else {
		fmt.Println("(arguments are kept only while a request is open)")
	}
	fmt.Printf("digest    %s\n", r.Digest)
}

func (a *app) approvalDecide(approve bool) *cobra.Command {
	use, short := "reject ID", "Reject a request"
	if approve {
		use, short = "approve ID", "Approve a request, once, as it is shown"
	}
	var src passphraseSource
	var reason, digest string
	c := &cobra.Command{
		Use: use, Short: short, Args: exactly(1, "the id of a request; 'writ approval list' shows them"),
		Long: short + `. It takes the passphrase of a person with the role
approver or admin, typed on the terminal.`,
		Example: fmt.Sprintf("  writ approval %s ap_abc123", use[:len(use)-3]),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			return a.decide(cmd.Context(), daemon, args[0], digest, approve, reason, &src)
		},
	}
	c.ValidArgsFunction = a.offer(pendingIDs)
	personFlags(c, &src)
	c.Flags().StringVar(&digest, "digest", "", "decide only if the request has this digest (default: the one shown now)")
	if !approve {
		c.Flags().StringVar(&reason, "reason", "", "why; the agent is told, marked as a person's words")
	}
	return c
}

func personFlags(c *cobra.Command, src *passphraseSource) {
	c.Flags().StringVar(&src.name, "as", "", "who you are (default: the only person there is)")
	c.Flags().BoolVar(&src.stdin, "passphrase-stdin", false, "read the passphrase from standard input, for password managers")
}

// decide shows the request and sends back the digest of what was shown.
func (a *app) decide(ctx context.Context, daemon *client.Client, id, digest string, approve bool, reason string, src *passphraseSource) error {
	r, err := daemon.Approval(ctx, id)
	if err != nil {
		return err
	}
	if !a.json {
		showRequest(r)
	}
	if digest == "" {
		digest = r.Digest
	}
	by, err := src.credentials(ctx)
	if err != nil {
		return err
	}
	r, err = daemon.Decide(ctx, id, client.DecisionRequest{Digest: digest, Approve: approve, Reason: reason, By: by})
	if err != nil {
		return err
	}
	if a.json {
		return a.print(r)
	}
	fmt.Printf("%s %s by %s\n", r.ID, r.State, r.By)
	if approve {
		fmt.Println("the call runs now if its caller waits, else when the agent makes the same call again")
	}
	return nil
}
