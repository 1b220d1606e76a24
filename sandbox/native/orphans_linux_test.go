package native_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
)

// inBoxes runs a script twice in boxes of its own, and twice in one that is kept.
func inBoxes(t *testing.T, d *native.Driver, limits writ.Limits, script string, check func(t *testing.T, exit sandbox.Exit, out string)) {
	ws := workspace(t)
	c := confined(ws)
	c.Backend, c.Limits = native.Name, limits // without protected names
	for _, s := range []sandbox.Strategy{sandbox.PerCall, sandbox.PerAgent} {
		t.Run(string(s), func(t *testing.T) {
			boxes := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{Strategy: s})
			defer boxes.Close()
			g := calls{c, func(ctx context.Context, w writ.Writ) {
				tail := sandbox.NewTail(1 << 16)
				b, _, err := boxes.Start(ctx, w, sandbox.Spec{Argv: []string{"bash", "-c", script}, Stdout: tail})
				if err != nil {
					t.Fatal(err)
				}
				exit, err := b.Wait(ctx)
				if err != nil {
					t.Fatal(err)
				}
				check(t, exit, tail.String())
			}}
			for range 2 {
				if _, err := writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{ID: "c", Agent: "a", Session: "s", Tool: "t", Definition: writ.Digest{1}, Dir: ws, Resolved: true}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestOrphans: what a command leaves behind and has ended takes no place among the
// processes that it may have, and how the command itself ends is told.
func TestOrphans(t *testing.T) {
	d := started(t)
	defer d.Close()
	const script = `
		for i in $(seq 600); do (true &) || exit 9; done
		for i in $(seq 200); do left=$(ls -d /proc/[0-9]* | wc -l); [ $left -lt 16 ] && break; sleep 0.05; done
		echo $left left; exit 7`
	inBoxes(t, d, writ.Limits{Pids: 64, Wall: time.Minute}, script, func(t *testing.T, exit sandbox.Exit, out string) {
		n, _, _ := strings.Cut(out, " left\n")
		if left, err := strconv.Atoi(n); err != nil || left < 2 || left >= 16 || exit.Code != 7 || exit.Limit != "" {
			t.Errorf("%+v %.300q", exit, out)
		}
	})
}

// TestOrphansCount: time that was used by what a command left behind is told with its own,
// also of what had ended before it.
func TestOrphansCount(t *testing.T) {
	d := started(t)
	defer d.Close()
	const least = 200 * time.Millisecond
	const wait = `((%s; touch spun) &); until [ -e spun ]; do sleep 0.05; done; rm spun; sleep 0.1`
	for _, tc := range []struct {
		script string
		counts bool
	}{{"sleep 0.3", false}, {"bash -c 'ulimit -t 1; while :; do :; done'", true}} { // however long that second takes
		inBoxes(t, d, writ.Limits{}, fmt.Sprintf(wait, tc.script), func(t *testing.T, exit sandbox.Exit, out string) {
			if exit.Code != 0 || exit.CPU >= least != tc.counts {
				t.Errorf("%s: %+v %.300q", tc.script, exit, out)
			}
		})
	}
}

// TestWatching: boxes that take all the inotify instances that they can get have enough
// for tools, and leave the user of the daemon most of what the host has.
func TestWatching(t *testing.T) {
	need.Programs(t, "python3")
	d := started(t)
	defer d.Close()
	const script = `
import ctypes, sys
n = 0
while n < 500 and ctypes.CDLL(None).inotify_init() >= 0: n += 1
print(n, open('/proc/sys/user/max_inotify_watches').read().strip(), flush=True)
sys.stdin.read()`
	sandboxtest.With(t, confined(workspace(t)), "", func(ctx context.Context, w writ.Writ) {
		all := 0
		for i := range 3 {
			in, hold := io.Pipe()
			said, out := io.Pipe()
			b, err := d.Start(ctx, w, sandbox.Spec{Argv: []string{"python3", "-c", script}, Stdin: in, Stdout: out, Stderr: out})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Wait(ctx)
			defer hold.Close()
			var n, watches int
			if _, err := fmt.Fscan(said, &n, &watches); err != nil {
				t.Fatal(err)
			}
			if n > 32 || i == 0 && n < 16 || watches > 32768 || watches < 1024 {
				t.Errorf("box %d has %d instances and %d watches", i, n, watches)
			}
			all += n
		}
		if all > 64 {
			t.Errorf("boxes have %d instances together", all)
		}
		for range 16 {
			fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
			if err != nil {
				t.Fatal("the host has none left: ", err)
			}
			defer syscall.Close(fd)
		}
	})
}

// TestUnmeasured: a process that keeps what it writes from an ordinary user ends the run, by
// whatever name; processes that have ended, and those of the launcher, do not.
func TestUnmeasured(t *testing.T) {
	need.Programs(t, "python3")
	if os.Geteuid() == 0 { // who can look at everything
		asOrdinaryUser(t)
		return
	}
	d := started(t)
	defer d.Close()
	const ctypes = `python3 -c "import ctypes, os, time; p = ctypes.CDLL(None).prctl; `
	for _, tc := range []struct{ name, script, limit string }{
		{"honest", `(sleep 0.1 &); for i in $(seq 200); do /bin/true; done; ` + ctypes + "os.fork() or os._exit(0); time.sleep(1.2)\"", ""},
		{"hidden", ctypes + `p(4, 0); time.sleep(5)"; :`, "unmeasured"},
		{"hidden, and named", ctypes + `p(4, 0); p(15, b'writ-box'); time.sleep(5)"; :`, "unmeasured"},
		{"hidden, instead of the command", `exec ` + ctypes + `p(4, 0); time.sleep(5)"`, "unmeasured"},
		{"hidden, left behind", `(` + ctypes + `p(4, 0); time.sleep(5)" &); sleep 5`, "unmeasured"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBoxes(t, d, writ.Limits{}, tc.script, func(t *testing.T, exit sandbox.Exit, out string) {
				if exit.Limit != tc.limit || exit.Code != 0 && tc.limit == "" {
					t.Errorf("%+v %.300q", exit, out)
				}
			})
		})
	}
}

// asOrdinaryUser does a test again as one, from where that user can get to this program.
func asOrdinaryUser(t *testing.T) {
	t.Helper()
	dir := workspace(t)
	program := filepath.Join(dir, "test")
	if out, err := exec.Command("cp", "/proc/"+strconv.Itoa(os.Getpid())+"/exe", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v\n%s", err, out)
	}
}
