package native_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"golang.org/x/sys/unix"
)

// launchers are the pids of launchers below this process, and of what they began.
func launchers(t *testing.T) []int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	parent, name := map[int]int{}, map[int]string{}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		text := string(b)
		open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		pid, _ := strconv.Atoi(strings.TrimSpace(text[:open]))
		parent[pid], _ = strconv.Atoi(strings.Fields(text[shut+1:])[1])
		name[pid] = text[open+1 : shut]
	}
	var out []int
	for pid := range parent {
		for p, ours := pid, false; p > 1; p = parent[p] {
			ours = ours || name[p] == "writ-box"
			if parent[p] == os.Getpid() && ours {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// eventually waits for something that happens by itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func workspace(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "writ-native-")
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

// TestCloseEndsEverything: closing the driver leaves no process behind, running or ready.
func TestCloseEndsEverything(t *testing.T) {
	d := started(t)
	ws := workspace(t)
	sandboxtest.With(t, confined(ws), "", func(ctx context.Context, w writ.Writ) {
		b, err := d.Start(ctx, w, sandbox.Spec{Argv: []string{"bash", "-c", "touch ran; sleep 60 & setsid sleep 60 & wait"}})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it did not begin", func() bool { _, err := os.Stat(filepath.Join(ws, "ran")); return err == nil })
		if len(launchers(t)) < 5 {
			t.Errorf("inconclusive: %v", launchers(t))
		}
		d.Close()
		if _, err := b.Wait(ctx); err == nil {
			t.Error("a box that was killed says it ended well")
		}
		eventually(t, "something is left", func() bool { return len(launchers(t)) == 0 })
		if _, err := d.Start(ctx, w, sandbox.Spec{Argv: []string{"true"}}); err == nil {
			t.Error("a closed driver starts something")
		}
	})
}

// TestFactoryKilled: boxes end with their factory, and the next call gets another one.
func TestFactoryKilled(t *testing.T) {
	d := started(t)
	defer d.Close()
	ws := workspace(t)
	sandboxtest.With(t, confined(ws), "", func(ctx context.Context, w writ.Writ) {
		b, err := d.Start(ctx, w, sandbox.Spec{Argv: []string{"sleep", "60"}})
		if err != nil {
			t.Fatal(err)
		}
		syscall.Kill(slices.Min(launchers(t)), syscall.SIGKILL) // the first of them
		if _, err := b.Wait(ctx); writ.KindOf(err) != writ.Internal {
			t.Errorf("the box of a dead factory: %v", err)
		}
		eventually(t, "something is left", func() bool { return len(launchers(t)) <= 1 }) // the factory itself, not reaped yet
		b, err = d.Start(ctx, w, sandbox.Spec{Argv: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := b.Wait(ctx); err != nil || exit.Code != 0 {
			t.Error(exit, err)
		}
	})
}

// TestFactoryRetired: when something is mounted in what boxes show, another factory is begun,
// once; the one before goes with its last box, and not sooner.
func TestFactoryRetired(t *testing.T) {
	need.Root(t)
	d := started(t)
	defer d.Close()
	ws := workspace(t)
	at := filepath.Join(ws, "at")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	factories := func() (n int) {
		for _, pid := range launchers(t) {
			stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.Fields(rest)[0] != "Z" && strings.Fields(rest)[1] == strconv.Itoa(os.Getpid()) {
				n++
			}
		}
		return n
	}
	sandboxtest.With(t, confined(ws), "", func(ctx context.Context, w writ.Writ) {
		start := func(argv ...string) sandbox.Box {
			t.Helper()
			b, err := d.Start(ctx, w, sandbox.Spec{Argv: argv})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		ends := func(b sandbox.Box) {
			t.Helper()
			if exit, err := b.Wait(ctx); err != nil || exit.Code != 0 {
				t.Error(exit, err)
			}
		}
		long := start("sh", "-c", "while test ! -e go; do sleep 0.02; done; test ! -e at/there")
		if n := factories(); n != 1 {
			t.Fatalf("inconclusive: %d factories", n)
		}
		if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(at, unix.MNT_DETACH)
		for _, name := range []string{filepath.Join(at, "there"), filepath.Join(ws, "go")} {
			for range 3 {
				ends(start("sh", "-c", "true"))
			}
			if n := factories(); n != 2 {
				t.Errorf("%d factories while a box of the first is there", n)
			}
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ends(long)
		eventually(t, "the first factory is left", func() bool { return factories() == 1 })
		ends(start("test", "-e", "at/there"))
	})
}

// started is a driver that has boxes ready.
func started(t *testing.T) *native.Driver {
	t.Helper()
	d := native.New(native.Options{})
	needLauncher(t, d)
	return d
}
