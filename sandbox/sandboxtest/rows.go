package sandboxtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// A row is one attack by script: it must fail, show no canary and change nothing
// outside; and its control, which must not fail.
type row struct {
	name, control, attack string
}

// runRows runs each row in boxes of a fresh world. arrange prepares the world.
func runRows(t *testing.T, d sandbox.Driver, rows []row, confine func(*world) writ.Confinement, arrange func(testing.TB, *world)) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if arrange != nil {
				arrange(t, w)
			}
			c := confine(w)
			if o := w.bash(t, d, c, prelude+r.control); o.Error != nil || o.Exit.Code != 0 {
				t.Fatalf("inconclusive: the control failed: %v, exit %d %s\n%s%s", o.Error, o.Exit.Code, o.Exit.Signal, o.Out, o.Err)
			}
			before := w.snapshot(t)
			o := w.bash(t, d, c, prelude+r.attack)
			if o.Error != nil {
				t.Fatalf("the attack was not run: %v", o.Error)
			}
			if o.Exit.Code == 0 {
				t.Errorf("the attack worked\n%s%s", o.Out, o.Err)
			}
			if strings.Contains(o.Out+o.Err, canary) {
				t.Errorf("the box saw the canary\n%s%s", o.Out, o.Err)
			}
			if after := w.snapshot(t); after != before {
				t.Errorf("something outside changed:\n%s\nwas\n%s", after, before)
			}
		})
	}
}

// prelude gives scripts a python function and stops them at the first error.
const prelude = `set -e
py() { python3 -S -E -c "import os,sys,ctypes,errno
libc=ctypes.CDLL(None,use_errno=True)
def call(*a):
  r=libc.syscall(*a)
  if r<0: sys.exit(os.strerror(ctypes.get_errno()))
$1"; }
`

// snapshot is everything that is not the workspace: names, modes, owners, times,
// content.
func (w *world) snapshot(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(w.base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == w.ws {
			fmt.Fprintln(&b, path)
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		fmt.Fprintln(&b, path, info.Mode(), info.ModTime().UnixNano(), owner(info), text)
		return nil
	}))
	return b.String()
}
