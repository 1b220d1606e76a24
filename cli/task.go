package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) taskCommand() *cobra.Command {
	return Noun("task", "Tasks: pieces of work inside a session",
		"  writ task start fix-tests\n  writ task list\n  writ task end fix-tests",
		a.taskStart(), a.taskList(), a.taskEnd(), a.taskRate())
}

func (a *App) taskStart() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use: "start NAME", Short: "Open a task of the agent of $WRIT_TOKEN, or find the open one of that name",
		Long: `Open a task in a session. Calls that name it belong to it: limits per task and
only_after count in it. A call that names a task which is not open opens it as well.
A task ends after an hour idle.`,
		Example: "  export WRIT_TASK=$(writ task start fix-tests --json | jq -r .id)\n  writ call shell_command command='make test' --task fix-tests",
		Args:    Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.agentClient(cmd.Context())
			if err != nil {
				return err
			}
			t, err := c.StartTask(cmd.Context(), client.TaskRequest{Name: args[0], Session: session})
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(t)
			}
			fmt.Printf("task %s (%s) in session %s:\n\n  export WRIT_TASK=%s\n\n", t.ID, OneLine(t.Name), t.Session, t.ID)
			return nil
		},
	}
	c.Flags().StringVar(&session, "session", os.Getenv("WRIT_SESSION"), "the session (default $WRIT_SESSION, else the token's session of the day)")
	return c
}

func (a *App) taskList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tasks, newest first: the agent's with $WRIT_TOKEN, else all", Args: Exactly(0, "no arguments"), Example: "  writ task list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.eitherClient(cmd.Context())
			if err != nil {
				return err
			}
			all, err := c.Tasks().Newest(cmd.Context(), 100)
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tAGENT\tNAME\tOPENED\tSTATE\tRATING")
			for _, t := range all {
				rating := "-"
				if t.Rating != nil {
					rating = fmt.Sprintf("%d by %s", *t.Rating, t.RatedBy)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Agent, OneLine(t.Name), Ago(t.Opened), scopeState(t.Ended, t.Why), rating)
			}
			return w.Flush()
		},
	}
}

func (a *App) taskEnd() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(openTasks),
		Use:               "end ID|NAME", Short: "End a task and all it owns", Args: Exactly(1, "a task's id or name; 'writ task list' shows them"), Example: "  writ task end fix-tests\n  writ task end task_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.eitherClient(cmd.Context())
			if err != nil {
				return err
			}
			id, err := taskID(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if err := c.EndTask(cmd.Context(), id); err != nil {
				return err
			}
			return a.said("ended", id)
		},
	}
}

func (a *App) taskRate() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		ValidArgsFunction: a.offer(taskIDs),
		Use:               "rate ID RATING", Short: "Say how good a task's work was, from 0 to 10",
		Long:    "Rate a task, open or ended, from 0 to 10. It takes a person's passphrase. Ratings\nare written down, and a later one replaces an earlier one.",
		Example: "  writ task rate task_abc123 8", Args: Exactly(2, "a task's id and a rating from 0 to 10"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rating, err := strconv.Atoi(args[1])
			if err != nil || rating < 0 || rating > 10 {
				return Usagef("%q is not a rating; give a whole number from 0 to 10", args[1])
			}
			c, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.RateTask(cmd.Context(), args[0], client.RatingRequest{Rating: rating, By: by}); err != nil {
				return err
			}
			return a.said("rated", args[0])
		},
	}
	a.PersonFlags(c, &src)
	return c
}

// taskID finds the one open task of a name.
func taskID(ctx context.Context, c *client.Client, name string) (string, error) {
	if strings.HasPrefix(name, "task_") {
		return name, nil
	}
	var found []string
	for t, err := range c.Tasks().Each(ctx) {
		if err != nil {
			return "", err
		}
		if t.Name == name && t.Ended == "" {
			found = append(found, t.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no open task %q; 'writ task list' shows them", name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d open tasks are called %q; name one by its id: %s", len(found), name, strings.Join(found, ", "))
}

func openTasks(ctx context.Context, c *client.Client) []string {
	var out []string
	c.Token = os.Getenv("WRIT_TOKEN")
	all, _ := c.Tasks().Newest(ctx, 100)
	for _, t := range all {
		if t.Ended == "" {
			out = append(out, t.ID+"\t"+t.Agent+" "+t.Name)
		}
	}
	return out
}

func taskIDs(ctx context.Context, c *client.Client) []string {
	var out []string
	c.Token = os.Getenv("WRIT_TOKEN")
	all, _ := c.Tasks().Newest(ctx, 100)
	for _, t := range all {
		out = append(out, t.ID+"\t"+t.Agent+" "+t.Name)
	}
	return out
}
