package docker

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/writ-run/writ/sandbox/usage"
)

// met counts how often the container came up against a limit of its control group, and how
// many processes and threads there were at most. The latter is for the limit of a command,
// which is less than the container's, and of which the kernel counts nothing.
type met struct{ memory, pids, peak int64 }

// bounds reads them, from inside: with one hierarchy, or with one for each controller.
func bounds() met {
	return met{
		memory: counted("oom_kill", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"),
		pids:   counted("max", "/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"),
		peak:   counted("", "/sys/fs/cgroup/pids.peak", "/sys/fs/cgroup/pids/pids.peak"), // from Linux 6.1 on
	}
}

// ownThreads are those of this program in the container: they are no command's.
func ownThreads() (n int64) {
	for _, pid := range []string{"1", "self"} {
		n += counted("Threads:", "/proc/"+pid+"/status")
	}
	return n
}

// settle makes the threads that this process may come to need, so that there are as many
// while a command runs as when it begins: a few more would be taken for the command's.
func settle() {
	var made sync.WaitGroup
	enough := make(chan struct{})
	for range 4 {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // the thread stays, for whatever blocks next
			made.Done()
			<-enough
		}()
	}
	made.Wait()
	close(enough)
}

// counted is the number behind a name, or the one that is all of a file.
func counted(what string, files ...string) int64 {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			n, ok := strings.CutPrefix(line, what)
			count, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if ok && err == nil {
				return count
			}
		}
	}
	return 0
}

// since is the limit that a command met that may have so many processes and threads, beside
// those of this program.
func (m met) since(before met, most uint64, own int64) string {
	switch {
	case m.memory > before.memory:
		return "memory"
	case m.pids > before.pids, most > 0 && m.peak > before.peak && m.peak-own >= int64(most):
		return "pids"
	}
	return ""
}

// used is what everything below this process has used.
func used() (usage.Use, error) { return usage.Of(os.Getpid()) }
