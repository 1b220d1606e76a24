package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) approvalEdit() *cobra.Command {
	var src PassphraseSource
	var args string
	c := &cobra.Command{
		Use: "edit ID", Short: "Approve a request with other arguments",
		Long: `Approve a request with other arguments: the call is decided anew as if its agent
had made it so, shown whole with all it would reach, and runs once, after the
passphrase of a person with the role approver or admin. The agent is told.`,
		Example: "  writ approval edit call_abc123                                opens $EDITOR\n  writ approval edit call_abc123 --args '{\"path\":\"other.txt\"}'",
		Args:    Exactly(1, "the id of a request; 'writ approval list' shows them"),
		RunE: func(cmd *cobra.Command, words []string) error {
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			return a.edit(cmd.Context(), daemon, words[0], args, &src)
		},
	}
	c.ValidArgsFunction = a.offer(pendingIDs)
	a.PersonFlags(c, &src)
	c.Flags().StringVar(&args, "args", "", "the arguments as a JSON object (default: edit them with $EDITOR)")
	return c
}

func (a *App) edit(ctx context.Context, daemon *client.Client, id, args string, src *PassphraseSource) error {
	r, err := daemon.Approval(ctx, id)
	if err != nil {
		return err
	}
	if r.Shown == nil {
		return fmt.Errorf("request %s is %s; only one that waits can be edited", id, r.State)
	}
	edited := json.RawMessage(args)
	if args == "" {
		if edited, err = editArgs(ctx, r.Shown.Args); err != nil {
			return err
		}
	}
	if !json.Valid(edited) {
		return Usagef("the edited arguments are not JSON; nothing was decided")
	}
	preview, err := daemon.PreviewEdit(ctx, id, edited)
	if err != nil {
		return err
	}
	if !a.JSON {
		if err := a.showRequest(ctx, preview, ""); err != nil {
			return err
		}
	}
	return a.answer(ctx, daemon, id, client.DecisionRequest{Digest: r.Digest, Approve: true, Edit: &client.Edit{Args: edited, Digest: preview.Digest}}, src)
}

// editArgs opens the person's editor on the arguments, in a file that nobody else
// reads and that is gone afterwards.
func editArgs(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	editor := os.Getenv("EDITOR")
	if editor == "" {
		return nil, Usagef("there is no $EDITOR; set it, or give the arguments with --args")
	}
	dir, err := os.MkdirTemp("", "writ-edit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "arguments.json")
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, args, "", "  "); err != nil {
		return nil, err
	}
	pretty.WriteByte('\n')
	if err := os.WriteFile(file, pretty.Bytes(), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "writ", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.New("the editor failed; nothing was decided")
	}
	return os.ReadFile(file)
}
