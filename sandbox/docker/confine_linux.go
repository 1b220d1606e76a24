package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"github.com/writ-run/writ/sandbox/usage"
	"github.com/writ-run/writ/sandbox/wrapped"
	"golang.org/x/sys/unix"
)

// A job is what becomes of the process inside. All paths are those of the box, where what
// the confinement names has the paths of the host.
type job struct {
	supervise.Command
	Landlock bool                // the kernel in there has it
	Spaces   bool                // and lets a container make namespaces of users and mounts
	As       *syscall.Credential // who the command is, where the supervisor is somebody else
	Read     []string
	Write    []string
	Programs []string // that may be executed, where only listed ones may
	Covers   []protect.Mount
	Shown    []wrapped.File // what is to be found at paths
	Hidden   []wrapped.File // what is not
	Use      usage.Limits
}

// confine gives up everything that the engine has left.
func confine(j job) (supervise.Command, *supervise.Failure) {
	c := j.Command
	// The command goes first when memory runs out, and not what watches over it.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0); err != nil {
		return c, supervise.Failed(supervise.StepLimits, err)
	}
	if j.As != nil {
		if step, err := j.apart(); err != nil {
			return c, supervise.Failed(step, err)
		}
	}
	if err := os.Mkdir(reach.PrivateHome, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return c, supervise.Failed(supervise.StepMount, err)
	}
	if err := j.found(); err != nil {
		return c, supervise.Failed(supervise.StepHide, err)
	}
	for _, m := range j.Covers {
		if err := cover(m); err != nil {
			return c, supervise.Failed(supervise.StepMount, fmt.Errorf("protect %s: %w", m.Path, err))
		}
	}
	var err error
	if c.Path, err = look(c); err != nil {
		return c, supervise.Failed(supervise.StepFind, err)
	}
	if c.Listed && j.Spaces { // else nobody claims that only listed programs run
		if err := j.noPrograms(c.Path); err != nil {
			return c, supervise.Failed(supervise.StepMount, err)
		}
		j.Programs = append(j.Programs, c.Path)
		if !reach.InAny(c.Path, j.Write) { // else what it names was chosen by whoever wrote it
			j.Programs = append(j.Programs, reach.Interpreters(c.Path)...)
		}
	}
	if j.Landlock {
		if err := restrict.FilesAlone(j.grants()); err != nil {
			return c, supervise.Failed(supervise.StepLandlock, err)
		}
	}
	if err := restrict.Privileges(nil); err != nil {
		return c, supervise.Failed(supervise.StepDrop, err)
	}
	return c, nil
}

// found holds what is mounted against what was decided about: the engine went by path, and
// somebody may have moved something before it did.
func (j *job) found() error {
	for _, f := range j.Shown {
		now, err := wrapped.Seen(f.Path)
		if errors.Is(err, os.ErrPermission) {
			continue // the user of the box cannot get there
		}
		if err != nil || now != f {
			return fmt.Errorf("%s is not what it was when this was decided; something moved it while the box was made, try again", f.Path)
		}
	}
	for _, f := range j.Hidden {
		if now, err := wrapped.Seen(f.Path); err == nil && now == f {
			return fmt.Errorf("%s is not covered; something moved it while the box was made, try again", f.Path)
		}
	}
	return nil
}

// noPrograms makes what is not the image's hold none: the loader maps any file that it can
// read, which Landlock does not see; the flag of the mount does.
func (j *job) noPrograms(but string) error {
	mounts := slices.Clone(reach.PrivateDirs)
	for _, f := range j.Shown {
		mounts = append(mounts, f.Path)
	}
	for _, path := range mounts {
		set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &set); err != nil && err != unix.ENOENT && err != unix.EACCES { // else the command does not get there either
			return fmt.Errorf("%s without programs: %w", path, err)
		}
	}
	clear := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOEXEC}
	unix.MountSetattr(unix.AT_FDCWD, but, 0, &clear) // where it is mounted by itself; else it does not run
	return nil
}

// grants are, where programs are listed, those and what they need of the image; else all of
// the container but what the kernel says of the machine, and this program.
func (j *job) grants() []restrict.Grant {
	if j.Listed {
		return restrict.HostTree(&reach.Plan{Listed: true, System: reach.SystemLibraries, Read: j.Read, Write: j.Write, Programs: j.Programs})
	}
	entries, _ := os.ReadDir("/")
	out := []restrict.Grant{{Path: "/dev", Device: true, List: true}, {Path: "/", List: true}}
	for _, e := range entries {
		if path := "/" + e.Name(); path != "/sys" && path != "/dev" && path != inBox && e.Type()&os.ModeSymlink == 0 {
			out = append(out, restrict.Grant{Path: path, Read: true, Exec: path != "/proc"})
		}
	}
	for _, path := range []string{"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage"} {
		out = append(out, restrict.Grant{Path: path, Read: true})
	}
	for _, path := range slices.Concat(reach.PrivateDirs, j.Write) {
		out = append(out, restrict.Grant{Path: path, Write: true, Exec: true})
	}
	return out
}

// look finds the file to execute in the container.
func look(c supervise.Command) (string, error) {
	name := c.Path
	if filepath.IsAbs(name) {
		return name, executable(name)
	}
	if strings.Contains(name, "/") {
		path := filepath.Join(c.Dir, name)
		return path, executable(path)
	}
	for _, kv := range c.Env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		for _, dir := range filepath.SplitList(list) {
			if path := filepath.Join(dir, name); ok && filepath.IsAbs(dir) && executable(path) == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the program %q is not in the image of the box; build one that has it (writ image build --help), or name another in sandboxing.docker.image", name)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("there is no program %q in the box", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is no program", path)
	case unix.Access(path, unix.X_OK) != nil:
		return fmt.Errorf("%q is not executable; chmod +x it, or run its interpreter", path)
	}
	return nil
}

// clearAll ends what a call left in a container, whoever started it, and empties what was
// the call's own.
func clearAll() {
	unix.Kill(-1, unix.SIGKILL)
	for _, dir := range reach.PrivateDirs {
		var is unix.Stat_t
		err := unix.Lstat(dir, &is)
		if err == nil {
			err = empty(dir, is.Dev)
		}
		if err != nil && err != unix.ENOENT {
			fmt.Fprintf(os.Stderr, "empty %s: %v\n", dir, err)
			unix.Exit(1)
		}
	}
	unix.Exit(0)
}

// empty removes what is in a directory, but for other file systems: what the box is shown
// below its private directories is not its own.
func empty(dir string, dev uint64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var is unix.Stat_t
		if err := unix.Lstat(path, &is); err != nil {
			return err
		}
		if is.Dev != dev {
			continue
		}
		if is.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err := unix.Unlink(path); err != nil && err != unix.EBUSY {
				return err
			}
			continue
		}
		unix.Chmod(path, 0o700)
		if err := empty(path, dev); err != nil {
			return err
		}
		// Those above something that the box is shown there are the engine's.
		theirs := is.Uid != uint32(os.Getuid())
		if err := unix.Rmdir(path); err != nil && err != unix.ENOTEMPTY && err != unix.EBUSY && !(theirs && (err == unix.EPERM || err == unix.EACCES)) {
			return err
		}
	}
	return nil
}
