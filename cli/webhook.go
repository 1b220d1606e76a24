package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) webhookCommand() *cobra.Command {
	c := Noun("webhook", "Who outside is told what happens to calls",
		"  writ webhook list\n  writ webhook test ops\n  writ webhook retry ops",
		a.webhookList(), a.webhookTest(), a.webhookRetry())
	c.Long = `Who outside is told what happens to calls, as approvals.webhooks of the configuration
says. Messages go out in order, one after another. One that fails is tried again, and
holds up those behind it; after give_up_after the webhook is stopped until you say so.`
	return c
}

const aWebhook = "a webhook's name; 'writ webhook list' shows them"

func webhookNames(ctx context.Context, c *client.Client) []string {
	var out []string
	all, _ := c.Webhooks().All(ctx)
	for _, w := range all {
		out = append(out, w.Name+"\t"+w.State)
	}
	return out
}

func (a *App) webhookList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the webhooks and how each is doing", Args: Exactly(0, "no arguments"), Example: "  writ webhook list\n  writ webhook list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := daemon.Webhooks().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			return showWebhooks(all)
		},
	}
}

func showWebhooks(all []client.Webhook) error {
	if len(all) == 0 {
		fmt.Println("there are no webhooks; approvals.webhooks in the configuration adds some")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tFORMAT\tURL\tEVENTS\tDELIVERED\tWHERE")
	for _, h := range all {
		events := strings.ReplaceAll(strings.Join(h.Events, " "), "tool_invocation_", "")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, h.State, h.Format, OneLine(h.URL), events, cmp.Or(h.Delivered[:min(19, len(h.Delivered))], "-"), OneLine(h.Where))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, h := range all {
		if h.Failing == "" {
			continue
		}
		fmt.Printf("\n%s fails since %s: %s\n", h.Name, h.Failing[:min(19, len(h.Failing))], OneLine(h.Failure))
		next, err := time.Parse(time.RFC3339Nano, h.Next)
		switch {
		case h.Stopped != "":
			fmt.Printf("  it was given up; mend it and run: %s webhook retry %s\n", Self(), h.Name)
		case err == nil:
			fmt.Printf("  next try in %s, after %d that failed; at once: %s webhook retry %s\n", shortly(max(time.Until(next), 0).Round(time.Second)), h.Attempts, Self(), h.Name)
		}
	}
	return nil
}

func (a *App) webhookTest() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(webhookNames),
		Use:               "test NAME", Short: "Send a message that says nothing has happened", Args: Exactly(1, aWebhook), Example: "  writ webhook test ops",
		Long: `Send a webhook a message that says nothing has happened, at once and beside all others,
and say how that went. It is signed like any other. Exits with 1 if it was not taken.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			t, err := daemon.TestWebhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case a.JSON:
				err = PrintJSON(t)
			case t.OK:
				fmt.Printf("%s took it\n", t.Name)
			default:
				fmt.Fprintf(os.Stderr, "writ: %s did not take it: %s\n", t.Name, OneLine(t.Failure))
			}
			if err == nil && !t.OK {
				err = ExitCode(ExitError)
			}
			return err
		},
	}
}

func (a *App) webhookRetry() *cobra.Command {
	var how client.WebhookRetry
	c := &cobra.Command{
		ValidArgsFunction: a.offer(webhookNames),
		Use:               "retry NAME", Short: "Try again at once what failed or was given up", Args: Exactly(1, aWebhook),
		Example: "  writ webhook retry ops\n  writ webhook retry ops --from-now",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.RetryWebhook(cmd.Context(), args[0], how); err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(client.Status{Status: "retrying"})
			}
			fmt.Printf("%s is tried again; '%s webhook list' says how it goes\n", args[0], Self())
			return nil
		},
	}
	c.Flags().BoolVar(&how.FromNow, "from-now", false, "leave out what happened meanwhile")
	return c
}
