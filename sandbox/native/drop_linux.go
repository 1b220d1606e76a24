package native

import (
	"os"

	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// The steps, which are also what a message to people is chosen by.
const (
	stepSpace    = "namespaces"
	stepLeave    = "leave the host's mounts"
	stepBegin    = "begin a process"
	stepLandlock = "landlock"
	stepDrop     = "drop privileges"
	stepLimits   = "limits"
	stepSeccomp  = "seccomp"
	stepDir      = "change directory"
	stepExec     = "execute"
)

// become makes the process a runner: it gives up everything, and waits. The order
// matters: each step needs what a later one takes away. Where its output goes and its socket
// are passed along, and where the writ has an agent of ssh, another by which it hands out
// what hears of the calls that the filter leaves to the daemon. Where the launcher is locked
// it has the filter already.
func (s *script) become(p *reach.Plan, grouped, terminal, locked bool) error {
	own := p.Limits
	if grouped { // which counts them, and says so when there are too many
		own.Pids += launcherPids + 1
		own.Address = reach.ReserveMemory // what is only reserved does not count
	}
	limits, err := own.All()
	if err != nil {
		return err
	}
	s.doing(stepLandlock)
	s.landlock(p)
	s.doing(stepDrop)
	s.call(unix.SYS_SETSID)
	s.call(unix.SYS_UMASK, num(0o022))
	if p.Root {
		s.call(unix.SYS_SETGROUPS, num(0), num(0))
		s.call(unix.SYS_SETRESGID, num(p.GID), num(p.GID), num(p.GID))
		s.call(unix.SYS_SETRESUID, num(p.UID), num(p.UID), num(p.UID))
	}
	s.call(unix.SYS_CAPSET, s.bytes(words(unix.LINUX_CAPABILITY_VERSION_3)), s.bytes(make([]byte, 24))) // of process 0: this one
	s.doing(stepLimits)
	s.limits(limits)
	in := passed(0)
	if !terminal {
		in = s.call(unix.SYS_OPENAT, here, s.text(os.DevNull), num(unix.O_RDONLY|unix.O_CLOEXEC), num(0))
	}
	for i, stream := range []arg{in, passed(0), passed(1)} {
		s.call(unix.SYS_DUP3, stream, num(i), num(0))
	}
	if terminal {
		s.call(unix.SYS_IOCTL, num(0), num(unix.TIOCSCTTY), num(0))
	}
	s.call(unix.SYS_CLOSE_RANGE, num(3), num(uint32(1<<31-1)), num(unix.CLOSE_RANGE_CLOEXEC))
	if !locked {
		s.doing(stepSeccomp)
		filter, err := calls.Filter(kind(p))
		if err != nil {
			return err
		}
		if p.Agent {
			s.give(passed(3), s.seccomp(s.filter(filter), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER))
		} else {
			s.seccomp(s.filter(filter), 0)
		}
	}
	s.serve(passed(2))
	return nil
}

// execute is all that is left to do for a runner. An input is passed along.
func (s *script) execute(p *reach.Plan, input bool) {
	s.doing(stepDir)
	if input {
		s.call(unix.SYS_DUP3, passed(0), num(0), num(0))
	}
	s.call(unix.SYS_CHDIR, s.text(inside(p.Dir)))
	s.doing(stepExec)
	s.call(unix.SYS_EXECVE, s.text(p.Path), s.texts(p.Argv), s.texts(p.Env))
}

// limits sets those of the command and all its children.
func (s *script) limits(all []reach.Limit) {
	for _, l := range all {
		s.call(unix.SYS_PRLIMIT64, num(0), num(l.What), s.bytes(words(l.Max, l.Max)), num(0))
	}
}
