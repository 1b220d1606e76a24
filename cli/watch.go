package cli

import (
	"os"

	"github.com/spf13/cobra"
)

func (a *App) approvalWatch() *cobra.Command {
	var src PassphraseSource
	var quiet bool
	c := &cobra.Command{
		Use: "watch", Short: "Answer requests as they come, on a live screen", Args: Exactly(0, "no arguments"),
		Long: `Show the requests that wait, the newest last, as they come and go, and answer
them: arrows or j and k select, Enter shows one whole, page by page, and then a
approves, r rejects, e edits, g grants, c cancels; ? shows all keys, q quits. One
is answered only after it was read to its last page here, and each answer takes a
passphrase.

With --json, or where there is no terminal, it writes a line of JSON for each
request that waits and for whatever becomes of one, until it is interrupted. It
waits for a daemon that ends meanwhile, and goes on where it was.
Exit code 0 when you end it, 1 when it cannot go on.`,
		Example: "  writ approval watch\n  writ approval watch --as alice --quiet\n  writ approval watch --json | jq -r .invocation",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON || !IsTerminal(os.Stdin) || !IsTerminal(os.Stdout) {
				return watchLines(cmd.Context(), daemon, os.Stdout)
			}
			if err := src.who(cmd.Context(), daemon); err != nil {
				return err
			}
			w := newWatch(a, daemon, &src, &screen{in: os.Stdin, out: os.Stdout, color: os.Getenv("NO_COLOR") == ""})
			w.quiet = quiet
			return w.run(cmd.Context())
		},
	}
	c.Flags().StringVar(&src.Name, "as", "", "who you are (default: the only person there is)")
	c.Flags().BoolVar(&quiet, "quiet", false, "no bell for a new request")
	a.flagValues(c, "as", personNames)
	return c
}
