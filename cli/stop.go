package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) stopCommand() *cobra.Command {
	var all, lift bool
	var reason string
	var src PassphraseSource
	c := &cobra.Command{
		Use:   "stop [AGENT]",
		Short: "Stop an agent, or all: no new calls, no unused approvals, running boxes killed",
		Long: `Stop an agent: its new calls are refused, approvals it has not used are void, and
what it runs is killed. A stop survives restarts; only a person lifts it, with
--lift and a passphrase. To end the daemon itself: writ serve --stop.`,
		Example: "  writ stop coder --reason 'deleted the wrong file'\n  writ stop --all\n  writ stop --lift coder --as alice",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 || slices.Contains(args, "") {
				return Usagef("name one agent, or --all")
			}
			return bounded("reason", reason, MaxWords)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			agent := "*"
			if !all {
				agent = args[0]
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if !lift {
				err := daemon.Stop(cmd.Context(), client.StopRequest{Agent: agent, Reason: reason})
				if err != nil {
					return err
				}
				return a.said("stopped", stoppedName(agent))
			}
			if err := src.who(cmd.Context(), daemon); err != nil {
				return err
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.Lift(cmd.Context(), agent, by); err != nil {
				return err
			}
			return a.said("lifted the stop of", stoppedName(agent))
		},
	}
	c.ValidArgsFunction = a.offer(agentNames)
	c.Flags().BoolVar(&all, "all", false, "every agent")
	c.Flags().BoolVar(&lift, "lift", false, "lift the stop instead; takes a passphrase")
	c.Flags().StringVar(&reason, "reason", "", fmt.Sprintf("why, at most %d bytes; recorded", MaxWords))
	a.PersonFlags(c, &src)
	return c
}

func stoppedName(agent string) string {
	if agent == "*" {
		return "all agents"
	}
	return agent
}
