package cli

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) sandboxCommand() *cobra.Command {
	return Noun("sandbox", "Sandboxes: what runs where, and what is kept for the next call",
		"  writ sandbox list\n  writ sandbox show box_abc123\n  writ sandbox logs box_abc123 --follow\n  writ sandbox exec box_abc123 -- bash -c 'ls -la'\n  writ sandbox kill box_abc123",
		a.sandboxList(), a.sandboxShow(), a.sandboxLogs(), a.sandboxExec(), a.sandboxKill())
}

const aSandbox = "the id of a sandbox; 'writ sandbox list' shows them"

func (a *App) sandboxList() *cobra.Command {
	ended, limit := false, number{n: 50, least: 1, most: 1000}
	c := &cobra.Command{
		Use: "list", Short: "List the sandboxes there are, the oldest first", Args: Exactly(0, "no arguments"),
		Long: `List the sandboxes there are. A kept one is used again by calls of the same agent, for
the same person, in the same session, that reach the same; what one call leaves in
it is not there for the next (sandboxing.lifecycle).

With --ended those there were, the newest first, also of daemons before: all that were
kept, and all containers. One that was lost was there when its daemon was gone.`,
		Example: "  writ sandbox list\n  writ sandbox list --json\n  writ sandbox list --ended --limit 10",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if ended {
				page, err := c.EndedSandboxes().Page(cmd.Context(), limit.n, "")
				if err != nil {
					return err
				}
				return a.endedSandboxes(page)
			}
			all, err := c.Sandboxes().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			if len(all) == 0 {
				fmt.Println("there are none; they are made when a call needs one")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tDRIVER\tAGENT\tRUNS\tCALLS\tUSED")
			for _, b := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", b.ID, b.Driver, OneLine(b.Agent), runsNow(b), b.Calls, agoOf(b.Used))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&ended, "ended", false, "those there were, the newest first")
	c.Flags().Var(&limit, "limit", "with --ended: how many; at most 1000")
	return c
}

func (a *App) endedSandboxes(page client.Page[client.Sandbox]) error {
	if a.JSON {
		return PrintJSON(page.Data)
	}
	if len(page.Data) == 0 {
		fmt.Println("there were none that were kept, and no containers")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tDRIVER\tAGENT\tCONTAINER\tCALLS\tSINCE\tENDED")
	for _, b := range page.Data {
		over := toSecond(b.Ended)
		if b.Lost {
			over = "lost, found " + over
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", b.ID, b.Driver, OneLine(b.Agent), OneLine(ShortID(b.Container)), b.Calls, toSecond(b.Since), over)
	}
	if page.HasMore {
		defer fmt.Fprintln(os.Stderr, "older ones are left out; --limit shows up to 1000")
	}
	return w.Flush()
}

func runsNow(b client.Sandbox) string {
	if b.Call == "" {
		return "nothing (kept)"
	}
	if strings.HasPrefix(b.Tool, "server ") { // of writ's own, and no call
		return OneLine(b.Tool)
	}
	return OneLine(b.Tool) + " " + b.Call
}

func agoOf(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return shortly(time.Since(t).Round(time.Second)) + " ago"
}

func (a *App) sandboxKill() *cobra.Command {
	c := &cobra.Command{
		Use: "kill ID", Short: "End a sandbox and what runs in it", Args: Exactly(1, aSandbox),
		Long:    `End a sandbox. The call in it fails and says why; the next call gets another sandbox. To keep an agent from calling again: writ stop AGENT.`,
		Example: "  writ sandbox kill box_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.KillSandbox(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.Tell("killed "+args[0], map[string]string{"status": "killed", "id": args[0]})
		},
	}
	c.ValidArgsFunction = a.offer(sandboxIDs)
	return c
}

// ShortID is as much of an id as engines show.
func ShortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return OneLine(id[:min(12, len(id))])
}
