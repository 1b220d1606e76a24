package subprocess

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// hold is the process between the daemon and the box. It is outside every
// restriction of the box and cannot be signalled or traced from inside. It ends
// when no process of the box is left, and not before: also when someone asks it to.
func hold() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	s, j := supervise.Up[job]()
	cmd := confiner(j)
	s.Run(cmd, supervise.Hands{
		Asked: asked,
		Ask:   supervise.AskAll,
		Kill:  func() { cmd.Process.Kill() },
		End: func(command int) (unix.WaitStatus, string) {
			how := supervise.Ended(command)
			supervise.KillAll()
			return how, ""
		},
	})
}

// confiner is the process that becomes the command: in a mount namespace of its own and,
// unless the daemon is root, a user namespace that maps its own user to itself. It dies
// when the calling thread ends, which is locked to this process's life.
func confiner(j job) *exec.Cmd {
	argv := part(j.Launcher, partConfine)
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if j.As == nil {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: j.UID, HostID: j.UID, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: j.GID, HostID: j.GID, Size: 1}}
		// A user other than 0 loses its capabilities at execve unless they are ambient.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	}
	return &exec.Cmd{Path: argv[0], Args: argv, Env: launcherEnv, SysProcAttr: attr}
}
