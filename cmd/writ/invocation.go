package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *app) invocationCommand() *cobra.Command {
	return noun("invocation", "See every call and what became of it; end one; settle one whose outcome is unknown",
		a.invocationList(), a.invocationShow(), a.invocationCancel(), a.invocationResolve())
}

var invocationStates = []string{"pending", "running", "completed", "failed", "rejected", "expired", "cancelled", "unknown", "denied", "all"}

func (a *app) invocationList() *cobra.Command {
	var state string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List calls, the newest last", Args: exactly(0, "no arguments"),
		Example: "  writ invocation list\n  writ invocation list --state unknown\n  writ invocation list --limit 500 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(invocationStates, state) {
				return usagef("there is no state %q; there are %s", state, strings.Join(invocationStates, ", "))
			}
			if limit < 1 || limit > 1000 {
				return usagef("--limit is a number from 1 to 1000")
			}
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			page, err := daemon.Invocations(strings.TrimPrefix(state, "all")).Page(cmd.Context(), limit, "")
			if err != nil {
				return err
			}
			slices.Reverse(page.Data)
			if a.json {
				return a.print(page.Data)
			}
			return listInvocations(page)
		},
	}
	c.Flags().StringVar(&state, "state", "all", strings.Join(invocationStates, ", "))
	c.Flags().IntVar(&limit, "limit", 50, "how many, the newest")
	a.flagWords(c, "state", invocationStates)
	return c
}

func listInvocations(page client.Page[client.Invocation]) error {
	if len(page.Data) == 0 {
		fmt.Println("none")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATUS\tAPPROVAL\tAGENT\tTOOL\tCLASS\tASKED\tOUTCOME")
	for _, i := range page.Data {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Status, i.ApprovalStatus, oneLine(i.Agent), oneLine(i.Tool), i.Class, ago(i.Requested), i.Outcome)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.HasMore {
		fmt.Fprintf(os.Stderr, "older ones are left out; --limit shows up to 1000\n")
	}
	return nil
}

func (a *app) invocationShow() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "show ID", Short: "Show one call: its life, what was measured, what came of it", Args: exactly(1, "the id of a call; 'writ invocation list' shows them"),
		Example: "  writ invocation show call_abc123\n  writ invocation show call_abc123 --wait 60s",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.Invocation(cmd.Context(), args[0], wait)
			if err != nil {
				return err
			}
			return a.showInvocation(i)
		},
	}
	c.ValidArgsFunction = a.offer(openInvocations)
	c.Flags().DurationVar(&wait, "wait", 0, "wait so long for it to end, at most 5m")
	return c
}

func (a *app) showInvocation(i client.Invocation) error {
	if a.json {
		return a.print(i)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("invocation", "%s", i.ID)
	status := i.Status
	if i.Outcome != "" && i.Outcome != i.Status {
		status += " (" + i.Outcome + ")"
	}
	line("status", "%s, approval %s", status, i.ApprovalStatus)
	line("agent", "%s", oneLine(i.Agent))
	line("tool", "%s, %s, class %s, risk %s", oneLine(i.Tool), i.Action, i.Class, i.Risk)
	line("arguments", "%d bytes, sha256 %s", i.ArgsBytes, i.ArgsDigest)
	line("asked", "%s", i.Requested)
	if i.DecidedBy != "" {
		line("decided", "%s by %s %s", i.Decided, oneLine(i.DecidedBy), oneLine(i.ApprovalReason))
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
		line("resolved", "%s by %s: it happened: %s %s", r.At, oneLine(r.By), r.Happened, oneLine(r.Note))
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
	case i.Error != nil:
		fmt.Printf("\n%s\n", visible(i.Error.Detail))
	case i.Result != nil:
		fmt.Printf("\n%s\n", visible(i.Result.Content))
	case i.Status == "unknown" && i.Resolution == nil:
		fmt.Println("\nthe daemon was cut off while it ran; look at what it was to change, then: writ invocation resolve " + i.ID + " --happened yes|no|partly --note HOW")
	}
	return nil
}

func (a *app) invocationCancel() *cobra.Command {
	c := &cobra.Command{
		Use: "cancel ID", Short: "End a call: what waits is not asked about any more, what runs is killed with all it started",
		Example: "  writ invocation cancel call_abc123", Args: exactly(1, "the id of a call; 'writ invocation list --state running' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.CancelInvocation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(i)
			}
			fmt.Printf("%s %s\n", i.ID, i.Status)
			return nil
		},
	}
	c.ValidArgsFunction = a.offer(openInvocations)
	return c
}

func (a *app) invocationResolve() *cobra.Command {
	var src passphraseSource
	var happened, note string
	c := &cobra.Command{
		Use: "resolve ID", Short: "Say what you found out about a call whose outcome is unknown", Args: exactly(1, "the id of a call; 'writ invocation list --state unknown' shows them"),
		Long: `Say what you found out about a call whose outcome is unknown: the daemon was cut
off while it ran. Its status stays unknown for ever, because that is what was known;
your word is kept beside it. Nothing is run. It takes your passphrase.`,
		Example: "  writ invocation resolve call_abc123 --happened yes --note 'the ticket is there'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(happenings, happened) {
				return usagef("--happened is one of %s", strings.Join(happenings, ", "))
			}
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if note == "" {
				return usagef("--note: say how you know; it is kept, and cannot be added later")
			}
			if err := src.who(cmd.Context(), daemon); err != nil {
				return err
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.ResolveInvocation(cmd.Context(), args[0], client.ResolutionRequest{Happened: happened, Note: note, By: by})
			if err != nil {
				return err
			}
			return a.showInvocation(i)
		},
	}
	c.ValidArgsFunction = a.offer(unknownInvocations)
	a.personFlags(c, &src)
	c.Flags().StringVar(&happened, "happened", "", "yes, no or partly")
	c.Flags().StringVar(&note, "note", "", "how you know")
	a.flagWords(c, "happened", happenings)
	return c
}

var happenings = []string{"yes", "no", "partly"}
