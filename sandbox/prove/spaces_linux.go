package prove

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// spaces ask for namespaces of every kind, in each of the ways: to leave one's own, to
// start a child in one, to enter another's.
func spaces() []Probe {
	var all []Probe
	kinds := []struct {
		name string
		flag int
	}{
		{"user", unix.CLONE_NEWUSER}, {"mount", unix.CLONE_NEWNS}, {"process", unix.CLONE_NEWPID}, {"network", unix.CLONE_NEWNET},
		{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"cgroup", unix.CLONE_NEWCGROUP},
	}
	// Alone a kind takes privileges everywhere; with a user namespace it does not.
	for _, k := range kinds {
		all = append(all,
			row("unshare "+k.name, getpid, fmt.Sprintf(`py "refused('EPERM',%d,%#x)"`, unix.SYS_UNSHARE, k.flag|unix.CLONE_NEWUSER), "EPERM"),
			row("clone a "+k.name+" namespace", forks, fmt.Sprintf(`py "refused('EPERM',%d,%#x,0,0,0,0)"`, unix.SYS_CLONE, k.flag|unix.CLONE_NEWUSER|int(unix.SIGCHLD)), "EPERM"))
	}
	for i, ns := range namespaces {
		enter := func(by string) string {
			return fmt.Sprintf(`py "refused('EPERM',%d,os.open('/proc/self/ns/%s',0),%#x)"`, unix.SYS_SETNS, by, kinds[i].flag)
		}
		all = append(all, row("setns "+ns, getpid, enter(ns), "EPERM", eacces).onGVisor(gvisor{attack: enter("net")})) // not all are in its /proc
	}
	return append(all,
		row("unshare nothing", getpid, fmt.Sprintf(`py "refused('EPERM',%d,0)"`, unix.SYS_UNSHARE), "EPERM"),
		row("unshare time", getpid, fmt.Sprintf(`py "refused('EPERM',%d,%#x)"`, unix.SYS_UNSHARE, unix.CLONE_NEWTIME|unix.CLONE_NEWUSER), "EPERM"),
		row("setns", getpid, fmt.Sprintf(`py "refused('EPERM',%d,-1,0)"`, unix.SYS_SETNS), "EPERM"),
		row("clone3 with a namespace", forks, fmt.Sprintf(`py "
a=(ctypes.c_uint64*11)(); a[0]=%#x; a[4]=17
refused('EPERM ENOSYS',%d,a,88)"`, unix.CLONE_NEWUSER, unix.SYS_CLONE3), "EPERM", "ENOSYS"))
}

// forks shows that a child by the same call is allowed.
var forks = fmt.Sprintf(`py "
r=call(%d,17,0,0,0,0)
if r==0: os._exit(0)
os.waitpid(r,0)"`, unix.SYS_CLONE)
