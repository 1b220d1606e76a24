package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) agentCommand() *cobra.Command {
	return Noun("agent", "Agents: what they may do, and their tokens",
		"  writ agent list\n  writ agent show coder\n  writ agent token coder",
		a.agentList(), a.agentShow(), a.agentTree(), a.agentToken(), a.agentRevoke(), a.agentDelegate(), a.agentEnd())
}

func (a *App) agentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the configured agents", Args: Exactly(0, "no arguments"), Example: "  writ agent list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			agents, err := daemon.Agents().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(agents)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tLEVEL\tROLE\tAUTONOMY\tWORKSPACE\tTOOLS\tSTATE")
			for _, g := range agents {
				state := "ready"
				if g.Stopped {
					state = "stopped"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", g.Name, g.Level, g.Role, g.Autonomy, g.Workspace, len(g.Tools), state)
			}
			return w.Flush()
		},
	}
}

func (a *App) agentShow() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(agentNames),
		Use:               "show NAME", Short: "Show one agent: its level, constraints, tools and tokens", Args: Exactly(1, "an agent's name"),
		Example: "  writ agent show coder",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			g, err := daemon.Agent(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(g)
			}
			showAgent(g)
			return nil
		},
	}
}

func showAgent(g client.Agent) {
	fmt.Printf("%s (%s)\n  level      %s\n  role       %s\n  autonomy   %s\n  acts for   %s\n  workspace  %s\n  project    %s\n", g.Name, g.Where, g.Level, g.Role, g.Autonomy, g.Person, g.Workspace, g.Project)
	for _, k := range slices.Sorted(maps.Keys(g.Constraints)) {
		fmt.Printf("  %s: %s\n", k, g.Constraints[k])
	}
	fmt.Printf("  tools      %s\n", strings.Join(g.Tools, ", "))
	if len(g.Unavailable) > 0 {
		fmt.Printf("  of which not on this machine: %s ('writ explain' says why)\n", strings.Join(g.Unavailable, ", "))
	}
	for _, t := range g.Tokens {
		state := "good"
		if t.Revoked != "" {
			state = "revoked " + t.Revoked
		}
		fmt.Printf("  token      %s made %s, %s\n", t.ID, t.Created, state)
	}
	if g.Stopped {
		fmt.Printf("  STOPPED: a person lifts it with: writ stop --lift %s --as NAME (--all where everybody is)\n", g.Name)
	}
}

func (a *App) agentToken() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		ValidArgsFunction: a.offer(agentNames),
		Use:               "token NAME", Short: "Make a bearer token for an agent; it is shown once", Args: Exactly(1, "an agent's name"),
		Long:    "Make a bearer token for an agent. Whoever holds it acts as that agent, so it\ntakes a person's passphrase. It is shown once; only a hash is kept.",
		Example: "  writ agent token coder\n  export WRIT_TOKEN=writ_…",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			made, err := daemon.NewToken(cmd.Context(), args[0], by)
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(made)
			}
			ShowToken(made.Agent, made.Token, made.ID)
			return nil
		},
	}
	a.PersonFlags(c, &src)
	return c
}

func ShowToken(agent, token, id string) {
	fmt.Printf("token %s for agent %s, shown this once:\n\n  export WRIT_TOKEN=%s\n\n", id, agent, token)
}

func (a *App) agentRevoke() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(tokenIDs),
		Use:               "revoke TOKEN-ID", Short: "End a token", Args: Exactly(1, "the id of a token; 'writ agent show' lists them"), Example: "  writ agent revoke tok_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.RevokeToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Println("revoked", args[0])
			return nil
		},
	}
}
