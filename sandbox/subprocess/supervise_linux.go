package subprocess

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervise is the process between the daemon and the box. It is outside every
// restriction of the box and cannot be signalled or traced from inside. It ends
// when no process of the box is left, and not before.
func supervise() {
	in, out := bufio.NewReader(os.NewFile(fdJob, "job")), json.NewEncoder(os.NewFile(fdStatus, "status"))
	unix.CloseOnExec(fdJob)
	unix.CloseOnExec(fdStatus)
	end, err := superviseJob(in, out)
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			f = &failure{stepProtocol, err.Error()}
		}
		end = status{Failed: f}
	}
	if out.Encode(end) != nil {
		os.Exit(1) // the daemon is gone
	}
	os.Exit(0)
}

func superviseJob(in *bufio.Reader, out *json.Encoder) (status, error) {
	j, line, err := readJob(in)
	if err != nil {
		return status{}, err
	}
	// Orphans of the box become children of this process, however often they
	// fork and whatever session they make.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return status{}, err
	}
	c, err := startConfiner(j, line)
	if err != nil {
		return status{}, err
	}
	go obey(in, c, j.Grace)
	if err := c.confined(); err != nil {
		c.kill()
		c.wait()
		killAll()
		return status{}, err
	}
	if err := out.Encode(status{Started: true}); err != nil {
		c.kill()
	}
	ws := c.wait()
	killAll()
	return ended(ws), nil
}

// obey kills the box when told to, when the daemon is gone (kill -9 included)
// and when someone asks this process to end.
func obey(in *bufio.Reader, c *confiner, grace time.Duration) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	messages := make(chan byte)
	go func() {
		for {
			b, err := in.ReadByte()
			if err != nil {
				b = msgKill
			}
			messages <- b
		}
	}()
	var late <-chan time.Time
	for {
		select {
		case b := <-messages:
			if b == msgTerm {
				late = time.After(grace)
				askAll()
				continue
			}
			c.kill()
		case <-late:
			c.kill()
		case <-asked:
			c.kill()
		}
	}
}

// A confiner is the process that becomes the command.
type confiner struct {
	pid    int
	pidfd  int
	report *os.File
}

// startConfiner starts it in a mount namespace of its own and, unless the daemon
// is root, a user namespace that maps its own user to itself. It dies when the
// calling thread ends, which is locked to this process's life.
func startConfiner(j job, line []byte) (*confiner, error) {
	jobR, jobW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	repR, repW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if !j.Root {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: j.UID, HostID: j.UID, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: j.GID, HostID: j.GID, Size: 1}}
		// A user other than 0 loses its capabilities at execve unless they are ambient.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	}
	argv := append(append([]string{}, j.Launcher...), "confine")
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   launcherEnv,
		Files: []uintptr{0, 1, 2, jobR.Fd(), repW.Fd()},
		Sys:   attr,
	})
	jobR.Close()
	repW.Close()
	if err != nil {
		return nil, failed(stepSpace, err)
	}
	c := &confiner{pid: pid, report: repR}
	c.pidfd, err = unix.PidfdOpen(pid, 0)
	if err == nil {
		err = letGoOfStdio()
	}
	if err == nil {
		_, err = jobW.Write(line)
	}
	jobW.Close()
	if err != nil {
		syscall.Kill(pid, syscall.SIGKILL) // not waited for yet, so the number is still its own
		c.wait()
	}
	return c, err
}

// letGoOfStdio leaves the pipes to the box, so that their ends mean something.
func letGoOfStdio() error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// confined waits until the command runs, confined. Right before it executes, a
// confiner says ready; an end without that, or a failure after it, is a box that
// did not start.
func (c *confiner) confined() error {
	defer c.report.Close()
	said, err := io.ReadAll(io.LimitReader(c.report, 64<<10))
	if err != nil {
		return err
	}
	after, executed := bytes.CutPrefix(said, []byte(ready))
	if executed && len(after) == 0 {
		return nil
	}
	var f failure
	if json.Unmarshal(after, &f) != nil || f.Step == "" {
		return errors.New("the confiner ended before the command started")
	}
	return &f
}

func (c *confiner) kill() { unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0) }

// wait reaps children until the command itself has ended.
func (c *confiner) wait() syscall.WaitStatus {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if pid == c.pid || err == syscall.ECHILD {
			return ws
		}
	}
}

// ended is the status of a box in which nothing is left.
func ended(ws syscall.WaitStatus) status {
	s := status{Code: ws.ExitStatus()}
	if ws.Signaled() {
		s.Code, s.Signal = -1, ws.Signal().String()
	}
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru) == nil {
		s.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	return s
}
