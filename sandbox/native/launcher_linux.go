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

// startLauncher starts a launcher in a user and a mount namespace of its own, in which
// it may do what only root may outside.
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
	uid, gid := everybody()
	cmd := &exec.Cmd{
		Path: fmt.Sprintf("/proc/self/fd/%d", fd), Args: []string{"writ-box"}, Env: []string{}, Dir: "/", ExtraFiles: []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, Setsid: true,
			UidMappings: uid, GidMappings: gid, GidMappingsEnableSetgroups: os.Geteuid() == 0,
			// Of its own namespace. Whoever is not root loses them by executing otherwise.
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE},
		},
	}
	if err := cmd.Start(); err != nil {
		ours.close()
		return nil, nil, fmt.Errorf("%s: %w", stepSpace, err)
	}
	return ours, cmd, nil
}

// everybody is who is who in the launcher's user namespace: each the same as outside.
// Root may say so of all; anybody else of themselves alone.
func everybody() (uid, gid []syscall.SysProcIDMap) {
	if os.Geteuid() == 0 {
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1<<32 - 1}}
		return all, all
	}
	return []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}, []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
}

// mapText is the same, as the kernel takes it, for the user namespaces of boxes.
func mapText(m []syscall.SysProcIDMap) string {
	return fmt.Sprintf("%d %d %d\n", m[0].ContainerID, m[0].ContainerID, m[0].Size)
}
