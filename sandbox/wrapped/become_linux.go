package wrapped

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// ready is all that is said on the way to a command that runs.
const ready = "ready"

// become gives up everything and becomes the command, or says why it cannot.
func become() {
	out := os.NewFile(fdStatus, "status")
	why := func() *failure {
		var j Job
		if err := gob.NewDecoder(os.NewFile(fdControl, "job")).Decode(&j); err != nil {
			return failed(stepJob, err)
		}
		return j.become(out)
	}()
	json.NewEncoder(out).Encode(why)
	unix.Exit(1)
}

// become does the steps. The order matters: each needs what a later one takes away.
func (j *Job) become(out *os.File) *failure {
	for _, dir := range j.Make {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return failed(stepMake, err)
		}
	}
	for _, dir := range j.Bound {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,nr_inodes=%d", TemporaryBytes, temporaryFiles)); err != nil {
			return failed(stepBound, err)
		}
	}
	if err := j.noExec(); err != nil {
		return failed(stepNoExec, err)
	}
	for _, h := range j.Hidden {
		if now, _, err := Seen(h.Path); err == nil && now == h {
			return failed(stepHide, errors.New(h.Path+" is not covered"))
		}
	}
	if err := j.sealed(); err != nil {
		return failed(stepSeal, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return failed(stepDrop, err)
	}
	if err := restrictFiles(j.Grants); err != nil {
		return failed(stepLandlock, err)
	}
	if err := dropCapabilities(); err != nil {
		return failed(stepDrop, err)
	}
	unix.Umask(0o022)
	if err := unix.Chdir(j.Dir); err != nil {
		return failed(stepDir, err)
	}
	others := threadsBeside()
	if err := restrictCalls(calls.Kind{Listed: j.Listed, Alone: j.Alone}); err != nil {
		return failed(stepSeccomp, err)
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return failed(stepExec, err)
	}
	j.reserveHeap()
	j.Limits.Pids += others
	if err := setLimits(j.Limits); err != nil {
		return failed(stepLimits, err)
	}
	return j.execute(out)
}

// execute becomes the command. That it is ready is said first: afterwards nobody is there
// to say it. A failure that follows takes it back.
func (j *Job) execute(out *os.File) *failure {
	if _, err := out.WriteString(ready); err != nil {
		return failed(stepExec, err)
	}
	return failed(stepExec, syscall.Exec(j.Path, j.Argv, j.Env))
}

// noExec makes mounts hold no programs. The ELF loader maps any file that it can read,
// which Landlock does not see; the flag of the mount does.
func (j *Job) noExec() error {
	for _, path := range j.NoExec {
		set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &set); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range j.Exec {
		clear := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOEXEC}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &clear); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// dropCapabilities leaves none, and no way to one. It acts on this thread, which executes
// the command; the others end then.
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		have, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break // past the last one
		}
		if have == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("capability bounding set: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if unix.Getuid() == 0 || unix.Geteuid() == 0 || unix.Getgid() == 0 || unix.Getegid() == 0 {
		return errors.New("this is root")
	}
	return nil
}

// reserveHeap grows the heap by what executing will take, and frees it: under the limit
// on memory, which this process is over already, it cannot grow.
func (j *Job) reserveHeap() {
	n := 8 << 20
	for _, s := range slices.Concat(j.Argv, j.Env) {
		n += 2 * len(s)
	}
	ballast := make([]byte, n)
	runtime.KeepAlive(ballast)
	ballast = nil
	runtime.GC()
}

// setLimits sets the limits of the command and all its children.
func setLimits(l reach.Limits) error {
	all, err := l.All()
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := unix.Setrlimit(r.What, &unix.Rlimit{Cur: r.Max, Max: r.Max}); err != nil {
			return fmt.Errorf("limit %d: %w", r.What, err)
		}
	}
	return nil
}
