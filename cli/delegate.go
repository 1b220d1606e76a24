package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) agentDelegate() *cobra.Command {
	req := client.DelegationRequest{}
	var allowed []string
	lasts := lasting{Duration: time.Hour, most: 24 * time.Hour}
	c := &cobra.Command{
		Use: "delegate NAME", Short: "Make a child of the agent of $WRIT_TOKEN, with a token of its own",
		Long: `Make a child agent. It asks for a reach, and gets the part of it that its parent
has, at each call anew: narrowing, stopping or revoking the parent bites in the
child at once. It works in its parent's session and ends with it, or when its time
is over.`,
		Example: "  writ agent delegate reader --allowed fs_read,fs_list --lasts 1h\n  writ agent delegate docs --directory docs --level sandboxed",
		Args:    Exactly(1, "a name for the child"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("allowed") {
				req.Request.Allowed = &allowed
			}
			req.Name, req.LastsSeconds = args[0], int(lasts.Duration/time.Second)
			c, err := a.agentClient(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.Delegate(cmd.Context(), req)
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(d)
			}
			fmt.Printf("agent %s, delegated by %s until %s; its token, shown this once:\n\n  export WRIT_TOKEN=%s\n\n", d.Agent, d.Parent, d.Expires, d.Token)
			return nil
		},
	}
	f := c.Flags()
	f.StringSliceVar(&allowed, "allowed", nil, "these tools and no others")
	f.StringSliceVar(&req.Request.Denied, "denied", nil, "not these tools")
	f.StringVar(&req.Request.Role, "role", "", "a role")
	f.StringVar(&req.Request.Level, "level", "", "sandboxed, restricted, standard, elevated or custom")
	f.StringVar(&req.Request.Autonomy, "autonomy", "", "full, semi, supervised or locked")
	f.StringVar(&req.Request.Directory, "directory", "", "a directory inside the parent's workspace")
	f.StringVar(&req.Request.Constraints.FileSystem, "file-system", "", "workspace_only, project_directory or full")
	f.StringVar(&req.Request.Constraints.Network, "network", "", "none, allowlist_only or open")
	f.StringVar(&req.Request.Constraints.Terminal, "terminal", "", "none, restricted_commands or full")
	f.StringVar(&req.Session, "session", os.Getenv("WRIT_SESSION"), "the session (default $WRIT_SESSION, else the token's session of the day)")
	f.StringVar(&req.Task, "task", os.Getenv("WRIT_TASK"), "the task (default $WRIT_TASK, else the session)")
	f.Var(&lasts, "lasts", "how long, at most 24h")
	return c
}

func (a *App) agentEnd() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(agentNames),
		Use:               "end NAME", Short: "End a delegated agent, and all below it", Args: Exactly(1, "a delegated agent's name; 'writ agent tree' shows them"),
		Example: "  writ agent end coder/reader-k2m4x1",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.eitherClient(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.EndDelegation(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.said("ended", args[0])
		},
	}
}

func (a *App) agentTree() *cobra.Command {
	return &cobra.Command{
		Use: "tree", Short: "Show every agent below the one it was delegated by, with what it reaches now", Args: Exactly(0, "no arguments"),
		Example: "  writ agent tree",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			tree, err := c.Tree(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(tree.Agents)
			}
			showTree(tree.Agents, "")
			return nil
		},
	}
}

// showTree prints what each agent reaches within all above it.
func showTree(nodes []client.Node, indent string) {
	for _, n := range nodes {
		note := ""
		if n.Delegated != "" {
			note = ", ends " + until(n.Delegated)
		}
		if n.Stopped {
			note += ", STOPPED"
		}
		fmt.Printf("%s%s (level %s, autonomy %s%s)\n", indent, n.Name, n.Level, n.Autonomy, note)
		fmt.Printf("%s  files %s below %s, network %s, terminal %s, code %s\n", indent,
			n.Constraints["file_system"], n.Workspace, n.Constraints["network"], n.Constraints["terminal"], n.Constraints["code_execution"])
		usable := slices.DeleteFunc(slices.Clone(n.Tools), func(t string) bool { return slices.Contains(n.Unavailable, t) })
		fmt.Printf("%s  tools %s\n", indent, cmp.Or(strings.Join(usable, ", "), "none"))
		if len(n.Unavailable) > 0 {
			fmt.Printf("%s  not on this machine: %s\n", indent, strings.Join(n.Unavailable, ", "))
		}
		showTree(n.Children, indent+"    ")
	}
}
