package native_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// TestOrdinaryUser: without root, everything that the driver declares is enforced (but for
// memory, which cannot be tried where races are watched for), and a command finds terminals as if there had been no other in its box.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		asOrdinaryUser(t)
		return
	}
	need.Programs(t, "python3")
	d := native.New(native.Options{Outlet: outlet})
	defer d.Close()
	needLauncher(t, d)
	found, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !f.Enforced && f.Feature != sandbox.ProtectedName && f.Feature != sandbox.LimitMemory && !strings.HasPrefix(f.Evidence, "not claimed") {
			t.Errorf("%s: %s", f.Feature, f.Evidence)
		}
	}
	const ask = `python3 -c 'import pty, os; pty.openpty(); s = os.stat("/dev/pts/ptmx"); print(oct(s.st_mode), s.st_mtime > 1e9)'; `
	sandboxtest.With(t, confined(workspace(t)), "", func(ctx context.Context, w writ.Writ) {
		var out strings.Builder
		p, err := d.Plan(ctx, w, sandbox.Spec{Argv: []string{"bash", "-c", ask + "chmod 0 /dev/pts/ptmx; touch -d 2001-02-03 /dev/pts/ptmx"}, Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		box, err := p.Keep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		for range 3 {
			out.Reset()
			b, err := p.StartIn(ctx, box)
			if err != nil {
				t.Fatal(err)
			}
			if exit, err := b.Wait(ctx); err != nil || exit.Code != 0 || out.String() != "0o20666 True\n" {
				t.Errorf("a terminal is as one before has left it: %+v %v %s", exit, err, out.String())
			}
			if err := box.Renew(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
