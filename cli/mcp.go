package cli

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) mcpCommand() *cobra.Command {
	var agent, tokenFile string
	var wait time.Duration
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent's tools over MCP on standard input and output",
		Long: `Serve the tools of an agent to an MCP client on standard input and output. The
daemon decides and runs every call; this is a pipe to it, and starts it when it is
down. With --agent the daemon takes you for that agent because the socket lets in
your user alone; otherwise the agent is the one of the token in $WRIT_TOKEN.

When its input ends it waits for the answers to what it has read, as long as --wait
and 15 seconds more, and ends. What waits for a person then goes on waiting.

'writ connect' writes the configuration of a client that runs this. Clients that
speak HTTP use http://127.0.0.1:7323/mcp with the token as a bearer instead.`,
		Example: `  writ mcp --agent coder
  WRIT_TOKEN=writ_… writ mcp
  writ mcp --agent coder --wait 5m     for a client that lets calls take that long`,
		Args: Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 || wait > 10*time.Minute {
				return Usagef("--wait is at most 10m")
			}
			return a.mcp(cmd.Context(), agent, tokenFile, wait)
		},
	}
	c.Flags().StringVar(&agent, "agent", "", "the agent to be, for your own user on this machine (default: the token's)")
	c.Flags().StringVar(&tokenFile, "token-file", "", "file that holds the agent's token (default $WRIT_TOKEN)")
	c.Flags().DurationVar(&wait, "wait", 0, "how long a call may wait for a person before its client is told how to come back (default 45s)")
	a.flagValues(c, "agent", agentNames)
	return c
}

func (a *App) mcp(ctx context.Context, agent, tokenFile string, wait time.Duration) error {
	token := ""
	if agent == "" {
		var err error
		if token, err = agentToken(tokenFile); err != nil {
			return err
		}
	} else if tokenFile != "" {
		return Usagef("give --agent or --token-file, not both")
	}
	daemon, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	daemon.Token = token
	revive := func(ctx context.Context) error {
		if _, err := a.connectQuietly(ctx); err != nil {
			return err
		}
		return nil
	}
	p := &client.Pipe{Client: daemon, Agent: agent, Session: "mcp-" + strings.ToLower(rand.Text()[:16]), Wait: wait, Revive: revive}
	return p.Run(ctx, os.Stdin, os.Stdout)
}
