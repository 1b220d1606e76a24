package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// Main runs inside a box, where this program was started for that: it tries what it may
// not do, and what it may, says what happened and does not return.
func Main() {
	var t targets
	if len(os.Args) != 4 || os.Args[1] != Verb || os.Args[2] != part || json.Unmarshal([]byte(os.Args[3]), &t) != nil {
		return
	}
	var r report
	r.files(t)
	r.hidden(t)
	r.programs(t)
	r.network(t)
	r.processes(t)
	r.privileges(t)
	r.limits()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *report) files(t targets) {
	own := filepath.Join(t.Read, "file")
	r.control(sandbox.FileRead, "read what may be read", read(own))
	r.add(sandbox.FileRead, "read a file outside", read(t.Secret))
	if t.Host != "" {
		r.add(sandbox.FileRead, "read "+t.Host, readThe(t.Host, t.HostIs, t.GVisor))
	}
	mine := filepath.Join(t.Write, "file")
	r.control(sandbox.FileWrite, "write what may be written", os.WriteFile(mine, []byte("x"), 0o644))
	r.control(sandbox.FileWrite, "change its mode", os.Chmod(mine, 0o600))
	r.add(sandbox.FileWrite, "write a file outside", os.WriteFile(own, []byte("x"), 0o644))
	r.add(sandbox.FileWrite, "create a file outside", os.WriteFile(own+"2", []byte("x"), 0o644))
	r.add(sandbox.FileWrite, "change the mode of a file outside", os.Chmod(own, 0o777))
	r.add(sandbox.FileWrite, "change its times", unix.Utimes(own, []unix.Timeval{{}, {}}))
	r.add(sandbox.FileWrite, "set an attribute on it", unix.Setxattr(own, "user.x", []byte("x"), 0))
	r.add(sandbox.FileWrite, "rename it", os.Rename(own, own+"2"))
	r.add(sandbox.FileWrite, "link it into the workspace", os.Link(own, filepath.Join(t.Write, "link")))
}

func (r *report) hidden(t targets) {
	r.control(sandbox.StateHidden, "look beside it", list(t.Read))
	r.add(sandbox.StateHidden, "read a hidden file", read(t.HiddenFile))
	r.add(sandbox.StateHidden, "read a file in a hidden directory", read(filepath.Join(t.Hidden, "canary")))
	_, err := os.Lstat(filepath.Join(t.Hidden, "canary"))
	r.add(sandbox.StateHidden, "see it", err)
	r.add(sandbox.StateHidden, "connect to a listening socket in it", connect(filepath.Join(t.Hidden, "sock")))
}

func (r *report) programs(t targets) {
	r.control(sandbox.ExecListed, "run a listed program", run(t.True))
	r.add(sandbox.ExecListed, "run one that is not listed", run(t.Unlisted))
	for _, loader := range reach.RealAll(reach.GlobAll(reach.Loaders)) {
		r.control(sandbox.ExecListed, "run the listed one through "+loader, run(loader, t.True))
		r.add(sandbox.ExecListed, "run it through "+loader, run(loader, t.Unlisted))
	}
	if b, err := os.ReadFile(t.True); err == nil {
		copied := filepath.Join(t.Write, "true")
		r.control(sandbox.ExecListed, "copy a program", os.WriteFile(copied, b, 0o755))
		r.add(sandbox.ExecListed, "run a program made in the workspace", run(copied))
		for _, loader := range reach.RealAll(reach.GlobAll(reach.Loaders)) {
			r.add(sandbox.ExecListed, "run that through "+loader, run(loader, copied))
		}
	}
	_, err := unix.MemfdCreate("x", 0)
	r.add(sandbox.ExecListed, "make a file without a path", err)
}

func (r *report) network(t targets) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	r.control(sandbox.NoNetwork, "make a pair of sockets", err)
	if err == nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
	}
	r.add(sandbox.NoNetwork, "connect to a port of the host", dial(unix.AF_INET, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}}))
	r.add(sandbox.NoNetwork, "connect to an abstract socket of the host", dial(unix.AF_UNIX, &unix.SockaddrUnix{Name: t.Abstract}))
	r.add(sandbox.NoNetwork, "connect to a socket of the host in the workspace", dial(unix.AF_UNIX, &unix.SockaddrUnix{Name: t.Socket}))
	r.add(sandbox.NoNetwork, "send a datagram out", dialDatagram(&unix.SockaddrInet4{Port: 53, Addr: [4]byte{192, 0, 2, 1}}))
	for _, s := range []struct {
		name         string
		family, kind int
	}{
		{"raw", unix.AF_INET, unix.SOCK_RAW}, {"packet", unix.AF_PACKET, unix.SOCK_RAW}, {"vsock", unix.AF_VSOCK, unix.SOCK_STREAM},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET}, {"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_STREAM},
	} {
		_, err := unix.Socket(s.family, s.kind, 0)
		r.add(sandbox.NoNetwork, "socket "+s.name, err)
	}
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	r.add(sandbox.NoNetwork, "a pair of datagram sockets", err)
}

func (r *report) processes(t targets) {
	r.control(sandbox.OwnProcesses, "signal itself", unix.Kill(os.Getpid(), 0))
	if os.Getppid() > 1 { // else it is the box's own
		r.add(sandbox.OwnProcesses, "signal the supervisor", unix.Kill(os.Getppid(), 0))
	}
	r.add(sandbox.OwnProcesses, "trace the supervisor", unix.PtraceAttach(os.Getppid()))
	if !t.GVisor || !first() { // else it is its own
		r.add(sandbox.OwnProcesses, "read the environment of process 1", read("/proc/1/environ"))
	}
	if t.Victim != 0 {
		pid := fmt.Sprint(t.Victim)
		r.add(sandbox.OwnProcesses, "signal a process of the same user", unix.Kill(t.Victim, 0))
		r.add(sandbox.OwnProcesses, "read its environment", read("/proc/"+pid+"/environ"))
		r.add(sandbox.OwnProcesses, "read its command line", read("/proc/"+pid+"/cmdline"))
		r.add(sandbox.OwnProcesses, "change its limits", unix.Prlimit(t.Victim, unix.RLIMIT_CORE, &unix.Rlimit{}, nil))
		_, err := os.Stat("/proc/" + pid)
		r.add(sandbox.ProcessTable, "see it in /proc", err)
	}
	r.control(sandbox.WholeTreeDies, "leave a process behind", leave(t))
}

func (r *report) privileges(t targets) {
	r.add(sandbox.Unprivileged, "setuid 0", unix.Setuid(0))
	r.add(sandbox.Unprivileged, "a user namespace", unix.Unshare(unix.CLONE_NEWUSER))
	r.add(sandbox.Unprivileged, "mount", unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	b, err := os.ReadFile("/proc/self/status")
	r.control(sandbox.Unprivileged, "read its own status", err)
	for _, want := range []string{"CapInh:\t0", "CapPrm:\t0", "CapEff:\t0", "CapBnd:\t0", "CapAmb:\t0", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		name, value, _ := strings.Cut(want, ":\t")
		got := field(string(b), name)
		if got == "" && t.GVisor {
			got = asked(name)
		}
		if strings.Trim(got, "0") == strings.Trim(value, "0") && got != "" {
			r.add(sandbox.Unprivileged, name, errors.New(value))
		} else {
			r.add(sandbox.Unprivileged, name+" is "+got, nil)
		}
	}
	if os.Getuid() == 0 || os.Getgid() == 0 {
		r.add(sandbox.Unprivileged, "being root", nil)
	}
}

func (r *report) limits() {
	for range flooded / (64 << 10) {
		os.Stderr.Write(make([]byte, 64<<10))
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &l); err == nil && l.Max < 1<<20 {
		r.add(sandbox.LimitPids, "more processes and threads of this user than", fmt.Errorf("%d (RLIMIT_NPROC)", l.Max))
	}
	if restrict.RaceBuild {
		return
	}
	r.control(sandbox.LimitMemory, "map a mebibyte", mapMemory(1<<20))
	r.add(sandbox.LimitMemory, "map 8 GiB in one process", mapMemory(8<<30))
}
