package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) invocationCommand() *cobra.Command {
	return Noun("invocation", "See every call and what became of it; end one; settle one whose outcome is unknown",
		`  writ invocation list --state running
  writ invocation show call_abc123
  writ invocation cancel call_abc123
  writ invocation resolve call_abc123 --happened yes --note 'the ticket is there'`,
		a.invocationList(), a.invocationShow(), a.invocationCancel(), a.invocationResolve())
}

var invocationStates = []string{"pending", "running", "completed", "failed", "rejected", "expired", "cancelled", "unknown", "denied", "all"}

func (a *App) invocationList() *cobra.Command {
	var state string
	limit := number{n: 50, least: 1, most: 1000}
	c := &cobra.Command{
		Use: "list", Short: "List calls, the newest last", Args: Exactly(0, "no arguments"),
		Example: "  writ invocation list\n  writ invocation list --state unknown\n  writ invocation list --limit 500 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(invocationStates, state) {
				return Usagef("there is no state %q; there are %s", state, strings.Join(invocationStates, ", "))
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			page, err := daemon.Invocations(strings.TrimPrefix(state, "all")).Page(cmd.Context(), limit.n, "")
			if err != nil {
				return err
			}
			slices.Reverse(page.Data)
			if err := resolutions(cmd.Context(), daemon, page.Data, state); err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(page.Data)
			}
			return listInvocations(page)
		},
	}
	c.Flags().StringVar(&state, "state", "all", strings.Join(invocationStates, ", ")+"; unknown are those that nobody has resolved")
	c.Flags().Var(&limit, "limit", "how many, the newest; at most 1000")
	a.FlagWords(c, "state", invocationStates)
	return c
}

// endings are why a call ended before it ran, or in the middle, where its outcome is
// not yet a word for that.
var endings = map[string]string{
	"granted":  "a grant covers it",
	"reloaded": "the configuration changed",
	"stopped":  "the agent was stopped",
	"changed":  "what it would do changed",
}

// ending says in words how a call ended.
func ending(i client.Invocation) string {
	switch r := i.Resolution; {
	case r != nil:
		return fmt.Sprintf("resolved by %s: it happened: %s", OneLine(r.By), r.Happened)
	case i.Status == "unknown":
		return "not resolved"
	case i.Status == "cancelled" && i.ReplacedBy != "":
		return "edited into " + i.ReplacedBy
	case i.Status == "cancelled":
		return cmp.Or(endings[i.Outcome], i.Outcome)
	}
	return i.Outcome
}

func listInvocations(page client.Page[client.Invocation]) error {
	if len(page.Data) == 0 {
		fmt.Println("none")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATUS\tAPPROVAL\tAGENT\tTOOL\tCLASS\tASKED\tOUTCOME")
	for _, i := range page.Data {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Status, i.ApprovalStatus, OneLine(i.Agent), OneLine(i.Tool), i.Class, Ago(i.Requested), ending(i))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.HasMore {
		fmt.Fprintf(os.Stderr, "older ones are left out; --limit shows up to 1000\n")
	}
	return nil
}

func (a *App) invocationShow() *cobra.Command {
	wait := lasting{most: 5 * time.Minute}
	c := &cobra.Command{
		Use: "show ID", Short: "Show one call: its life, what was measured, what came of it", Args: Exactly(1, "the id of a call; 'writ invocation list' shows them"),
		Example: "  writ invocation show call_abc123\n  writ invocation show call_abc123 --wait 60s",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.Invocation(cmd.Context(), args[0], wait.Duration)
			if err != nil {
				return err
			}
			return a.showInvocation(i)
		},
	}
	c.ValidArgsFunction = a.offer(openInvocations)
	c.Flags().Var(&wait, "wait", "wait so long for it to end, at most 5m")
	return c
}

func (a *App) showInvocation(i client.Invocation) error {
	if a.JSON {
		return PrintJSON(i)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("invocation", "%s", i.ID)
	status := i.Status
	if end := ending(i); end != "" && end != i.Status {
		status += " (" + end + ")"
	}
	line("status", "%s, approval %s", status, i.ApprovalStatus)
	line("agent", "%s", OneLine(i.Agent))
	line("tool", "%s, %s, class %s, risk %s", OneLine(i.Tool), i.Action, i.Class, i.Risk)
	line("arguments", "%d bytes, sha256 %s", i.ArgsBytes, i.ArgsDigest)
	line("asked", "%s", i.Requested)
	if i.DecidedBy != "" {
		line("decided", "%s by %s %s", i.Decided, OneLine(i.DecidedBy), OneLine(i.ApprovalReason))
	}
	if i.Grant != "" {
		line("grant", "%s", i.Grant)
	}
	if i.Started != "" {
		line("started", "%s", i.Started)
	}
	if i.Attempt > 1 {
		line("taken up", "%d times", i.Attempt)
	}
	if i.Completed != "" {
		line("ended", "%s", i.Completed)
	}
	if i.Micros != nil {
		line("took", "%s", time.Duration(*i.Micros)*time.Microsecond)
	}
	if i.CPU != nil {
		line("processor", "%s", time.Duration(*i.CPU)*time.Microsecond)
	}
	if i.ResultBytes != nil {
		line("gave back", "%d bytes", *i.ResultBytes)
	}
	if i.CostEstimate != nil {
		line("cost", "%g, as its caller says", *i.CostEstimate)
	}
	if i.ReplacedBy != "" {
		line("edited into", "%s", i.ReplacedBy)
	}
	if i.EditOf != "" {
		line("edited from", "%s", i.EditOf)
	}
	if r := i.Resolution; r != nil {
		line("resolved", "%s by %s: it happened: %s %s", r.At, OneLine(r.By), r.Happened, OneLine(r.Note))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if i.Args != nil {
		fmt.Println("\narguments")
		if err := writeArguments(os.Stdout, i.Args); err != nil {
			return err
		}
	}
	switch {
	case i.Resolution != nil:
	case i.Status == "unknown":
		fmt.Printf("\nthe daemon was cut off while it ran; look at what it was to change, then:\n  %s invocation resolve %s --happened yes|no|partly --note TEXT\n", Self(), i.ID)
	case i.Error != nil:
		fmt.Printf("\n%s\n", Visible(i.Error.Detail))
	case i.Result != nil:
		fmt.Printf("\n%s\n", Visible(i.Result.Content))
	}
	return nil
}

func (a *App) invocationCancel() *cobra.Command {
	c := &cobra.Command{
		Use: "cancel ID", Short: "End a call: what waits is not asked about any more, what runs is killed with all it started",
		Example: "  writ invocation cancel call_abc123", Args: Exactly(1, "the id of a call; 'writ invocation list --state running' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.CancelInvocation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(i)
			}
			fmt.Printf("%s %s\n", i.ID, i.Status)
			return nil
		},
	}
	c.ValidArgsFunction = a.offer(openInvocations)
	return c
}
