package docker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// apart makes this process the first of a table of its own, as a user of its own, where the
// supervisor is root: the kernel of runsc neither keeps processes of one user apart nor asks
// who reads about a process, so that there must be nobody else's. Mounts are the whole
// container's in there: the supervisor takes this one away again.
func (j *job) apart() (step string, err error) {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return supervise.StepMount, err
	}
	err = restrict.Privileges(j.As)
	return supervise.StepDrop, errors.Join(err, unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
}

// gVisor reports whether its kernel is this one, as its log says, which Linux shows nobody
// in a container. A supervisor that is root must not be one of the machine's kernel.
func gVisor() bool {
	log := make([]byte, 4096)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, log)
	return err == nil && bytes.Contains(log[:n], []byte("Starting gVisor"))
}

// bare begins again without an environment where this is root, as with runsc alone: its
// kernel shows everybody's to everybody, and this is not to be found out by the command.
func bare() {
	if os.Getuid() != 0 || len(os.Environ()) == 0 {
		return
	}
	fmt.Fprintln(os.Stderr, syscall.Exec(inBox, os.Args, []string{}))
	unix.Exit(1)
}

// askOthers asks everything in the container to end but its first process and this one.
func askOthers() {
	unix.Kill(-1, unix.SIGTERM)
	unix.Kill(-1, unix.SIGCONT)
}

// killOthers kills everything in the container but its first process and this one, and
// returns when nothing else is there.
func killOthers() {
	self := strconv.Itoa(os.Getpid())
	for {
		if is, _ := os.Readlink("/proc/self"); is != self { // it is the command's still: job.apart
			unix.Unmount("/proc", unix.MNT_DETACH)
		}
		unix.Kill(-1, unix.SIGKILL)
		for {
			if pid, _ := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 {
				break
			}
		}
		is, _ := os.Readlink("/proc/self")
		entries, err := os.ReadDir("/proc")
		alive := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			_, err := strconv.Atoi(e.Name())
			status, gone := os.ReadFile("/proc/" + e.Name() + "/status")
			return err == nil && gone == nil && e.Name() != "1" && e.Name() != self && !bytes.Contains(status, []byte("\nState:\tZ"))
		})
		if err == nil && is == self && !alive {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
