package subprocess

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// ready is what a confiner says right before it executes the command.
const ready = "ready"

// launcherEnv keeps the daemon's environment out of the parts of a box and the
// garbage collector out of processes that live for milliseconds.
var launcherEnv = []string{"GOGC=off", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}

// confine is the process that becomes the command. It gives up everything, step
// by step, and executes; or it says which step failed and ends. Nothing of the
// command has run by then.
func confine() {
	unix.CloseOnExec(fdJob)
	unix.CloseOnExec(fdStatus)
	out := os.NewFile(fdStatus, "report")
	j, _, err := readJob(bufio.NewReader(os.NewFile(fdJob, "job")))
	if err == nil {
		err = confineJob(j, out)
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{stepProtocol, fmt.Sprint(err)}
	}
	json.NewEncoder(out).Encode(f)
	os.Exit(125)
}

// confineJob returns only with an error. The order matters: mounts need
// privileges, Landlock forbids mounts, seccomp forbids much of the rest. Limits
// come last because they count this process, too.
func confineJob(j job, out *os.File) error {
	supervisor := os.Getppid()
	if err := ownNamespace(j); err != nil {
		return failed(stepSpace, err)
	}
	// The box goes first when memory runs out. Raising needs no privilege.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0); err != nil {
		return failed(stepLimits, err)
	}
	unix.Umask(0o022)
	shown, err := arrangeMounts(j)
	if err != nil {
		return err
	}
	if err := restrictFiles(j.Grants, shown); err != nil {
		return failed(stepLandlock, err)
	}
	if err := dropPrivileges(j, supervisor); err != nil {
		return failed(stepDrop, err)
	}
	if err := unix.Chdir(j.Dir); err != nil {
		return failed(stepDir, err)
	}
	if err := restrictCalls(j.Listed); err != nil {
		return failed(stepSeccomp, err)
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return failed(stepExec, err)
	}
	if j.Limits.Address < reach.ReserveMemory || raceBuild {
		reserveHeap(j)
	}
	if err := setLimits(j.Limits); err != nil {
		return failed(stepLimits, err)
	}
	if _, err := out.WriteString(ready); err != nil {
		return failed(stepProtocol, err)
	}
	return failed(stepExec, syscall.Exec(j.Path, j.Argv, j.Env))
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

// dropPrivileges becomes the unprivileged user, with no capability and no way to
// one. It acts on this thread, which executes the command; the others end then.
func dropPrivileges(j job, supervisor int) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > unix.CAP_AUDIT_READ {
			break // past the last one
		}
		if err != nil {
			return fmt.Errorf("capability bounding set: %w", err)
		}
	}
	if j.Root {
		if err := unix.Setgroups(nil); err != nil {
			return fmt.Errorf("setgroups: %w", err)
		}
		if err := unix.Setresgid(j.GID, j.GID, j.GID); err != nil {
			return fmt.Errorf("setresgid: %w", err)
		}
		if err := unix.Setresuid(j.UID, j.UID, j.UID); err != nil {
			return fmt.Errorf("setresuid: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if unix.Getuid() == 0 || unix.Geteuid() == 0 || unix.Getgid() == 0 {
		return errors.New("still root")
	}
	// A change of user has cleared the signal, and the supervisor may be gone.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	if os.Getppid() != supervisor {
		return errors.New("the supervisor is gone")
	}
	return nil
}

// reserveHeap grows the heap by what executing will take, and frees it: under
// the limit on memory, which this process is over already, it cannot grow.
func reserveHeap(j job) {
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
