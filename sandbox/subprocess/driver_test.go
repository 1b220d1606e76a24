//go:build linux

package subprocess_test

import (
	"bufio"
	"context"
	"fmt"
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
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/sandbox/unasked"
)

const ordinaryUser = 1000

func TestConformance(t *testing.T) { sandboxtest.Run(t, subprocess.New(subprocess.Options{})) }

// TestConformanceUser runs the suite as an ordinary user, for whom a box is made
// with a user namespace.
func TestConformanceUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TestConformance is this test for an ordinary user")
	}
	dir, err := os.MkdirTemp("/var/lib", "writ-test-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self := filepath.Join(dir, "self.test")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chown(dir, ordinaryUser, ordinaryUser), copyFile(self, "/proc/self/exe")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(self, "-test.run=^(TestConformance|TestDaemonKilled|TestProbe)$", "-test.v", "-test.timeout=5m")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WRIT_TEST_DIR="+dir, "HOME="+dir, "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConformance/read/direct") {
		t.Errorf("%v\n%s", err, failures(string(out)))
	}
}

// failures is a log without what went well.
func failures(log string) string {
	var keep []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "--- PASS") && !strings.HasPrefix(line, "=== ") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// workspace is a directory that belongs to the user of the box.
func workspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func confined(ws string) writ.Confinement {
	return writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process, Limits: writ.Limits{Wall: 10 * time.Second}}
}

// miniDaemon starts a box and never waits for it. It is this test binary again.
func miniDaemon(ws string) {
	d := subprocess.New(subprocess.Options{})
	c := confined(ws)
	c.Limits.Wall = 300 * time.Second
	err := unasked.Do(context.Background(), c, "", func(ctx context.Context, w writ.Writ) error {
		_, err := d.Start(ctx, w, sandbox.Spec{Dir: ws, Stdout: os.Stdout, Argv: []string{"bash", "-c",
			`trap '' TERM HUP; setsid sleep 1000 & echo $!
(setsid setsid bash -c 'echo $$ > pid; exec sleep 1000' &); until [ -s pid ]; do sleep 0.01; done; cat pid
echo $$ $PPID; echo ready; sleep 1000`}})
		if err == nil {
			select {}
		}
		return err
	})
	fmt.Println("failed", err)
	os.Exit(1)
}

// TestDaemonKilled: kill -9 of the daemon leaves no process of a box (I14).
func TestDaemonKilled(t *testing.T) {
	need.Programs(t, "bash", "setsid")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "WRIT_TEST_DAEMON="+workspace(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		for _, word := range strings.Fields(lines.Text()) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatalf("the daemon says %q", lines.Text())
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 4 {
		t.Fatalf("inconclusive: processes %v", pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("inconclusive: process %d: %v", pid, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	end := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for syscall.Kill(pid, 0) != syscall.ESRCH {
			if time.Now().After(end) {
				t.Fatalf("process %d outlives its daemon", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
