package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) connectionCommand() *cobra.Command {
	c := Noun("connection", "Services outside that agents use with the operator's credentials",
		"  writ connection list\n  writ connection show github\n  writ connection test github",
		a.connectionList(), a.connectionShow(), a.connectionTest())
	c.Long = `Services outside that agents use, with credentials that they never see: connections
of the configuration. An agent calls the tool external_api with the name of one; one of
type git lends its credentials to git_clone, git_fetch and git_push.`
	return c
}

const aConnection = "a connection's name; 'writ connection list' shows them"

func connectionNames(ctx context.Context, c *client.Client) []string {
	var out []string
	all, _ := c.Connections().All(ctx)
	for _, n := range all {
		out = append(out, n.Name+"\t"+n.BaseURL)
	}
	return out
}

func (a *App) connectionList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the connections: where each leads, and how it proves itself", Args: Exactly(0, "no arguments"), Example: "  writ connection list\n  writ connection list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := daemon.Connections().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			if len(all) == 0 {
				fmt.Println("there are no connections; write them under connections in the configuration")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tADDRESS\tAUTH\tMETHODS\tSENSITIVE\tENVIRONMENT")
			for _, n := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, n.BaseURL, n.AuthType, strings.Join(n.Methods, " "), asksAlways(n.Sensitive), cmp.Or(n.Environment, "-"))
			}
			return w.Flush()
		},
	}
}

func asksAlways(sensitive bool) string {
	if sensitive {
		return "yes"
	}
	return "no"
}

func (a *App) connectionShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a connection: where it leads, what may be sent over it, where its secrets are", Args: Exactly(1, aConnection), Example: "  writ connection show github",
		ValidArgsFunction: a.offer(connectionNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			n, err := daemon.Connection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(n)
			}
			fmt.Printf("%s: %s\n", n.Name, n.BaseURL)
			for _, row := range [][2]string{
				{"written", n.Where}, {"type", n.Type}, {"auth", n.Auth}, {"methods", strings.Join(n.Methods, ", ")}, {"paths", strings.Join(n.Paths, ", ")},
				{"rate limit", fmt.Sprintf("%d a minute", n.RateLimit)}, {"sensitive", asksAlways(n.Sensitive)}, {"environment", cmp.Or(n.Environment, "-")},
				{"agents", reaches(n.Agents, "all that may use the tools it is for")}, {"digest", n.Digest},
			} {
				fmt.Printf("  %-12s %s\n", row[0], OneLine(row[1]))
			}
			return nil
		},
	}
}

func (a *App) connectionTest() *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Look a connection's secrets up and ask its address for an answer", Args: Exactly(1, aConnection), Example: "  writ connection test github\n  writ connection test github --json",
		Long: `Look a connection's secrets up, and send HEAD with them to its address. What its
secrets hold is not shown. It is the operator's own act and is recorded; no agent's call.`,
		ValidArgsFunction: a.offer(connectionNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			t, err := daemon.TestConnection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				if err := PrintJSON(t); err != nil || t.OK {
					return err
				}
				return ExitCode(ExitError)
			}
			for _, s := range t.Steps {
				fmt.Println(OneLine(s))
			}
			if !t.OK {
				return fmt.Errorf("connection %s: %s", t.Name, OneLine(t.Failed))
			}
			return nil
		},
	}
}
