package prove

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/writ-run/writ/sandbox"
)

// privilegeProbes look for a privilege, and for ways to one (group H).
func privilegeProbes() []Probe {
	const own = `cat /proc/$$/status; id`
	status := func(field, safe string) Probe {
		return row(field, own, `v=$(grep "^`+field+`:" /proc/$$/status | cut -f2); [ "$v" != `+safe+` ] || no `+field+` is `+safe, field+" is "+safe)
	}
	var all []Probe
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd"} {
		all = append(all, status(set, "0000000000000000"))
	}
	all = append(all,
		status("CapAmb", "0000000000000000").onGVisor(gvisor{attack: `py "end(0 if any(libc.prctl(47,1,c,0,0)==1 for c in range(64)) else 1,'CapAmb is 0000000000000000')"`}),
		status("NoNewPrivs", "1").onGVisor(gvisor{attack: `py "end(libc.prctl(39,0,0,0,0),'NoNewPrivs is 1')"`}),
		status("Seccomp", "2"),
		row("no_new_privs turned off", own, `py "libc.prctl(38,0,0,0,0); end(libc.prctl(39,0,0,0,0),'still on')"`, "still on"),
		row("the bounding set", own, `py "
if any(libc.prctl(23,c,0,0,0)==1 for c in range(64)): end(0,'not empty')
end(1,'empty')"`, "empty"),
		row("an ambient capability", own, `py "r=libc.prctl(47,2,10,0,0); end(1 if r<0 else 0,os.strerror(ctypes.get_errno()))"`, eperm).onGVisor(gvisor{refusal: []string{einval}}), // it has none
		row("capset", own, `py "
h=(ctypes.c_uint32*2)(0x20080522,0); d=(ctypes.c_uint32*6)(-1,-1,0,0,0,0)
if libc.capset(h,d)<0: sys.exit(os.strerror(ctypes.get_errno()))"`, eperm),
		row("secure bits", own, `py "
if libc.prctl(28,0x2f,0,0,0)<0: sys.exit(os.strerror(ctypes.get_errno()))"`, eperm).onGVisor(gvisor{refusal: []string{einval}}), // it has none
		row("real user", own, `[ "$(grep ^Uid: /proc/$$/status | tr '\t' '\n' | grep -cx 0)" != 0 ] || no nobody is root`, "nobody is root").onGVisor(gvisor{attack: `py "end(0 if 0 in os.getresuid() else 1,'nobody is root')"`}),
		row("real group", own, `[ "$(grep ^Gid: /proc/$$/status | tr '\t' '\n' | grep -cx 0)" != 0 ] || no nobody is root`, "nobody is root").onGVisor(gvisor{attack: `py "end(0 if 0 in os.getresgid() else 1,'nobody is root')"`}),
		row("setuid", own, `py "os.setuid(0)"`, eperm, einval),
		row("setgid", own, `py "os.setgid(0)"`, eperm, einval),
		row("setresuid", own, `py "os.setresuid(-1,0,-1)"`, eperm, einval),
		row("setreuid", own, `py "os.setreuid(0,-1)"`, eperm, einval),
		row("setgroups", own, `py "os.setgroups([0])"`, eperm, einval),
		row("setfsuid", own, `py "
libc.setfsuid(0)
end(0 if libc.setfsuid(-1)==0 else 1,'still nobody')"`, "still nobody"),
		row("groups", own, `id -G | tr ' ' '\n' | grep -x 0 || no not in group root`, "not in group root"),
		row("higher priority", own, `py "os.setpriority(0,0,-5)"`, eperm, eacces),
		row("real-time priority", own, `py "os.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(1))"`, eperm).onGVisor(gvisor{refusal: []string{einval}}), // it has none
		row("locking memory", own, `py "
if libc.mlockall(3)<0: sys.exit(os.strerror(ctypes.get_errno()))"`, "Cannot allocate memory", eperm),
		row("a controlling terminal", own, `exec 3</dev/tty`, append(away, enxio)...).onGVisor(gvisor{refusal: []string{eio}}),
	)
	out := group("privileges", sandbox.Unprivileged, all)
	return append(out, group("privileges", sandbox.Unprivileged, []Probe{
		row("a set-uid program", `$RO/plain -u`, `u=$($RO/setuid -u); [ "$u" = 0 ] || no user "$u"`, "user"),
		row("a set-gid program", `$RO/plain -g`, `g=$($RO/setgid -g); [ "$g" = 0 ] || no group "$g"`, "group"),
		row("a program with capabilities", `(exec $RO/plainpython -S -E -c 'pass')`, `$RO/capable -S -E -c "
import ctypes,sys
h=(ctypes.c_uint32*2)(0x20080522,0); d=(ctypes.c_uint32*6)()
if ctypes.CDLL(None).capget(h,d)<0: sys.exit('capget')
sys.exit(0 if d[0] or d[1] else 'none')"`, "none", eperm),
	}, arranged(privileged))...)
}

// privileged puts programs with privileges into the readable root: copies of id and python3.
func privileged(w *world) error {
	if os.Geteuid() != 0 {
		return skipped("making a program with privileges takes root")
	}
	made := map[string]string{"plain": "id", "setuid": "id", "setgid": "id", "plainpython": "python3", "capable": "python3"}
	for name, program := range made {
		text, err := os.ReadFile(real(program))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.ro, name), text, 0o755)
		}
		if err != nil {
			return err
		}
	}
	at := func(name string) string { return filepath.Join(w.ro, name) }
	err := errors.Join(os.Chmod(at("plain"), 0o755), os.Chmod(at("plainpython"), 0o755), os.Chmod(at("capable"), 0o755),
		os.Chmod(at("setuid"), 0o755|os.ModeSetuid), os.Chmod(at("setgid"), 0o755|os.ModeSetgid))
	// cap_net_raw, effective and permitted: struct vfs_cap_data.
	caps := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if set := setAttribute(at("capable"), "security.capability", caps); set != nil && err == nil {
		return skipped("this file system has no file capabilities: %v", set)
	}
	return err
}
