package prove

import (
	"github.com/writ-run/writ/sandbox"
)

// processProbes attack a process outside that belongs to the same user.
func processProbes() []Probe {
	const own = `sleep 9 & kill -9 $!; kill -0 $$`
	untouched := []string{esrch, eperm, eacces, enoent}
	all := []Probe{
		row("signal", own, `kill -0 $VICTIM`, untouched...),
		row("kill", own, `kill -9 $VICTIM`, untouched...),
		row("signal its group", own, `kill -0 -- -$VICTIM`, untouched...),
		row("signal a thread", own, `py "call(`+tgkillNr+`,$VICTIM,$VICTIM,0)"`, untouched...),
		row("queue a signal", own, `py "call(`+sigqueueNr+`,$VICTIM,0,bytes(8)+bytes([255]*4)+bytes(116))"`, untouched...),
		row("signal the parent", own, `[ $PPID = 0 ] && no No such process; kill -0 $PPID`, untouched...),
		row("signal by descriptor", own, `py "import signal; signal.pidfd_send_signal(os.pidfd_open($VICTIM),0)"`, untouched...).onGVisor(noPidfd),
		row("renice", own, `renice -n 19 -p $VICTIM`, untouched...),
		row("affinity", own, `py "os.sched_setaffinity($VICTIM,{0})"`, untouched...),
		row("scheduler", own, `py "os.sched_setscheduler($VICTIM,os.SCHED_BATCH,os.sched_param(0))"`, untouched...),
		row("limits", own, `py "import resource; resource.prlimit($VICTIM,resource.RLIMIT_NOFILE,(3,3))"`, untouched...),
		row("trace", own, `py "call(`+ptraceNr+`,0x4206,$VICTIM,0,0)"`, untouched...),
		row("read its memory by call", own, `py "
class iov(ctypes.Structure): _fields_=[('at',ctypes.c_void_p),('len',ctypes.c_size_t)]
b=ctypes.create_string_buffer(1); a=iov(ctypes.addressof(b),1); z=iov(0x10000,0)
call(`+vmReadNr+`,$VICTIM,ctypes.byref(a),1,ctypes.byref(z),1,0)"`, untouched...),
		row("take its descriptor", own, `py "call(438,os.pidfd_open($VICTIM),0,0)"`, untouched...).onGVisor(noPidfd),
	}
	for _, f := range [][2]string{{"environment", "environ"}, {"command line", "cmdline"}, {"maps", "maps"}, {"auxiliary vector", "auxv"}, {"mounts", "mountinfo"},
		{"status", "status"}, {"statistics", "stat"}, {"input and output", "io"}, {"cgroup", "cgroup"}, {"name", "comm"}, {"open file", "fdinfo/0"}} {
		all = append(all, row(f[0], own, `cat /proc/$VICTIM/`+f[1], untouched...))
	}
	all = append(all,
		row("root", own, `ls /proc/$VICTIM/root/`, untouched...),
		row("directory", own, `cat /proc/$VICTIM/cwd/canary`, untouched...),
		row("descriptors", own, `ls /proc/$VICTIM/fd/`, untouched...),
		row("namespaces", own, `exec 3</proc/$VICTIM/ns/net`, untouched...),
		row("memory", own, `exec 3</proc/$VICTIM/mem`, untouched...),
		row("memory, written", own, `exec 3>>/proc/$VICTIM/mem`, append(untouched, erofs)...),
		row("program", own, `exec 3</proc/$VICTIM/exe`, untouched...),
		row("oom score", own, `echo 1000 >/proc/$VICTIM/oom_score_adj`, append(untouched, erofs)...),
		row("renamed", own, `echo x >/proc/$VICTIM/comm`, append(untouched, erofs)...),
	)
	return group("processes", sandbox.OwnProcesses, all, arranged(victim))
}

// tableProbes look for a process outside, without touching it.
func tableProbes() []Probe {
	const own = `[ -e /proc/$$/status ]; py "os.getpgid(os.getpid())"`
	all := []Probe{
		row("in /proc", own, `[ -e /proc/$VICTIM ] || no absent`, "absent"),
		row("in the list", own, `ls /proc | grep -x $VICTIM || no absent`, "absent"),
		row("by pidfd_open", own, `py "os.pidfd_open($VICTIM)"`, esrch, eperm).onGVisor(noPidfd),
		row("by getpgid", own, `py "os.getpgid($VICTIM)"`, esrch),
		row("by getsid", own, `py "os.getsid($VICTIM)"`, esrch),
		row("by getpriority", own, `py "os.getpriority(0,$VICTIM)"`, esrch),
		row("by its scheduler", own, `py "os.sched_getscheduler($VICTIM)"`, esrch),
		row("by its processors", own, `py "os.sched_getaffinity($VICTIM)"`, esrch),
	}
	out := group("table", sandbox.ProcessTable, all, arranged(victimAbove))
	var spaces []Probe
	for _, ns := range namespaces {
		spaces = append(spaces, row("its own "+ns+" namespace", `readlink -v /proc/self/ns/`+ns, `[ "$(readlink /proc/self/ns/`+ns+`)" = "$NS_`+ns+`" ] || no another`, "another").onGVisor(gvisor{lacks: enoent})) // its /proc has some
	}
	return append(out, group("table", sandbox.Containerized, spaces)...)
}

// victimAbove is a victim whose number no process of a box will have: those of a box with
// a table of its own count from one.
func victimAbove(w *world) error {
	for range 200 {
		if err := victim(w); err != nil {
			return err
		}
		if len(w.vars["VICTIM"]) > 2 {
			return nil
		}
	}
	return skipped("every process here has a number that one in a box could have")
}
