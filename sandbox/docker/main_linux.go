package docker

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/supervise"
	"github.com/writ-run/writ/sandbox/usage"
	"golang.org/x/sys/unix"
)

// inBox is where this program is in a container.
const inBox = "/.writ-box"

// The parts that this program plays in one, after the verb.
const (
	partIdle      = "docker-idle"
	partSupervise = "docker-supervise"
	partBecome    = "docker-become"
	partClear     = "docker-clear"
	partSidecar   = "docker-sidecar"
	partConnect   = "docker-connect"
)

// Main plays the part of a box that this program was started for and does not return, or
// returns at once when it was started for something else. A main function, and the
// TestMain of a test that starts boxes, calls it first.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != probe.Verb {
		return
	}
	switch os.Args[2] {
	case partIdle:
		bare()
		idle()
	case partClear:
		clearAll()
	case partSidecar:
		beside()
	case partConnect:
		connect()
	case partSupervise:
		bare()
		runtime.LockOSThread()
		hold()
	case partBecome:
		runtime.LockOSThread()
		supervise.Become(confine)
	}
}

// idle is the first process of a container: it reaps, and ends when the daemon has let go
// or is not heard any more, and all that runs in the container with it.
func idle() {
	runtime.GOMAXPROCS(1)
	if os.Getuid() == 0 {
		os.Remove("/dev/fuse") // which runsc gives every container
	}
	signal.Ignore(syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // ignored children are reaped by the kernel
	settle()
	var p pulse
	p.watch(leave)
	p.attend(os.Stdin)
	unix.Exit(0)
}

// hold starts the command and outlives it. It ends after every process that the command
// left behind, and touches no other.
func hold() {
	runtime.GOMAXPROCS(1) // its threads count as processes of the box
	settle()
	debug.SetMemoryLimit(24 << 20) // and its memory is the command's; until then nothing is collected
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2)
	ends, err := ends()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		unix.Exit(1)
	}
	// The kernel of runsc has no such thing: what a command leaves behind is found by there
	// being nothing else in the container.
	ends.Orphans = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == unix.EINVAL
	s, j := supervise.UpWith[job](ends)
	before := bounds()
	cmd := becoming(j)
	over := make(chan struct{})
	ask, use := supervise.AskAll, used
	if j.As != nil {
		if !gVisor() {
			fmt.Fprintln(os.Stderr, "this is not gVisor's kernel, whatever the engine calls its runtime")
			unix.Exit(1)
		}
		ask, use = askOthers, usage.Everything
	}
	var met atomic.Pointer[string]
	var own int64
	s.Run(cmd, supervise.Hands{
		// From now on nobody inside reads its memory, its descriptors or, through /proc, its
		// program. Before, that would keep it from saying who the user of a namespace is.
		Begun: func() {
			own = ownThreads()
			unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		},
		Ask:  ask,
		Kill: func() { cmd.Process.Kill() },
		End: func(command int) (unix.WaitStatus, string) {
			j.Use.Watch(over, use, func(limit string) {
				met.Store(&limit)
				cmd.Process.Kill()
			})
			how := supervise.Ended(command)
			if j.As != nil {
				killOthers()
			} else {
				supervise.KillAll()
			}
			close(over)
			if limit := met.Load(); limit != nil {
				return how, *limit
			}
			return how, ""
		},
		Met: func() string { return bounds().since(before, j.Limits.Pids, own) },
	})
}

// becoming is the process that becomes the command, in namespaces of its own, of users, of
// mounts, and of queues, which would be there for the next command in a container that is
// kept; where the kernel lets a container make them.
func becoming(j job) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1], partBecome)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if j.As != nil {
		cmd.Path = inBox // /proc may be of a table that this process is not in
		// It does not see who started it there, and would take that for dead.
		cmd.SysProcAttr.Cloneflags, cmd.SysProcAttr.Pdeathsig = unix.CLONE_NEWPID, 0
	}
	if j.Spaces {
		uid, gid := os.Getuid(), os.Getgid()
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // it drops them when it has used them
	}
	return cmd
}

// ends are those of a supervisor whose streams carry frames.
func ends() (e supervise.Ends, err error) {
	out := &frames{to: os.Stdout}
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return e, err
	}
	var drained sync.WaitGroup
	for _, s := range []struct {
		from *os.File
		kind byte
	}{{outR, frameOut}, {errR, frameErr}} {
		drained.Go(func() {
			io.CopyBuffer(struct{ io.Writer }{out.as(s.kind)}, struct{ io.Reader }{s.from}, make([]byte, 64<<10))
		})
	}
	input := make(chan []byte, 1)
	go feed(inW, input, out)
	control, told := io.Pipe()
	var p pulse
	p.watch(func() { told.CloseWithError(io.ErrUnexpectedEOF) }) // as if it had let go
	go func() {
		err := receive(os.Stdin, func(kind byte, b []byte) error {
			switch kind {
			case frameControl:
				_, err := told.Write(b)
				return err
			case frameIn:
				input <- b // there is room: the next piece comes after this one was taken
			case frameBeat:
				p.heard(b)
			}
			return nil
		})
		told.CloseWithError(err) // the daemon has let go
	}()
	return supervise.Ends{Control: control, Status: out.as(frameStatus), Stdio: [3]*os.File{inR, outW, errW}, Drained: drained.Wait}, nil
}

// feed passes input on, one piece after the other, so that messages are never behind it.
func feed(to *os.File, pieces <-chan []byte, out *frames) {
	defer to.Close()
	for b := range pieces {
		if len(b) == 0 {
			return
		}
		if _, err := to.Write(b); err != nil {
			return // a command that does not read its input
		}
		out.send(frameTook, nil)
	}
}
