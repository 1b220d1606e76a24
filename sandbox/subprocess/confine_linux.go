package subprocess

import (
	"errors"
	"fmt"
	"os"

	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// confine gives up everything, step by step. The order matters: mounts need privileges,
// and Landlock forbids mounts.
func confine(j job) (supervise.Command, *supervise.Failure) {
	supervisor := os.Getppid()
	if err := ownNamespace(j); err != nil {
		return j.Command, supervise.Failed(supervise.StepSpace, err)
	}
	// The box goes first when memory runs out. Raising needs no privilege.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0); err != nil {
		return j.Command, supervise.Failed(supervise.StepLimits, err)
	}
	shown, err := arrangeMounts(j)
	if err != nil {
		return j.Command, supervise.Failed(supervise.StepMount, err)
	}
	for _, path := range j.Hide {
		if err := cover(path, j); err != nil {
			return j.Command, supervise.Failed(supervise.StepHide, fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := restrict.Files(j.Grants, shown); err != nil {
		return j.Command, supervise.Failed(supervise.StepLandlock, err)
	}
	if err := restrict.Privileges(j.As); err != nil {
		return j.Command, supervise.Failed(supervise.StepDrop, err)
	}
	if err := dieWith(supervisor); err != nil {
		return j.Command, supervise.Failed(supervise.StepDrop, err)
	}
	return j.Command, nil
}

// ownNamespace refuses to go on in the daemon's mount namespace: whatever went
// wrong, the next steps would make the host's files read-only.
func ownNamespace(j job) error {
	mine, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if j.HostMnt == "" || mine == j.HostMnt {
		return errors.New("the confiner has no mount namespace of its own")
	}
	return nil
}

// dieWith ends this process with the supervisor: a change of user has cleared the signal,
// and the supervisor may be gone.
func dieWith(supervisor int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	if os.Getppid() != supervisor {
		return errors.New("the supervisor is gone")
	}
	return nil
}
