package cli

import (
	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) sandboxExec() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "exec ID -- COMMAND [ARG...]", Short: "Run a command in a sandbox, to look around in it",
		Long: `Run a command in a sandbox that is kept and that nothing runs in. It reaches what the
calls in the sandbox reach and no more, has its turn as a call has, and leaves nothing for
the next one. A sandbox in which a call runs is not entered: both would see each other's
processes. It takes the passphrase of a person with the role operator or admin, and is
written down in the ledger as a call of its own, with who made it. It is no shell: for
one, run it as the command.`,
		Example: "  writ sandbox exec box_abc123 -- bash -c id\n  writ sandbox exec box_abc123 --as alice -- bash -c 'ls -la; env'",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 || args[0] == "" || args[1] == "" {
				return Usagef("expected %s, and after -- the command: writ sandbox exec ID -- COMMAND", aSandbox)
			}
			return nil
		},
		ValidArgsFunction: a.offer(sandboxIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			daemon, err := a.connectAs(ctx, &src)
			if err != nil {
				return err
			}
			by, err := src.credentials(ctx)
			if err != nil {
				return err
			}
			reply, err := daemon.ExecSandbox(ctx, args[0], client.SandboxExecRequest{Command: args[1:], By: by})
			if err != nil {
				return err
			}
			return a.showReply(reply)
		},
	}
	a.PersonFlags(c, &src)
	return c
}
