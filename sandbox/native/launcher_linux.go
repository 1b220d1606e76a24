package native

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The launcher is built by make, before this program (launcher/box.c).
//
//go:embed launcher
var launchers embed.FS

// errNoLauncher is of a build that make did not do.
var errNoLauncher = errors.New("this build has no launcher; build with make, which needs a C compiler")

// startLauncher starts a launcher.
func startLauncher() (*conn, *exec.Cmd, error) {
	program, err := launchers.ReadFile("launcher/box-" + runtime.GOARCH)
	if err != nil {
		return nil, nil, errNoLauncher
	}
	// In memory: there is no file that somebody could exchange or a mount could forbid.
	fd, err := unix.MemfdCreate("writ-box", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel that asks nobody
		fd, err = unix.MemfdCreate("writ-box", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "writ-box")
	defer file.Close()
	if _, err := file.Write(program); err != nil {
		return nil, nil, err
	}
	ours, theirs, err := newPair()
	if err != nil {
		return nil, nil, err
	}
	control := os.NewFile(uintptr(theirs), "control")
	defer control.Close()
	cmd := &exec.Cmd{
		Path: fmt.Sprintf("/proc/self/fd/%d", fd), Args: []string{"writ-box"}, Env: []string{}, Dir: "/", ExtraFiles: []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		ours.close()
		return nil, nil, fmt.Errorf("%s: %w", stepSpace, err)
	}
	return ours, cmd, nil
}

// apart has a launcher leave the host for a user and a mount namespace of its own, in which
// it may do what only root may outside, and says who is who there. It leaves by itself: to begin a process in a user namespace, syscall.StartProcess copies this
// whole one, and that takes longer than most of what a first box needs.
func apart(c *conn, pid int) error {
	s := &script{}
	s.doing(stepSpace)
	s.call(unix.SYS_UNSHARE, num(unix.CLONE_NEWUSER|unix.CLONE_NEWNS))
	if err := c.send(s, inPlace, 0, "", ""); err != nil {
		return fmt.Errorf("%s: %w", stepSpace, err)
	}
	if _, err := c.expect(saysDone, s); err != nil {
		return err
	}
	uid, gid := everybody()
	maps := [][2]string{{"uid_map", uid}, {"gid_map", gid}}
	if os.Geteuid() != 0 { // who may not say of groups what they could change later
		maps = append([][2]string{{"setgroups", "deny"}}, maps...)
	}
	for _, t := range maps {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, t[0]), []byte(t[1]), 0); err != nil {
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
