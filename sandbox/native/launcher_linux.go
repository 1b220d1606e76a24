package native

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/writ-run/writ/sandbox/mounted"
	"golang.org/x/sys/unix"
)

// The launcher is built by make, before this program (launcher/box.c).
//
//go:embed launcher
var launchers embed.FS

// errNoLauncher is of a build that make did not do.
var errNoLauncher = errors.New("this build has no launcher; build with make, which needs a C compiler")

// A launcher is one that was started.
type launcher struct {
	conn   *conn
	pid    int
	mounts *mounted.Table // what was mounted before it had all that for itself
}

// startLauncher starts one.
func startLauncher() (launcher, error) {
	var l launcher
	mounts, err := mounted.Now()
	if err != nil {
		return l, err
	}
	program, err := launchers.ReadFile("launcher/box-" + runtime.GOARCH)
	if err != nil {
		return l, errNoLauncher
	}
	// In memory: there is no file that somebody could exchange or a mount could forbid.
	fd, err := unix.MemfdCreate("writ-box", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel that asks nobody
		fd, err = unix.MemfdCreate("writ-box", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return l, fmt.Errorf("memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "writ-box")
	defer file.Close()
	if _, err := file.Write(program); err != nil {
		return l, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return l, fmt.Errorf("%s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	ours, theirs, err := newPair()
	if err != nil {
		return l, err
	}
	defer unix.Close(theirs)
	if err := leave(ours); err != nil {
		ours.close()
		return l, err
	}
	// Not by os/exec: the first process that it starts makes it try out what this kernel
	// can, by another process.
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"writ-box"}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(theirs)}, Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		ours.close()
		return l, fmt.Errorf("%s: %w", stepSpace, err)
	}
	return launcher{ours, pid, mounts}, nil
}

// leave is what a launcher finds to do when it begins: to leave the host for a user and a
// mount namespace of its own, in which it may do what only root may outside. It leaves by
// itself: to begin a process in a user namespace, syscall.ForkExec copies this whole one,
// and that takes longer than most of what a first box needs.
func leave(c *conn) error {
	s := &script{}
	s.doing(stepSpace)
	s.call(unix.SYS_UNSHARE, num(unix.CLONE_NEWUSER|unix.CLONE_NEWNS))
	c.later(saysDone, s)
	return c.send(s, inPlace, 0, "", "")
}

// apart says who is who where a launcher has left the host for.
func (l launcher) apart() error {
	if err := l.conn.settle(); err != nil {
		return err
	}
	uid, gid := everybody()
	maps := [][2]string{{"uid_map", uid}, {"gid_map", gid}}
	if os.Geteuid() != 0 { // who may not say of groups what they could change later
		maps = append([][2]string{{"setgroups", "deny"}}, maps...)
	}
	for _, t := range maps {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", l.pid, t[0]), []byte(t[1]), 0); err != nil {
			return fmt.Errorf("%s: %w", stepSpace, err)
		}
	}
	return nil
}

// everybody says who is who in the launcher's user namespace and in those of boxes, as the
// kernel takes it: each the same as outside. Root may say so of all; anybody else of
// themselves alone.
func everybody() (uid, gid string) {
	if os.Geteuid() == 0 {
		return "0 0 4294967295\n", "0 0 4294967295\n"
	}
	return fmt.Sprintf("%d %[1]d 1\n", os.Geteuid()), fmt.Sprintf("%d %[1]d 1\n", os.Getegid())
}
