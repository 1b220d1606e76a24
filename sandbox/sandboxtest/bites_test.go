//go:build linux

package sandboxtest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
)

// ordinary are rows that an unprivileged process cannot do on an ordinary host,
// confined or not, and rows that need a part of the kernel that may be missing.
var ordinary = []string{
	"read/proc_parent_environ", "read/proc_1_environ", "read/proc_parent_memory", "read/proc_parent_cwd", "read/proc_parent_root",
	"write/the_system", "write/unmount", "write/bind_over", "write/block_device", "write/device_node", "write/rename_its_parent", "hide/unmount_it",
	"network/socket.AF_INET,socket.SOCK_RAW,1", "network/socket.AF_INET,socket.SOCK_DGRAM,1", "network/31,socket.SOCK_RAW,1", "network/socket.AF_VSOCK",
	"network/38,socket.SOCK_SEQPACKET", "network/socket.AF_PACKET,socket.SOCK_RAW", "network/pair_of_another_family", "network/socket.AF_INET6", "network/socket.AF_INET6,socket.SOCK_DGRAM",
	"kernel/an_unknown_call", "kernel/syslog", "kernel/pivot_root", "kernel/chroot", "kernel/open_tree", "kernel/fsopen", "kernel/mount",
	"kernel/clone_a_network_namespace", "kernel/bpf", "kernel/perf_event_open", "kernel/userfaultfd", "kernel/keyctl", "kernel/add_key", "kernel/io_uring_setup", "kernel/setns",
	"kernel/limits_of_the_supervisor", "kernel/affinity_of_the_supervisor", "kernel/clone_a_user_namespace", "kernel/unshare_user", "kernel/other_architecture",
	"processes/setuid", "processes/setgid", "processes/groups", "processes/signal_the_parent", "processes/oom_score", "processes/capabilities",
}

// TestBites runs the suite on a driver that confines nothing. Every attack must
// then work: one that fails anyway is dead, and would pass for the wrong reason.
func TestBites(t *testing.T) {
	if os.Getenv("WRIT_TEST_BARE") != "" {
		Run(t, bare{})
		return
	}
	need.Root(t) // its processes run as a user of their own
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestBites$/^(read|write|hide|exec|network|kernel|processes)$", "-test.v")
	cmd.Env = append(os.Environ(), "WRIT_TEST_BARE=1")
	out, _ := cmd.CombinedOutput() // it fails, that is the point
	for _, left := range []string{"/tmp/c", "/tmp/ct", "/tmp/cl", "/dev/shm/c", "/dev/shm/x"} {
		os.Remove(left) // what the controls of a box make in its own directories
	}
	rows := 0
	for line := range strings.Lines(string(out)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- PASS: TestBites/")
		name, _, _ = strings.Cut(name, " ")
		if ok && strings.Contains(name, "/") && !slices.Contains(ordinary, name) {
			t.Errorf("the attack %s does not work without a sandbox", name)
		}
		if strings.Contains(line, "--- FAIL: TestBites/") {
			rows++
		}
	}
	if rows < 100 {
		t.Errorf("only %d attacks worked without a sandbox\n%s", rows, out)
	}
}

type bare struct{}

func (bare) Name() string                                    { return "bare" }
func (bare) Probe(context.Context) (sandbox.Features, error) { return nil, nil }
func (bare) Start(_ context.Context, w writ.Writ, s sandbox.Spec) (sandbox.Box, error) {
	c := exec.Command(s.Argv[0], s.Argv[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = s.Dir, s.Stdin, s.Stdout, s.Stderr
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}
	for k, v := range s.Env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return bareBox{c, w.Confinement().Limits.Wall}, c.Start()
}

type bareBox struct {
	c    *exec.Cmd
	wall time.Duration
}

func (b bareBox) Wait(context.Context) (sandbox.Exit, error) {
	defer time.AfterFunc(b.wall, func() { syscall.Kill(-b.c.Process.Pid, syscall.SIGKILL) }).Stop()
	b.c.Wait()
	return sandbox.Exit{Code: b.c.ProcessState.ExitCode()}, nil
}
