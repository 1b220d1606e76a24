package native

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

// probeNames tries to make a protected name in a workspace.
func (d *Driver) probeNames(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Feature: sandbox.ProtectedName}
	if d.finder == nil {
		f.Evidence = "not claimed: it was not told to"
		return f
	}
	for range 3 {
		err := d.tryNames(ctx)
		if err == nil {
			f.Evidence = ""
			break
		}
		f.Evidence = err.Error()
		if errors.Is(err, errMade) || ctx.Err() != nil {
			return f
		}
	}
	if f.Evidence != "" {
		return f
	}
	f.Enforced, f.Evidence = true, "making .envrc in a workspace: refused; another file beside it was made"
	return f
}

var errMade = errors.New("making .envrc in a workspace worked")

func (d *Driver) tryNames(ctx context.Context) error {
	ws, err := os.MkdirTemp("", "writ-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(ws)
	if ws, err = filepath.EvalSymlinks(ws); err == nil && os.Geteuid() == 0 {
		err = os.Chown(ws, reach.Nobody, reach.Nobody)
	}
	if err != nil {
		return err
	}
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	err = unasked.Do(ctx, c, "", func(ctx context.Context, w writ.Writ) error {
		p, err := d.plan(w, sandbox.Spec{Argv: []string{"/bin/sh", "-c", "echo x >other; echo x >.envrc; test ! -f .envrc"}, Dir: ws}, map[string]string{})
		if err != nil {
			return err
		}
		b, err := p.Start(ctx)
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
