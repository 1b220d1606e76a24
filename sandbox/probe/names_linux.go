package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/unasked"
)

// Names tries to make a protected name in a workspace, by a driver that was told to keep
// them.
func Names(ctx context.Context, start Start) sandbox.Finding {
	f := sandbox.Finding{Feature: sandbox.ProtectedName}
	for range 3 { // something of the moment may be in the way
		err := tryNames(ctx, start)
		if err == nil {
			f.Enforced, f.Evidence = true, "making .envrc in a workspace: refused; another file beside it was made"
			return f
		}
		f.Evidence = err.Error()
		if errors.Is(err, errMade) || ctx.Err() != nil {
			break
		}
	}
	return f
}

var errMade = errors.New("making .envrc in a workspace worked")

// Somewhere is a directory for a probe to run in.
func Somewhere() (ws string, c writ.Confinement, err error) {
	if ws, err = os.MkdirTemp("", "writ-probe-"); err != nil {
		return ws, c, err
	}
	if ws, err = filepath.EvalSymlinks(ws); err == nil && os.Geteuid() == 0 {
		err = os.Chown(ws, reach.Nobody, reach.Nobody)
	}
	return ws, writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}, err
}

func tryNames(ctx context.Context, start Start) error {
	ws, c, err := Somewhere()
	defer os.RemoveAll(ws)
	if err != nil {
		return err
	}
	spec := sandbox.Spec{Argv: []string{"/bin/sh", "-c", "echo x >other; echo x >.envrc; test ! -f .envrc"}, Dir: ws}
	err = unasked.Do(ctx, c, "", func(ctx context.Context, w writ.Writ) error {
		b, err := start(ctx, w, spec, map[string]string{})
		if err != nil {
			return err
		}
		exit, err := b.Wait(ctx)
		if err == nil && (exit.Code != 0 || len(exit.Undone) > 0) {
			err = fmt.Errorf("%w (exit %d %s %v)", errMade, exit.Code, exit.Signal, exit.Undone)
		}
		return err
	})
	if err == nil {
		_, err = os.Stat(filepath.Join(ws, "other"))
	}
	return err
}
