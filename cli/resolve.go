package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) invocationResolve() *cobra.Command {
	var src PassphraseSource
	var happened, note string
	c := &cobra.Command{
		Use: "resolve ID", Short: "Say what you found out about a call whose outcome is unknown", Args: Exactly(1, "the id of a call; 'writ invocation list --state unknown' shows them"),
		Long: `Say what you found out about a call whose outcome is unknown: the daemon was cut
off while it ran. Its status stays unknown for ever, because that is what was known;
your word is kept beside it. Nothing is run. It takes your passphrase.`,
		Example: "  writ invocation resolve call_abc123 --happened yes --note 'the ticket is there'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(happenings, happened) {
				return Usagef("--happened is one of %s", strings.Join(happenings, ", "))
			}
			if note == "" {
				return Usagef("--note: say how you know; it is kept, and cannot be added later")
			}
			if err := bounded("note", note, MaxWords); err != nil {
				return err
			}
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			if err := resolvable(cmd.Context(), daemon, args[0]); err != nil {
				return err
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			i, err := daemon.ResolveInvocation(cmd.Context(), args[0], client.ResolutionRequest{Happened: happened, Note: note, By: by})
			if err != nil {
				return err
			}
			return a.showInvocation(i)
		},
	}
	c.ValidArgsFunction = a.offer(unknownInvocations)
	a.PersonFlags(c, &src)
	c.Flags().StringVar(&happened, "happened", "", "yes, no or partly")
	c.Flags().StringVar(&note, "note", "", fmt.Sprintf("how you know, at most %d bytes", MaxWords))
	a.FlagWords(c, "happened", happenings)
	return c
}

// resolvable refuses what is known, or was resolved, before a passphrase is typed.
func resolvable(ctx context.Context, daemon *client.Client, id string) error {
	i, err := daemon.Invocation(ctx, id, 0)
	switch r := i.Resolution; {
	case err != nil:
		return err
	case r != nil:
		return fmt.Errorf("%s was resolved already, by %s %s: it happened: %s; that stays", id, OneLine(r.By), Ago(r.At), r.Happened)
	case i.Status != "unknown":
		return fmt.Errorf("%s is %s; only an unknown outcome is resolved: 'writ invocation list --state unknown' shows them", id, i.Status)
	}
	return nil
}

var happenings = []string{"yes", "no", "partly"}

// resolutions looks up what people found out about unknown outcomes: a list does not
// say. What is listed by the state unknown has none.
func resolutions(ctx context.Context, daemon *client.Client, is []client.Invocation, state string) error {
	for n, i := range is {
		if i.Status != "unknown" || state == "unknown" {
			continue
		}
		whole, err := daemon.Invocation(ctx, i.ID, 0)
		if err != nil {
			return err
		}
		is[n].Resolution = whole.Resolution
	}
	return nil
}
