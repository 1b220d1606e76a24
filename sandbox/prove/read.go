package prove

import (
	"os"
	"path/filepath"

	"github.com/writ-run/writ/sandbox"
)

// readProbes try to read what lies outside (group F). The ways are those by which a path
// turns out to be another: dots, links, descriptors, what /proc shows of processes.
func readProbes() []Probe {
	const ok = `cat $RO/file; cat $WS/file`
	empty := func(name, dir string) Probe { // a box may have the name, and nothing of the host's in it
		p := row(name, ok, `seen=$(ls -Ai `+dir+`) || exit
while read -r n f; do [[ " $THERE " == *" $n:$f "* ]] && exit 0; done <<<"$seen"; no empty`, eacces, enoent, "empty")
		p.env = map[string]string{"THERE": numbered(dir)}
		return p
	}
	all := []Probe{
		row("direct", ok, `cat $OUT/canary`, away...),
		row("list", `ls $RO $WS`, `ls $OUT`, away...),
		row("dotdot", `cat $WS/../ro/file`, `cat $WS/../out/canary`, away...),
		row("dotdot from the root", `cat $WS/../../../../../../../..$RO/file`, `cat $WS/../../../../../../../..$OUT/canary`, away...),
		row("long path", `cat $WS/$(printf './%.0s' {1..1800})../ro/file`, `cat $WS/$(printf './%.0s' {1..1800})../out/canary`, away...),
		row("symlink leaf", `ln -s $RO/file l; cat l`, `ln -s $OUT/canary m; cat m`, away...),
		row("symlink parent", `ln -s $RO d; cat d/file`, `ln -s $OUT e; cat e/canary`, away...),
		row("relative symlink", `ln -s ../ro/file l; cat l`, `ln -s ../out/canary m; cat m`, away...),
		row("symlink to a symlink", `ln -s $RO a; ln -s a/file b; cat b`, `ln -s $OUT c; ln -s c/canary d; cat d`, away...),
		row("symlink that is swapped", ok, swapped, "never"),
		row("hard link", `ln file hard; cat hard`, `ln $OUT/canary hard2; cat hard2`, append(away, exdev, eperm)...),
		row("from a directory that is open", `py "print(os.read(os.open('../ro/file',0,dir_fd=os.open('.',0)),99))"`,
			`py "print(os.read(os.open('../out/canary',0,dir_fd=os.open('.',0)),99))"`, away...),
		row("dev fd", `exec 9<$RO; cat /dev/fd/9/file`, `exec 9<$RO; cat /dev/fd/9/../out/canary`, away...),
		row("after changing directory", `cd $RO; cat file`, `cd $OUT; cat canary`, away...),
		row("proc self root", `cat /proc/self/root$RO/file`, `cat /proc/self/root$OUT/canary`, away...),
		row("proc self cwd", `cat /proc/self/cwd/../ro/file`, `cat /proc/self/cwd/../out/canary`, away...),
		row("proc thread root", `cat /proc/thread-self/root$RO/file`, `cat /proc/thread-self/root$OUT/canary`, away...),
		row("proc task root", `cat /proc/$$/task/$$/root$RO/file || cat $RO/file`, `cat /proc/$$/task/$$/root$OUT/canary`, away...),
		row("proc self fd of a directory", `py "fd=os.open(os.environ['RO'],os.O_PATH); print(open(f'/proc/self/fd/{fd}/file').read())"`,
			`py "fd=os.open(os.environ['WS'],os.O_PATH); print(open(f'/proc/self/fd/{fd}/../out/canary').read())"`, away...),
		row("path descriptor", `py "fd=os.open(os.environ['RO']+'/file',os.O_PATH); print(os.read(os.open(f'/proc/self/fd/{fd}',0),99))"`,
			`py "fd=os.open(os.environ['OUT']+'/canary',os.O_PATH); print(os.read(os.open(f'/proc/self/fd/{fd}',0),99))"`, away...),
		row("attributes by path", ok, `py "print(os.getxattr(os.environ['OUT']+'/canary','user.canary'))"`, append(away, enosup)...),
		row("names of attributes", ok, `py "print(os.listxattr(os.environ['OUT']+'/canary')[0])"`, append(away, enosup)...),
		row("watching", ok, `py "call(`+inotifyNr+`,libc.inotify_init1(0),os.environ['OUT'].encode(),0xfff)"`, append(away, eperm)...),
		row("executing", `bash -c true`, `bash $OUT/canary`, away...),
		row("shared memory of the host", `echo x >/dev/shm/x`, `cat /dev/shm/$(basename $BASE)-$(basename $(dirname $BASE))`, away...),
		row("a file of the host", ok, `here=$(stat -c %d:%i $HOSTFILE) || exit
if [ $here != $HOSTFILEID ]; then echo "it has one of its own there: No such file or directory"; exit 1; fi
cat $HOSTFILE`, away...),
		empty("logs of the host", "/var/log"),
		empty("sockets of the host", "/run"),
		empty("configuration of the host", "/etc/pam.d"),
		row("memory of the kernel", ok, `head -c1 /proc/kcore`, append(away, eperm)...),
		row("log of the kernel", ok, `head -c1 /proc/kmsg`, append(away, eperm)...),
		row("symbols of the kernel", ok, `grep -v '^0* ' /proc/kallsyms || no hidden`, append(away, eperm, "hidden")...),
	}
	for _, what := range [][2]string{{"environ", "environ"}, {"memory", "mem"}, {"maps", "maps"}, {"auxv", "auxv"}, {"stack", "stack"}, {"syscall", "syscall"}} {
		all = append(all,
			row("proc 1 "+what[0], ok, `exec 3</proc/1/`+what[1]+`; case `+what[1]+` in mem) ;; *) head -c1 <&3;; esac`, append(away, eperm)...).onGVisor(gvisor{first: true}),
			row("proc parent "+what[0], ok, `exec 3</proc/$PPID/`+what[1]+`; case `+what[1]+` in mem) ;; *) head -c1 <&3;; esac`, append(away, eperm)...))
	}
	for _, dir := range []string{"cwd", "root"} {
		all = append(all,
			row("proc 1 "+dir, ok, `ls /proc/1/`+dir+`/`, append(away, eperm)...).onGVisor(gvisor{first: true}),
			row("proc parent "+dir, ok, `ls /proc/$PPID/`+dir+`/`, append(away, eperm)...))
	}
	for _, of := range [][2]string{{"proc 1 fd", "1"}, {"proc parent fd", "$PPID"}} {
		// Where each leads, and with it opening it again: their numbers tell nothing.
		all = append(all, row(of[0], ok, `py "
for n in range(1024):
  try: end(0,n,os.readlink(f'/proc/`+of[1]+`/fd/{n}'))
  except OSError as e:
    if e.errno not in (errno.EACCES,errno.EPERM,errno.ENOENT): end(0,n,e)
    last=e
end(1,last)"`, append(away, eperm)...).onGVisor(gvisor{first: of[1] == "1"}))
	}
	all = append(all, Probe{Name: "its name", Feature: sandbox.Containerized, Control: `[ -e $RO/file ]`, Attack: `[ -e $OUT/canary ] || no absent`, Refusal: []string{"absent"}})
	return group("read", sandbox.FileRead, all, arranged(secrets))
}

// swapped reads through a symlink while it is exchanged for one that leads outside.
const swapped = `ln -s $RO/file a; ln -s $OUT/canary b
py "
import threading
stop=False
def swap():
  while not stop:
    if raw(` + renameat2Nr + `,-100,b'a',-100,b'b',2)<0: # a kernel that does not exchange
      for to in ('/canary','/file'): os.symlink(os.environ['OUT' if to=='/canary' else 'RO']+to,'c'); os.rename('c','a')
t=threading.Thread(target=swap); t.start()
seen=set(); worked=0; tries=0
while tries<3000 or worked==0 and tries<300000: # on a busy machine it may not be swapped back for a while
  tries+=1
  try:
    text=open('a').read(); worked+=1; seen.add(text)
  except OSError: pass
stop=True; t.join()
if worked==0: end(2,'nothing could be read at all')
if seen!={'shared'+chr(10)}: end(0,seen)
end(1,'never')"`

// secrets are marks on what must not be read, and a file in the host's shared memory.
func secrets(w *world) error {
	setAttribute(filepath.Join(w.out, "canary"), "user.canary", []byte(canary)) // not every file system has them
	shm := "/dev/shm/" + filepath.Base(w.base) + "-" + filepath.Base(filepath.Dir(w.base))
	if os.WriteFile(shm, []byte(canary), 0o644) == nil {
		w.later(func() { os.Remove(shm) })
	}
	return nil
}

// deviceProbes open devices: a terminal of this user could be read, and with it a
// passphrase; others reach the machine.
func deviceProbes() []Probe {
	var all []Probe
	for _, dev := range []string{
		"mem", "port", "kmsg", "console", "tty", "tty0", "fuse", "kvm", "net/tun", "loop-control", "loop0", "uinput", "hpet", "rtc0",
		"vhost-net", "vhost-vsock", "userfaultfd", "btrfs-control", "mapper/control", "input/mice", "dri/card0", "snd/timer", "vcs",
	} {
		refusal, other := away, gvisor{}
		if dev == "tty" { // it may be there: it is whatever terminal a process has, and one in a box has none
			refusal, other = append(away, enxio), gvisor{refusal: []string{eio}}
		}
		all = append(all, row(dev, `exec 3<>/dev/null; exec 4</dev/zero; exec 5</dev/urandom`, `exec 3</dev/`+dev, refusal...).onGVisor(other))
	}
	// A box may have pseudo terminals of its own, on a filesystem of its own.
	all = append(all, row("the maker of terminals", `exec 3</dev/zero`, `exec 3</dev/ptmx; case " $PTYDEVS " in *" $(stat -Lc %d /dev/ptmx) "*) ;; *) no "of its own";; esac`, append(away, "of its own")...),
		row("a terminal of the host", `exec 3</dev/zero`, `exec 3<"$PTY"`, away...))
	all = append(all, row("a disk", `exec 3</dev/zero`, `exec 3<${DISK:-/dev/sda}`, away...))
	return group("devices", sandbox.FileRead, all)
}
