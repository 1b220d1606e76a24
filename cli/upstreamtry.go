package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) upstreamTest() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(upstreamNames),
		Use:               "test NAME", Short: "Connect to a server anew and say how it goes", Args: Exactly(1, aServer),
		Long: `Connect to a server anew, beside the connection there is, read all it offers, and
compare that with what people accepted. A program is started in its box once more for
it. The exit code is 1 if that fails, or if a tool is not what people accepted. A server that waits for its next attempt is tried
at once after one that succeeds; one that is connected is read again, and goes on as
the process it is: 'writ upstream restart' starts another.`,
		Example: "  writ upstream test files",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if u, err := daemon.Upstream(cmd.Context(), args[0]); err != nil {
				return err
			} else if why := unboxable(u.Name, u.Command, u.Hosts); why != "" && !a.JSON {
				fmt.Fprintln(os.Stderr, "warning:", Visible(why))
			}
			t, err := daemon.TestUpstream(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				err = PrintJSON(t)
			} else {
				showTest(t)
			}
			if err == nil && (!t.OK || len(t.Changed) > 0) {
				return ExitCode(ExitError)
			}
			return err
		},
	}
}

func showTest(t client.UpstreamTest) {
	for _, s := range t.Steps {
		fmt.Println("ok:", OneLine(s))
	}
	if !t.OK {
		printLines("failed: ", t.Failed)
		for _, hint := range outsideHint(t.Name, t.Outside) {
			printLines("        ", hint)
		}
	}
	for _, hint := range t.Hints {
		printLines("note: ", hint)
	}
	if len(t.Changed) > 0 {
		fmt.Printf("changed: %s; they are suspended until a person looks and accepts them: %s upstream accept %s\n", OneLine(strings.Join(t.Changed, ", ")), Self(), t.Name)
	}
}

func (a *App) upstreamRestart() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(upstreamNames),
		Use:               "restart NAME", Short: "End a server's process or connection, and begin anew", Args: Exactly(1, aServer),
		Long: `End a server's process, or the connection with one at a URL, and begin anew. Calls that
it has not answered fail. What it offers then is held against what people accepted. The
exit code is 1 if it does not come up.`,
		Example: "  writ upstream restart files",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			u, err := daemon.RestartUpstream(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				err = PrintJSON(u)
			} else {
				showUpstream(u)
			}
			if err == nil && u.State == "failed" {
				return ExitCode(ExitError)
			}
			return err
		},
	}
}
