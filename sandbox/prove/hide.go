package prove

import (
	"context"
	"os"
	"path/filepath"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// hideProbes try to get at what is hidden, with everything else readable, as the level
// full has it, and with the world around it writable too.
func hideProbes() []Probe {
	const ok = `cat $OUT/canary >/dev/null; cat $RO/file; ls / >/dev/null`
	const okWS = `ls keep`
	gone := append(away, eperm, erofs, exdev, ebusy)
	reading := []Probe{
		row("file in a hidden directory", ok, `cat $HID/canary`, away...),
		row("its name", ok, `[ -e $HID/canary ] || no absent`, "absent"),
		row("its names", ok, `[ -n "$(ls -A $HID)" ] || no empty`, "empty", eacces),
		row("its size", ok, `[ -s $HIDFILE ] || no empty`, "empty"),
		row("found", `find $RO -name file | grep -q file`, `find $BASE/ro $WS -name canary | grep . || no absent`, "absent"),
		row("hidden file", ok, `head -c 20 $HIDFILE | grep . || no empty`, append(away, "empty")...),
		row("through proc", ok, `cat /proc/self/root$HID/canary`, away...),
		row("through dotdot", ok, `cat $RO/../ro/hidden/canary`, away...),
		row("through a symlink", `ln -s $RO/file a; cat a`, `ln -s $HID h; cat h/canary`, away...),
		row("through a descriptor of its parent", ok, `py "print(os.read(os.open('hidden/canary',0,dir_fd=os.open(os.environ['RO'],0)),99))"`, away...),
		row("hard link", `ln file g`, `ln $HIDFILE h; head -c 20 h | grep . || no empty`, append(gone, "empty")...),
		row("write into it", ok, `touch $HID/new`, gone...),
		row("write to a hidden file", ok, `echo x >$HIDFILE`, gone...),
		row("mode of a hidden file", ok, `chmod 600 $HIDFILE`, gone...),
		row("remove", ok, `rm $HIDFILE || rmdir $HID`, gone...),
		row("in the workspace", okWS, `cat keep/hidden/canary`, away...),
		row("in the workspace, its parent renamed", okWS, `mv keep kept; cat kept/hidden/canary`, gone...),
		row("in the workspace, renamed", okWS, `mv keep/hidden h; cat h/canary`, gone...),
		row("in the workspace, copied", okWS, `cp -r keep copy; cat copy/hidden/canary`, gone...),
		row("in the workspace, removed", okWS, `rmdir keep/hidden || rm -r keep`, gone...),
		row("in the workspace, exchanged", `mkdir a b; py "call(`+renameat2Nr+`,-100,b'a',-100,b'b',2)"`,
			`mkdir x; py "call(`+renameat2Nr+`,-100,b'keep/hidden',-100,b'x',2)"; cat x/canary`, gone...).onGVisor(gvisor{lacks: einval}),
		row("in the workspace, linked", okWS, `ln keep/hidden/canary h; cat h`, gone...),
		row("unmount it", ok, `umount $HID || umount -l $HIDFILE`, eperm, "must be superuser", eacces),
		row("connect to a socket in it", ok, `py "import socket; s=socket.socket(socket.AF_UNIX); s.connect(os.environ['HID']+'/sock'); print(s.recv(99))"`, append(away, eperm)...),
		row("other processes", ok, `if grep -qa writ-box /proc/1/cmdline; then no its own; fi; head -c1 /proc/1/cmdline | grep -a . || no nothing`, append(away, eperm, "its own", "nothing")...).onGVisor(gvisor{first: true}),
		row("the host's /tmp", ok, `cat /tmp/$(basename $BASE)-$(basename $(dirname $BASE))`, away...),
	}
	reading = group("hide", sandbox.StateHidden, reading, confined(all), arranged(hiddenThings))
	whole := group("hide", sandbox.StateHidden, []Probe{
		row("full, file in a hidden directory", `echo x >$OUT/new`, `cat $HID/canary`, away...),
		row("full, hidden file", `echo x >$OUT/new`, `head -c 20 $HIDFILE | grep . || no empty`, append(away, "empty")...),
		row("full, its parent renamed", `mkdir $OUT/a; mv $OUT/a $OUT/b`, `mv $RO $BASE/moved; cat $BASE/moved/hidden/canary`, gone...),
		row("full, renamed", `mv $OUT/canary $OUT/c`, `mv $HID $BASE/h; cat $BASE/h/canary`, gone...),
		row("full, hidden file renamed", `mv $OUT/canary $OUT/c`, `mv $HIDFILE $BASE/h; head -c 20 $BASE/h | grep . || no empty`, append(gone, "empty")...),
		row("full, hard link", `ln $OUT/canary $OUT/c`, `ln $HIDFILE $BASE/h; head -c 20 $BASE/h | grep . || no empty`, append(gone, "empty")...),
		row("full, written over", `echo x >$OUT/canary`, `echo x >$HIDFILE`, gone...),
		row("full, removed", `rm $OUT/canary`, `rm -r $HID`, gone...),
	}, confined(everything), func(p *Probe) { p.free = true })
	return append(append(reading, whole...), group("hide", sandbox.StateHidden, []Probe{{Name: "not there yet", try: tryLater}})...)
}

// everything is the level full with the world writable as well.
func everything(w *world, c *writ.Confinement) {
	c.Read, c.Write = []string{"/"}, append(c.Write, w.base)
}

// hiddenThings are a socket in a hidden directory and a file in the host's /tmp.
func hiddenThings(w *world) error {
	tmp := "/tmp/" + filepath.Base(w.base) + "-" + filepath.Base(filepath.Dir(w.base))
	if err := os.WriteFile(tmp, []byte(canary), 0o644); err != nil {
		return err
	}
	w.later(func() { os.Remove(tmp) })
	return w.listening(filepath.Join(w.hidden, "sock"))
}

// tryLater hides paths that do not exist: one that nobody can make does no harm; one that
// the box could make must be out of reach, or the box must not start.
func tryLater(ctx context.Context, w *world) error {
	c := w.confinement()
	c.Hide = append(c.Hide, filepath.Join(w.ro, "later"))
	if o := w.bash(ctx, c, "true", nil); o.Error != nil || o.Exit.Code != 0 {
		return inconclusive("a hidden path that nobody can make: %s", o)
	}
	c.Hide = append(c.Hide, filepath.Join(w.ws, "later"))
	if o := w.bash(ctx, c, "touch later && ls later", nil); o.Error == nil && o.Exit.Code == 0 {
		return broken("a path that is to be hidden could be made: %s", o)
	}
	return nil
}
