package subprocess

import (
	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// A guarded call is refused when all conditions of any one set hold.
type guarded struct {
	name   string
	refuse []seccomp.ArgumentConditions
}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	setID       = unix.S_ISUID | unix.S_ISGID
	anyUpper    = 0xffffffff00000000
	tmpFileBit  = unix.O_TMPFILE &^ unix.O_DIRECTORY
	prioProcess = 0
	ioprioWho   = 1
)

// callsByArgument are the calls that are refused for some arguments.
func callsByArgument() []guarded {
	calls := []guarded{
		{"clone", any1(is(0, seccomp.BitsSet, newNamespaces))},
		// A pair of datagram (2) or raw (3) sockets can send to any socket that has
		// a name, and get descriptors back; a stream cannot.
		{"socketpair", []seccomp.ArgumentConditions{{is(0, seccomp.NotEqual, unix.AF_UNIX)}, {is(1, seccomp.BitsSet, unix.SOCK_DGRAM)}}},
		{"personality", any1(is(0, seccomp.NotEqual, 0), is(0, seccomp.NotEqual, 0xffffffff), is(0, seccomp.NotEqual, anyUpper|0xffffffff))},
		// Limits and scheduling of other processes of the same user.
		{"prlimit64", any1(is(0, seccomp.NotEqual, 0))},
		{"sched_setaffinity", any1(is(0, seccomp.NotEqual, 0))},
		{"sched_setscheduler", any1(is(0, seccomp.NotEqual, 0))},
		{"sched_setparam", any1(is(0, seccomp.NotEqual, 0))},
		{"sched_setattr", any1(is(0, seccomp.NotEqual, 0))},
		{"setpriority", []seccomp.ArgumentConditions{{is(0, seccomp.NotEqual, prioProcess)}, {is(1, seccomp.NotEqual, 0)}}},
		{"ioprio_set", []seccomp.ArgumentConditions{{is(0, seccomp.NotEqual, ioprioWho)}, {is(1, seccomp.NotEqual, 0)}}},
		{"ioctl", ioctls(unix.TIOCSTI, unix.TIOCLINUX)},
		// A file with a set-id bit lends this user's rights to whoever runs it
		// on the host later.
		{"chmod", any1(is(1, seccomp.BitsSet, setID))},
		{"fchmod", any1(is(1, seccomp.BitsSet, setID))},
		{"fchmodat", any1(is(2, seccomp.BitsSet, setID))},
		{"fchmodat2", any1(is(2, seccomp.BitsSet, setID))},
		{"mknod", any1(is(1, seccomp.BitsSet, setID))},
		{"mknodat", any1(is(2, seccomp.BitsSet, setID))},
		{"creat", any1(is(1, seccomp.BitsSet, setID))},
		{"open", creating(1)},
		{"openat", creating(2)},
	}
	return calls
}

func is(arg uint32, op seccomp.Operation, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: arg, Operation: op, Value: value}
}

func any1(all ...seccomp.Condition) []seccomp.ArgumentConditions {
	return []seccomp.ArgumentConditions{all}
}

// creating refuses a set-id mode where flags, the argument before it, create a
// file; elsewhere the mode is whatever was in the register.
func creating(flags uint32) []seccomp.ArgumentConditions {
	return []seccomp.ArgumentConditions{
		{is(flags, seccomp.BitsSet, unix.O_CREAT), is(flags+1, seccomp.BitsSet, setID)},
		{is(flags, seccomp.BitsSet, tmpFileBit), is(flags+1, seccomp.BitsSet, setID)},
	}
}

// ioctls refuses commands. The kernel looks at 32 bits and seccomp at 64, so an
// upper half that is neither zero nor a sign is refused, too (CVE-2019-10063).
func ioctls(cmds ...uint64) []seccomp.ArgumentConditions {
	refuse := any1(is(1, seccomp.GreaterThan, 0xffffffff), is(1, seccomp.LessThan, anyUpper))
	for _, cmd := range cmds {
		refuse = append(refuse, any1(is(1, seccomp.Equal, cmd))...)
		refuse = append(refuse, any1(is(1, seccomp.Equal, anyUpper|cmd))...)
	}
	return refuse
}
