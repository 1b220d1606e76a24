package prove

import (
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// writeProbes try to change what lies outside, in each place: one that cannot be read
// and one that can (group F).
func writeProbes() []Probe {
	var all []Probe
	for _, at := range [][2]string{{"OUT", "$OUT/canary"}, {"RO", "$RO/file"}} {
		for _, r := range changes(at[1], "$"+at[0]) {
			r.Name = at[0] + " " + r.Name
			all = append(all, r)
		}
	}
	all = append(all, throughDescriptors()...)
	all = append(all,
		row("rename the workspace", `mkdir a; mv a b`, `mv $WS $BASE/ws2`, append(unchanged, ebusy)...),
		row("rename its parent", `mkdir a; mv a b`, `mv $BASE $BASE.2`, append(unchanged, ebusy)...),
		row("remove the workspace", `mkdir a; rmdir a`, `rm -rf $WS/* $WS/.[a-z]* || true; rmdir $WS`, append(unchanged, ebusy, "Directory not empty")...),
		row("device node", `mkfifo p`, `mknod null c 1 3`, eperm, eacces),
		row("block device", `mkfifo p`, `mknod disk b 8 0`, eperm, eacces),
		row("set-uid", `chmod 755 file`, `chmod 4755 file`, eperm),
		row("set-gid", `chmod 755 file`, `chmod 2755 file`, eperm),
		row("set-uid by descriptor", `py "os.fchmod(os.open('file',os.O_RDWR),0o755)"`, `py "os.fchmod(os.open('file',os.O_RDWR),0o4755)"`, eperm),
		row("set-uid when created", `py "os.open('a',os.O_CREAT|os.O_WRONLY,0o755)"`, `py "os.open('b',os.O_CREAT|os.O_WRONLY,0o4755)"`, eperm),
		row("set-uid when created without a name", `py "os.open('.',os.O_TMPFILE|os.O_WRONLY,0o755)"`, `py "os.open('.',os.O_TMPFILE|os.O_WRONLY,0o4755)"`, eperm).onGVisor(gvisor{lacks: enosup}),
		row("set-uid node", `py "os.mknod('a',0o100755)"`, `py "os.mknod('b',0o104755)"`, eperm),
		row("give a file to root", `chown $(id -u) file`, `chown 0 file`, eperm, einval),
		row("capabilities of a file", `touch a`, `py "os.setxattr('file','security.capability',bytes.fromhex('0100000200200000000000000000000000000000'))"`, eperm, einval).onGVisor(gvisor{refusal: []string{enosup}}),
		row("trusted attribute", `touch a`, `py "os.setxattr('file','trusted.x',b'x')"`, eperm, enosup),
		row("bind over", `mkdir a`, `mount --bind $WS $RO`, eperm, "must be superuser", eacces, enoent),
		row("unmount", `mkdir a`, `umount -l $WS`, eperm, "must be superuser", eacces, enoent),
		row("the system", `cat /etc/passwd`, `echo x >/etc/writ-test || echo x >/usr/writ-test || echo x >/var/writ-test`, unchanged...),
		row("a program of the system", `[ -x /usr/bin/cat ]`, `echo x >>/usr/bin/cat`, unchanged...),
		row("scheduled jobs", `touch a`, `echo x >/etc/cron.d/writ-test || echo x >/var/spool/cron/crontabs/writ-test || echo x >/var/spool/cron/writ-test`, unchanged...),
		row("units of the system", `touch a`, `mkdir -p /run/systemd/system /etc/systemd/system && echo x >/run/systemd/system/writ-test.service`, append(unchanged, "cannot create")...),
		Probe{Name: "several roots", try: tryRoots},
	)
	return group("write", sandbox.FileWrite, all)
}

// changes are the ways to change a file in a directory.
func changes(file, dir string) []Probe {
	return []Probe{
		row("content", `echo x >$WS/file`, `echo x >`+file, unchanged...),
		row("append", `echo x >>$WS/file`, `echo x >>`+file, unchanged...),
		row("truncate", `truncate -s0 $WS/file`, `truncate -s0 `+file, unchanged...),
		row("create", `touch $WS/new`, `touch `+dir+`/new`, unchanged...),
		row("create without a name", `py "os.open('.',os.O_TMPFILE|os.O_WRONLY)"`, `py "os.open(os.path.expandvars('`+dir+`'),os.O_TMPFILE|os.O_WRONLY)"`, unchanged...).onGVisor(gvisor{lacks: enosup}),
		row("remove", `rm $WS/file`, `rm `+file, unchanged...),
		row("rename", `mv $WS/file $WS/g`, `mv `+file+` `+dir+`/g`, unchanged...),
		row("rename into the workspace", `mkdir $WS/a; mv $WS/file $WS/a/`, `py "os.rename(os.path.expandvars('`+file+`'),'stolen')"`, unchanged...),
		row("rename out of the workspace", `mkdir $WS/a; mv $WS/file $WS/a/`, `py "os.rename('a/file',os.path.expandvars('`+dir+`/g'))"`, unchanged...),
		row("exchange", `touch a b; py "call(`+renameat2Nr+`,-100,b'a',-100,b'b',2)"`, `py "call(`+renameat2Nr+`,-100,b'file',-100,os.path.expandvars('`+file+`').encode(),2)"`, unchanged...).onGVisor(gvisor{lacks: einval}),
		row("mkdir", `mkdir $WS/d`, `mkdir `+dir+`/d`, unchanged...),
		row("rmdir", `mkdir $WS/d; rmdir $WS/d`, `py "os.rmdir(os.path.expandvars('`+dir+`'))"`, append(unchanged, ebusy)...),
		row("symlink", `ln -s x $WS/s`, `ln -s x `+dir+`/s`, unchanged...),
		row("link", `ln $WS/file $WS/h`, `ln $WS/file `+dir+`/h`, unchanged...),
		row("mkfifo", `mkfifo $WS/p`, `mkfifo `+dir+`/p`, unchanged...),
		row("mode", `chmod 600 $WS/file`, `chmod 777 `+file, unchanged...),
		row("mode of the directory", `chmod 700 $WS`, `chmod 777 `+dir, unchanged...),
		row("owner", `chown $(id -u) $WS/file`, `chown $(id -u) `+file, unchanged...),
		row("times", `touch -d 2001-01-01 $WS/file`, `touch -d 2001-01-01 `+file, unchanged...),
		row("attribute", `touch $WS/a`, `py "os.setxattr(os.path.expandvars('`+file+`'),'user.x',b'x')"`, append(unchanged, enosup)...),
		row("through a symlink", `ln -s file $WS/s; echo x >$WS/s`, `ln -s `+file+` $WS/t; echo x >$WS/t`, unchanged...),
		row("through proc", `echo x >/proc/self/cwd/file`, `echo x >/proc/self/root`+file, unchanged...),
		row("through a read descriptor", `py "fd=os.open('file',0); os.open(f'/proc/self/fd/{fd}',os.O_RDWR)"`,
			`py "fd=os.open(os.path.expandvars('`+file+`'),os.O_PATH); os.open(f'/proc/self/fd/{fd}',os.O_RDWR)"`, unchanged...),
	}
}

// throughDescriptors change a file that was opened for reading, which Landlock has no
// say in.
func throughDescriptors() []Probe {
	var all []Probe
	for _, r := range [][2]string{
		{"mode", "os.fchmod(fd,0o777)"},
		{"owner", "os.fchown(fd,os.getuid(),-1)"},
		{"times", "os.utime(fd,(1,1))"},
		{"attribute", "os.setxattr(fd,'user.x',b'x')"},
		// FS_IOC_GETFLAGS and SETFLAGS, not to be dumped. Others stay: to take some away is not every file system's to do.
		{"flags", "import fcntl; b=bytearray(8); fcntl.ioctl(fd,0x80086601,b); b[0]|=0x40; fcntl.ioctl(fd,0x40086602,bytes(b))"},
	} {
		all = append(all, row("open for reading, "+r[0], `py "fd=os.open('file',0); os.fchmod(fd,0o600); os.utime(fd,(1,1))"`,
			`py "fd=os.open(os.environ['RO']+'/file',0); `+r[1]+`"`, append(unchanged, enosup)...))
	}
	all[len(all)-1].gvisor.refusal = []string{enotty} // its files have no flags
	return append(all, row("open for reading, linked", `py "fd=os.open('file',0); call(`+linkatNr+`,-100,f'/proc/self/fd/{fd}'.encode(),-100,b'g',0x400)"`,
		`py "fd=os.open('file',0); call(`+linkatNr+`,-100,f'/proc/self/fd/{fd}'.encode(),-100,os.environ['RO'].encode()+b'/g',0x400)"`, unchanged...))
}

// knobProbes open for writing what changes the machine. They write nothing.
func knobProbes() []Probe {
	var all []Probe
	for _, knob := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/kernel/randomize_va_space",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches", "/proc/sys/fs/suid_dumpable",
		"/proc/sys/fs/binfmt_misc/register", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/cpu0/online",
		"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/kernel/debug/x", "/sys/module/kernel/parameters/panic",
	} {
		all = append(all, row(strings.TrimPrefix(knob, "/"), `exec 3>>$WS/file`, `exec 3>>`+knob, unchanged...))
	}
	for _, own := range [][2]string{{"uid_map", "0 0 1"}, {"gid_map", "0 0 1"}, {"setgroups", "allow"}, {"oom_score_adj", "-1000"}, {"loginuid", "0"}} {
		all = append(all, row("proc/self/"+own[0], `[ -e /proc/self/status ]`, `echo '`+own[1]+`' >/proc/self/`+own[0], append(unchanged, einval)...))
	}
	return group("knobs", sandbox.FileWrite, all)
}

// all lets a box read the whole host, as the level full does.
func all(_ *world, c *writ.Confinement) { c.Read = []string{"/"} }
