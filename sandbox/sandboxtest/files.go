package sandboxtest

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

func testRead(t *testing.T, d sandbox.Driver) {
	const ok = `cat $RO/file; cat $WS/file`
	runRows(t, d, []row{
		{"direct", ok, `cat $OUT/canary`},
		{"list", `ls $RO $WS`, `ls $OUT`},
		{"dotdot", `cat $WS/../ro/file`, `cat $WS/../out/canary`},
		{"symlink leaf", `ln -s $RO/file l; cat l`, `ln -s $OUT/canary m; cat m`},
		{"symlink parent", `ln -s $RO d; cat d/file`, `ln -s $OUT e; cat e/canary`},
		{"relative symlink", `ln -s ../ro/file l; cat l`, `ln -s ../out/canary m; cat m`},
		{"proc self root", `cat /proc/self/root$RO/file`, `cat /proc/self/root$OUT/canary`},
		{"proc self cwd", `cat /proc/self/cwd/../ro/file`, `cat /proc/self/cwd/../out/canary`},
		{"proc parent root", ok, `cat /proc/$PPID/root$OUT/canary`},
		{"proc parent cwd", ok, `cat /proc/$PPID/cwd/etc/fstab`},
		{"proc parent environ", ok, `cat /proc/$PPID/environ`},
		{"proc parent memory", ok, `head -c1 /proc/$PPID/mem`},
		{"proc 1 environ", ok, `cat /proc/1/environ`},
		{"proc self fd of a directory", `py "fd=os.open(os.environ['RO'],os.O_PATH); print(open(f'/proc/self/fd/{fd}/file').read())"`,
			`py "fd=os.open(os.environ['WS'],os.O_PATH); print(open(f'/proc/self/fd/{fd}/../out/canary').read())"`},
		{"path descriptor", `py "fd=os.open(os.environ['RO']+'/file',os.O_PATH); print(os.read(os.open(f'/proc/self/fd/{fd}',0),99))"`,
			`py "fd=os.open(os.environ['OUT']+'/canary',os.O_PATH); print(os.read(os.open(f'/proc/self/fd/{fd}',0),99))"`},
		{"hard link", `ln file hard; cat hard`, `ln $OUT/canary hard2; cat hard2`},
		{"attributes by path", ok, `py "print(os.getxattr(os.environ['OUT']+'/canary','user.canary'))"`},
		{"watching", ok, `py "r=libc.inotify_add_watch(libc.inotify_init1(0),os.environ['OUT'].encode(),0xfff); sys.exit(r<0)"`},
		{"executing", `bash -c true`, `bash $OUT/canary`},
		{"shared memory of the host", `echo x >/dev/shm/x`, `cat /dev/shm/$(basename $BASE)`},
	}, (*world).confinement, func(t testing.TB, w *world) {
		setAttribute(filepath.Join(w.out, "canary"), "user.canary", canary)
		shm := "/dev/shm/" + filepath.Base(w.base)
		if os.WriteFile(shm, []byte(canary), 0o644) == nil {
			t.Cleanup(func() { os.Remove(shm) })
		}
	})
}

func testWrite(t *testing.T, d sandbox.Driver) {
	var rows []row
	for _, where := range []string{"OUT", "RO"} {
		file, dir := map[string]string{"OUT": "$OUT/canary", "RO": "$RO/file"}[where], "$"+where
		for _, r := range []row{
			{"content", `echo x >$WS/file`, `echo x >` + file},
			{"append", `echo x >>$WS/file`, `echo x >>` + file},
			{"truncate", `truncate -s0 $WS/file`, `truncate -s0 ` + file},
			{"create", `touch $WS/new`, `touch ` + dir + `/new`},
			{"remove", `rm $WS/file`, `rm ` + file},
			{"rename", `mv $WS/file $WS/g`, `mv ` + file + ` ` + dir + `/g`},
			{"rename out of the workspace", `mkdir $WS/a; mv $WS/file $WS/a/`, `mv -T $WS/a/file ` + dir + `/g`},
			{"mkdir", `mkdir $WS/d`, `mkdir ` + dir + `/d`},
			{"symlink", `ln -s x $WS/s`, `ln -s x ` + dir + `/s`},
			{"link", `ln $WS/file $WS/h`, `ln $WS/file ` + dir + `/h`},
			{"mkfifo", `mkfifo $WS/p`, `mkfifo ` + dir + `/p`},
			{"mode", `chmod 600 $WS/file`, `chmod 777 ` + file},
			{"mode of the directory", `chmod 700 $WS`, `chmod 777 ` + dir},
			{"owner", `chown $(id -u) $WS/file`, `chown $(id -u) ` + file},
			{"times", `touch -d 2001-01-01 $WS/file`, `touch -d 2001-01-01 ` + file},
			{"attribute", `touch $WS/a`, `py "os.setxattr(os.path.expandvars('` + file + `'),'user.x',b'x')"`},
			{"through a symlink", `ln -s file $WS/s; echo x >$WS/s`, `ln -s ` + file + ` $WS/t; echo x >$WS/t`},
			{"through proc", `echo x >/proc/self/cwd/file`, `echo x >/proc/self/root` + file},
			{"through a read descriptor", `py "fd=os.open('file',0); os.open(f'/proc/self/fd/{fd}',os.O_RDWR)"`,
				`py "fd=os.open(os.path.expandvars('` + file + `'),os.O_PATH); os.open(f'/proc/self/fd/{fd}',os.O_RDWR)"`},
		} {
			rows = append(rows, row{where + " " + r.name, r.control, r.attack})
		}
	}
	rows = append(rows,
		row{"rename the workspace", `mkdir a; mv a b`, `mv $WS $BASE/ws2`},
		row{"rename its parent", `mkdir a; mv a b`, `mv $BASE $BASE.2`},
		row{"remove the workspace", `mkdir a; rmdir a`, `rm -rf $WS/* $WS/.[a-z]*; rmdir $WS`},
		row{"device node", `mkfifo p`, `mknod null c 1 3`},
		row{"block device", `mkfifo p`, `mknod disk b 8 0`},
		row{"set-uid", `chmod 755 file`, `chmod 4755 file`},
		row{"set-gid", `chmod 755 file`, `chmod 2755 file`},
		row{"set-uid when created", `py "os.open('a',os.O_CREAT|os.O_WRONLY,0o755)"`, `py "os.open('b',os.O_CREAT|os.O_WRONLY,0o4755)"`},
		row{"bind over", `mkdir a`, `mount --bind $WS $RO`},
		row{"unmount", `mkdir a`, `umount -l $WS`},
		row{"the system", `cat /etc/passwd`, `echo x >/etc/writ-test || echo x >/usr/writ-test || echo x >/var/writ-test`},
	)
	runRows(t, d, rows, (*world).confinement, nil)
	t.Run("several roots", func(t *testing.T) { testRoots(t, d) })
}

// testRoots: a file as a root, a root in a root, roots below /tmp.
func testRoots(t *testing.T, d sandbox.Driver) {
	w, tmp := newWorld(t), newTmpWorld(t)
	c := w.confinement()
	c.Write = append(c.Write, filepath.Join(w.out, "link-to-me"), tmp)
	c.Read = append(c.Read, w.base+"/nothing-here")
	o := w.bash(t, d, c, prelude+`echo new >$OUT/link-to-me; echo new >$T/x; ! cat $OUT/canary; ! touch $OUT/y; [ "$(ls /tmp | grep -v home)" = "$(basename $(dirname $T))" ]`, "T="+tmp)
	if o.Error != nil || o.Exit.Code != 0 {
		t.Errorf("%v, exit %d\n%s%s", o.Error, o.Exit.Code, o.Out, o.Err)
	}
	for _, path := range []string{filepath.Join(w.out, "link-to-me"), filepath.Join(tmp, "x")} {
		if b, err := os.ReadFile(path); string(b) != "new\n" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

// newTmpWorld is a workspace below /tmp, as tests and many tools have.
func newTmpWorld(t testing.TB) string {
	dir, err := os.MkdirTemp("/tmp", "writ-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	ws := filepath.Join(dir, "ws")
	must(t, os.Mkdir(ws, 0o755))
	if os.Geteuid() == 0 {
		must(t, os.Chown(ws, 65534, 65534))
	}
	return ws
}

func testHide(t *testing.T, d sandbox.Driver) {
	all := func(w *world) writ.Confinement {
		c := w.confinement()
		c.Read = []string{"/"}
		return c
	}
	const ok = `cat $OUT/canary >/dev/null; cat $RO/file; ls / >/dev/null`
	rows := []row{
		{"file in a hidden directory", ok, `cat $HID/canary`},
		{"its name", ok, `[ -e $HID/canary ]`},
		{"its names", ok, `[ "$(ls -A $HID)" ]`},
		{"hidden file", ok, `cat $HIDFILE`},
		{"through proc", ok, `cat /proc/self/root$HID/canary`},
		{"through dotdot", ok, `cat $RO/../ro/hidden/canary`},
		{"write into it", ok, `touch $HID/new`},
		{"write to a hidden file", ok, `echo x >$HIDFILE`},
		{"remove", ok, `rm $HIDFILE || rmdir $HID`},
		{"in the workspace", `ls keep`, `cat keep/hidden/canary`},
		{"in the workspace, its parent renamed", `ls keep`, `mv keep kept; cat kept/hidden/canary`},
		{"in the workspace, renamed", `ls keep`, `mv keep/hidden h; cat h/canary`},
		{"in the workspace, copied", `ls keep`, `cp -r keep copy; cat copy/hidden/canary`},
		{"unmount it", ok, `umount $HID || umount -l $HIDFILE`},
		{"connect to a socket in it", ok, `py "import socket; socket.socket(socket.AF_UNIX).connect(os.environ['HID']+'/sock')"`},
		{"other processes", ok, `if grep -qa writ-box /proc/1/cmdline; then exit 1; fi; cat /proc/1/cmdline`},
		{"the host's /tmp", ok, `cat /tmp/$(basename $BASE)`},
	}
	runRows(t, d, rows, all, func(t testing.TB, w *world) {
		l, err := net.Listen("unix", filepath.Join(w.hidden, "sock"))
		must(t, err)
		must(t, os.Chmod(filepath.Join(w.hidden, "sock"), 0o777))
		tmp := "/tmp/" + filepath.Base(w.base)
		must(t, os.WriteFile(tmp, []byte(canary), 0o644))
		t.Cleanup(func() { l.Close(); os.Remove(tmp) })
	})
	t.Run("not there yet", func(t *testing.T) {
		w := newWorld(t)
		c := w.confinement()
		c.Hide = append(c.Hide, filepath.Join(w.ro, "later"))
		if o := w.bash(t, d, c, "true"); o.Error != nil || o.Exit.Code != 0 {
			t.Errorf("a hidden path that nobody can make: %v, exit %d", o.Error, o.Exit.Code)
		}
		c.Hide = append(c.Hide, filepath.Join(w.ws, "later"))
		o := w.bash(t, d, c, "touch later; ls")
		if o.Error == nil && o.Exit.Code == 0 {
			t.Errorf("a path that is to be hidden could be made: %q", o.Out)
		}
	})
}
