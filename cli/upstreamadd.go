package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/tool"
)

func (a *App) upstreamAdd() *cobra.Command {
	var o serverFlags
	var yes bool
	c := &cobra.Command{
		Use: "add NAME [-- PROGRAM ARGUMENT…]", Short: "Put an MCP server behind the gateway",
		Long: `Put an MCP server behind the gateway: a program, which runs in a box that reaches the
system's programs, --read, --write and --host and nothing else; or a server at a URL. It is
written to upstreams/NAME.yaml beside the configuration, which may hold secrets and is
for its owner alone, and a daemon that runs takes it up. Its tools are suspended until
a person accepts them. The exit code is 1 if it is written and does not come up.

Its box reads the program itself, and of a script that an interpreter runs the directory
that it lies in, unless that is a home, or has secrets in it: then the script alone. A
credential is better kept by 'writ secret set' and named by --secret-env, --bearer or
--secret-header than written down: replacing it then suspends no tool.`,
		Example: `  writ upstream add files --write /data -- /opt/mcp/files-server /data
  writ upstream add notes --read ~/notes --env LEVEL=debug -- node ~/notes/server.js
  writ upstream add weather --host api.weather.example -- /opt/mcp/weather
  writ upstream add issues --secret-env API_KEY=store:issues -- python3 ~/issues/server.py
  writ upstream add tracker --url https://tracker.example.com/mcp --bearer store:tracker
  writ upstream add search --url https://search.example.com/mcp --enabled query --prefix none`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case len(args) == 0 || dash == 0 || args[0] == "":
				return Usagef("expected a name for the server, and after -- its program; or --url")
			case dash < 0 && len(args) > 1 || dash > 1:
				return Usagef("put -- before the program: writ upstream add %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			u := config.Upstream{Command: args[1:]}
			switch {
			case o.url != "" && len(u.Command) > 0:
				return Usagef("give a program or --url, not both")
			case o.url == "" && len(u.Command) == 0:
				return Usagef("say what the server is: a program after --, or --url")
			}
			if err := o.onto(cmd, &u); err != nil {
				return err
			}
			notes := startable(&u)
			if err := tool.CheckServerName(args[0]); err != nil {
				return usageError{err}
			}
			path, err := config.Path(a.ConfigFlag)
			if err != nil {
				return err
			}
			plans := []planned{{args[0], u, notes}}
			cfg, err := checked(path, plans)
			if err != nil {
				return err
			}
			if err := a.warned(cmd.Context(), cfg, plans, yes); err != nil {
				return err
			}
			if err := writeServers(path, plans); err != nil {
				return err
			}
			return a.taken(cmd.Context(), path, cfg, plans, "added")
		},
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	a.serverFlags(c, &o)
	c.Flags().StringVar(&o.url, "url", "", aURL)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask where open requests end by it")
	return c
}
