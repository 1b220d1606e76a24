package bwrap_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/bwrap"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

func workspace(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "writ-bwrap-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func confined(ws string) writ.Confinement {
	return writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestExits: a status is told from a signal with the same number, and both from a box that
// could not be made.
func TestExits(t *testing.T) {
	need.Programs(t, "bwrap", "bash")
	d, ws := bwrap.New(bwrap.Options{}), workspace(t)
	for script, want := range map[string]sandbox.Exit{
		"exit 137": {Code: 137}, "kill -KILL $$": {Code: -1, Signal: "killed"}, "exit 1": {Code: 1}, "exit 125": {Code: 125}, "kill -TERM $$": {Code: -1, Signal: "terminated"},
	} {
		o := sandboxtest.Command(t, d, confined(ws), sandbox.Spec{Argv: []string{"bash", "-c", script}})
		if o.Error != nil || o.Exit.Code != want.Code || o.Exit.Signal != want.Signal {
			t.Errorf("%s: %+v, %v", script, o.Exit, o.Error)
		}
	}
	text := filepath.Join(ws, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if o := sandboxtest.Command(t, d, confined(ws), sandbox.Spec{Argv: []string{text}}); writ.KindOf(o.Error) != writ.Invalid {
		t.Errorf("what cannot be executed: %+v, %v", o.Exit, o.Error)
	}
	c, link := confined(ws), filepath.Join(ws, "link")
	c.Read = []string{link}
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	c.Write = []string{workspace(t)}
	o := sandboxtest.Command(t, d, c, sandbox.Spec{Argv: []string{"true"}})
	if kind, msg := writ.Public(o.Error); kind != writ.SandboxUnavailable || !strings.Contains(msg, "show "+link) {
		t.Errorf("a root that became a symlink: %v", o.Error)
	}
}

// TestDiesWithTheDaemon: nothing outlives it (I14).
func TestDiesWithTheDaemon(t *testing.T) {
	need.Programs(t, "bwrap", "bash")
	if ws := os.Getenv("WRIT_TEST_DAEMON"); ws != "" {
		sandboxtest.With(t, confined(ws), "", func(ctx context.Context, order writ.Writ) {
			const script = `(setsid bash -c 'trap "" TERM; while :; do echo x >>alive; sleep 0.02; done' &) ; sleep 100`
			b, err := bwrap.New(bwrap.Options{}).Start(ctx, order, sandbox.Spec{Argv: []string{"bash", "-c", script}})
			if err != nil {
				t.Fatal(err)
			}
			b.Wait(ctx)
		})
		return
	}
	ws := workspace(t)
	alive := filepath.Join(ws, "alive")
	daemon := exec.Command("/proc/self/exe", "-test.run=^TestDiesWithTheDaemon$")
	daemon.Env = append(os.Environ(), "WRIT_TEST_DAEMON="+ws)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "inconclusive: it never lived", func() bool { return size(alive) > 6 })
	daemon.Process.Kill()
	daemon.Wait()
	eventually(t, "it lives on", func() bool {
		was := size(alive)
		time.Sleep(200 * time.Millisecond) // ten times its period
		return size(alive) == was
	})
}

// TestNothingOfTheHost: what native boxes do not have, these do not have either.
func TestNothingOfTheHost(t *testing.T) {
	need.Programs(t, "bwrap", "bash")
	d, ws := bwrap.New(bwrap.Options{}), workspace(t)
	o := sandboxtest.Command(t, d, confined(ws), sandbox.Spec{Argv: []string{"bash", "-c", `echo /dev/* /home/* /root/* /srv/* /var/*; cat /proc/1/cmdline | tr '\0' ' '; ls -A /tmp /tmp/home`}})
	if o.Error != nil || o.Exit.Code != 0 {
		t.Fatalf("%+v", o)
	}
	for _, want := range []string{
		"/dev/fd /dev/full /dev/null /dev/random /dev/shm /dev/stderr /dev/stdin /dev/stdout /dev/urandom /dev/zero /home/* /root/* /srv/* /var/tmp\n",
		"/proc/self/fd/8 __box writ-box ",
		"/tmp:\nhome\n" + filepath.Base(ws) + "\n\n/tmp/home:\n",
	} {
		if !strings.Contains(o.Out, want) {
			t.Errorf("%q is not in\n%s", want, o.Out)
		}
	}
}
