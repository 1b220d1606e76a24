package wrapped

import (
	"errors"
	"fmt"
	"os"

	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// Steps that are done inside besides those of every box.
const (
	stepMake   = "make directories"
	stepBound  = "bound temporary files"
	stepNoExec = "mount without programs"
)

// confine gives up everything. The order matters: each step needs what a later one takes
// away.
func confine(j Job) (supervise.Command, *supervise.Failure) {
	c := j.Command
	for _, dir := range j.Make {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return c, supervise.Failed(stepMake, err)
		}
	}
	for _, dir := range j.Bound {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,nr_inodes=%d", TemporaryBytes, temporaryFiles)); err != nil {
			return c, supervise.Failed(stepBound, err)
		}
	}
	if err := j.noExec(); err != nil {
		return c, supervise.Failed(stepNoExec, err)
	}
	for _, h := range j.Hidden {
		if now, err := Seen(h.Path); err == nil && now == h {
			return c, supervise.Failed(supervise.StepHide, errors.New(h.Path+" is not covered; something moved it while the box was made, try again"))
		}
	}
	if err := j.sealed(); err != nil {
		return c, supervise.Failed(supervise.StepSeal, err)
	}
	if err := restrict.Files(j.Grants, nil); err != nil {
		return c, supervise.Failed(supervise.StepLandlock, err)
	}
	if err := restrict.Privileges(nil); err != nil {
		return c, supervise.Failed(supervise.StepDrop, err)
	}
	c.Limits.Pids += threadsBeside()
	return c, nil
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
