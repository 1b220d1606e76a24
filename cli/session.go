package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

// agentClient is a client that comes as the agent of $WRIT_TOKEN.
func (a *App) agentClient(ctx context.Context) (*client.Client, error) {
	token, err := agentToken("")
	if err != nil {
		return nil, err
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c.Token = token
	return c, nil
}

// eitherClient comes as the agent of $WRIT_TOKEN where there is one, else as the
// operator, who sees all.
func (a *App) eitherClient(ctx context.Context) (*client.Client, error) {
	c, err := a.Connect(ctx)
	if err == nil {
		c.Token = os.Getenv("WRIT_TOKEN")
	}
	return c, err
}

func (a *App) sessionCommand() *cobra.Command {
	return Noun("session", "Sessions: stretches of an agent's work",
		"  writ session start nightly\n  writ session list\n  writ session end ses_abc123",
		a.sessionStart(), a.sessionList(), a.sessionEnd())
}

func (a *App) sessionStart() *cobra.Command {
	return &cobra.Command{
		Use: "start [NAME]", Short: "Open a session of the agent of $WRIT_TOKEN",
		Long: `Open a session. Calls that name it belong to it: limits per session count in it,
and background jobs and delegated agents end with it. Calls that name none belong
to the token's session of the day. A session ends after an hour idle.`,
		Example: "  export WRIT_SESSION=$(writ session start --json | jq -r .id)\n  writ session start nightly",
		Args:    atMostOne("at most a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.agentClient(cmd.Context())
			if err != nil {
				return err
			}
			s, err := c.OpenSession(cmd.Context(), client.SessionRequest{Name: first(args)})
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(s)
			}
			fmt.Printf("session %s of agent %s:\n\n  export WRIT_SESSION=%s\n\n", s.ID, s.Agent, s.ID)
			return nil
		},
	}
}

func (a *App) sessionList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List sessions, newest first: the agent's with $WRIT_TOKEN, else all", Args: Exactly(0, "no arguments"),
		Example: "  writ session list\n  WRIT_TOKEN= writ session list     everybody's",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.eitherClient(cmd.Context())
			if err != nil {
				return err
			}
			all, err := c.Sessions().Newest(cmd.Context(), 100)
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tAGENT\tNAME\tOPENED\tSTATE")
			for _, s := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Agent, OneLine(s.Name), Ago(s.Opened), scopeState(s.Ended, s.Why))
			}
			return w.Flush()
		},
	}
}

// scopeState says whether a session or a task is open, or why it ended.
func scopeState(ended, why string) string {
	if ended == "" {
		return "open"
	}
	return fmt.Sprintf("ended %s (%s)", Ago(ended), why)
}

func (a *App) sessionEnd() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(sessionIDs),
		Use:               "end [ID]", Short: "End a session and all it owns", Args: atMostOne("a session's id; 'writ session list' shows them"),
		Long:    "End a session, its tasks, what runs in them, their background jobs and the agents\ndelegated in it. Without an id it is $WRIT_SESSION.",
		Example: "  writ session end\n  writ session end ses_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cmp.Or(first(args), os.Getenv("WRIT_SESSION"))
			if id == "" {
				return Usagef("expected a session's id, or one in $WRIT_SESSION")
			}
			c, err := a.eitherClient(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.EndSession(cmd.Context(), id); err != nil {
				return err
			}
			return a.said("ended", id)
		},
	}
}

// said reports what was done to what.
func (a *App) said(did, what string) error {
	if a.JSON {
		return PrintJSON(map[string]string{"status": did, "id": what})
	}
	fmt.Println(did, what)
	return nil
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || slices.Contains(args, "") {
			return Usagef("expected %s", what)
		}
		return nil
	}
}

func sessionIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	c.Token = os.Getenv("WRIT_TOKEN")
	all, _ := c.Sessions().Newest(ctx, 100) // nothing to offer is not an error
	for _, s := range all {
		if s.Ended == "" {
			out = append(out, s.ID+"\t"+s.Agent+" "+s.Name)
		}
	}
	return out
}
