package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) sandboxShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show everything that is known of a sandbox", Args: Exactly(1, aSandbox), ValidArgsFunction: a.offer(sandboxIDs),
		Long: `Show a sandbox: whose it is, what it is made of, what it reaches, and the last commands
in it. Of one that is over the commands are known for a while, and the rest is kept.`,
		Example: "  writ sandbox show box_abc123\n  writ sandbox show box_abc123 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			b, err := c.Sandbox(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(b)
			}
			return showSandbox(b)
		},
	}
}

func showSandbox(b client.Sandbox) error {
	runs := runsNow(b)
	if b.Ended != "" {
		runs = ""
	}
	lost := ""
	if b.Lost {
		lost = "its daemon was gone before it; the next one found it so"
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range [][2]string{{"id", b.ID}, {"driver", b.Driver}, {"container", b.Container}, {"sidecar", b.Sidecar}, {"image", b.Image},
		{"agent", b.Agent}, {"acts for", b.Person}, {"session", b.Session}, {"task", b.Task},
		{"runs", runs}, {"calls", fmt.Sprint(b.Calls)}, {"since", toSecond(b.Since)}, {"used", toSecond(b.Used)}, {"ended", b.Ended}, {"lost", lost}} {
		if f[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", f[0], OneLine(f[1]))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.Confine != nil {
		fmt.Println("\nthe last call in it:")
		showReach(os.Stdout, *b.Confine)
	}
	if len(b.Runs) > 0 {
		fmt.Println("\nthe last commands:")
		sandboxRuns(b.Runs)
	}
	return nil
}

// sandboxRuns prints commands that ended in a sandbox, a line each, and what their sidecars
// said below.
func sandboxRuns(runs []client.SandboxRun) {
	for _, r := range runs {
		fmt.Printf("%s  %s %s: %s%s after %s, %d bytes of output, %d of errors%s\n", toSecond(r.Began), OneLine(r.Tool), r.Call, howEnded(r.ExitCode),
			OneLine(Introduced(", ended: ", r.Limit)), time.Duration(r.Millis)*time.Millisecond, r.Stdout, r.Stderr, Introduced(", lines of the sidecar that are no JSON: ", zeroless(r.Malformed)))
		for _, line := range r.Sidecar {
			fmt.Println("  " + OneLine(string(line)))
		}
	}
}

func howEnded(code int) string {
	if code < 0 {
		return "killed"
	}
	return fmt.Sprintf("exit %d", code)
}

// toSecond is a moment without its parts of a second.
func toSecond(moment string) string {
	at, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return moment
	}
	return at.UTC().Format(time.RFC3339)
}

// Introduced puts an introduction before what is there.
func Introduced(introduction, what string) string {
	if what == "" {
		return ""
	}
	return introduction + what
}

func zeroless(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (a *App) sandboxLogs() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "logs ID", Short: "List the commands that ended in a sandbox", Args: Exactly(1, aSandbox), ValidArgsFunction: a.offer(sandboxIDs),
		Long: `List the last 20 commands that ended in a sandbox, the oldest first: which call it was,
how it ended, how much it wrote, and what its sidecar said of it. What they wrote
is in the results of their calls. With --json each is one line.`,
		Example: "  writ sandbox logs box_abc123\n  writ sandbox logs box_abc123 --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			return a.followSandbox(cmd, c, args[0], follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those that end from now on, until the sandbox does")
	return c
}

// followSandbox prints what ended in a sandbox since it last looked, again and again.
func (a *App) followSandbox(cmd *cobra.Command, c *client.Client, id string, follow bool) error {
	const often = 300 * time.Millisecond
	seen := ""
	for {
		b, err := c.Sandbox(cmd.Context(), id)
		if err != nil {
			return err
		}
		fresh := b.Runs
		for i, r := range b.Runs {
			if r.Began+r.Call == seen {
				fresh = b.Runs[i+1:]
			}
		}
		for _, r := range fresh {
			seen = r.Began + r.Call
			if a.JSON {
				if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
					return err
				}
				continue
			}
			sandboxRuns([]client.SandboxRun{r})
		}
		if follow && b.Ended != "" {
			fmt.Fprintln(os.Stderr, "the sandbox has ended:", OneLine(b.Ended))
		}
		if len(b.Runs) == 0 && b.Calls > 0 && !a.JSON {
			fmt.Fprintln(os.Stderr, "what ended in it is not kept any more; 'writ invocation list' has its calls")
		}
		if !follow || b.Ended != "" {
			return nil
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(often):
		}
	}
}
