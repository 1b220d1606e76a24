package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) toolCommand() *cobra.Command {
	return Noun("tool", "The tools there are",
		"  writ tool list\n  writ tool show shell_command\n  writ tool diff run_tests && writ tool accept run_tests --as alice",
		a.toolList(), a.toolShow(), a.toolDiff(), a.toolAccept(), a.toolWaive(), a.toolWaivers())
}

// viewClient sees all tools, or with $WRIT_TOKEN those the agent may use.
func (a *App) viewClient(cmd *cobra.Command, asAgent bool) (*client.Client, error) {
	daemon, err := a.Connect(cmd.Context())
	if err != nil || !asAgent {
		return daemon, err
	}
	daemon.Token, err = agentToken("")
	return daemon, err
}

func (a *App) toolList() *cobra.Command {
	var mine bool
	c := &cobra.Command{
		Use: "list", Short: "List tools", Args: Exactly(0, "no arguments"), Example: "  writ tool list\n  writ tool list --mine     those the agent of $WRIT_TOKEN may use",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.viewClient(cmd, mine)
			if err != nil {
				return err
			}
			tools, err := daemon.Tools().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(tools)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tCATEGORY\tACTION\tRISK\tCLASS\tSTATE\tWHAT")
			for _, t := range tools {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.Category, t.Action, t.Policy.Risk, classText(t), cmp.Or(t.State, "-"), OneLine(cmp.Or(t.Title, t.Description)))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&mine, "mine", false, "only what the agent of $WRIT_TOKEN may use")
	return c
}

func (a *App) toolShow() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(toolNames),
		Use:               "show NAME", Short: "Show a tool's definition", Args: Exactly(1, "a tool's name; 'writ tool list' shows them"), Example: "  writ tool show shell_command",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.viewClient(cmd, false)
			if err != nil {
				return err
			}
			t, err := daemon.Tool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(t)
			}
			showTool(t)
			return nil
		},
	}
}

// riskText is what a tool says of its risk, and what that counts as.
func riskText(t client.Tool) string {
	if t.Policy.Risk == "unknown" {
		return "unknown, which counts as high"
	}
	return t.Policy.Risk
}

func showTool(t client.Tool) {
	fmt.Printf("%s: %s\n\n%s\n\n  category  %s\n  action    %s\n  risk      %s\n  class     %s\n  digest    %s\n", t.Name, t.Title, t.Description, t.Category, t.Action, riskText(t), classText(t), t.Digest)
	if t.State != "" {
		fmt.Printf("  state     %s\n", t.State)
	}
	if t.Held != "" {
		fmt.Printf("            %s\n", OneLine(t.Held))
	}
	showStanding(t)
	fmt.Print("\nparameters\n")
	var pretty bytes.Buffer
	if json.Indent(&pretty, t.Schema, "  ", "  ") != nil {
		pretty.Write(t.Schema)
	}
	fmt.Printf("  %s\n", pretty.String())
	for _, e := range t.Examples {
		fmt.Printf("\nexample: %s\n  writ call %s --args '%s'\n", e.What, t.Name, e.Args)
	}
	if len(t.Failures) > 0 {
		fmt.Println("\nit fails when")
	}
	for _, f := range t.Failures {
		fmt.Printf("  - %s\n", f)
	}
}
