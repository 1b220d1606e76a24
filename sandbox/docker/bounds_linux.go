package docker

import (
	"os"
	"strconv"
	"strings"

	"github.com/writ-run/writ/sandbox/usage"
	"golang.org/x/sys/unix"
)

// met counts how often the container came up against a limit of its control group.
type met struct{ memory, pids int64 }

// bounds reads them, from inside: with one hierarchy, or with one for each controller.
func bounds() met {
	return met{
		memory: counted("oom_kill", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"),
		pids:   counted("max", "/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"),
	}
}

func counted(what string, files ...string) int64 {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if name, n, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == what {
				count, _ := strconv.ParseInt(n, 10, 64)
				return count
			}
		}
	}
	return 0
}

// since is the limit that a command met which ended like this.
func (m met) since(before met, how unix.WaitStatus) string {
	switch {
	case how.Exited() && how.ExitStatus() == 0:
	case m.memory > before.memory:
		return "memory"
	case m.pids > before.pids:
		return "pids"
	}
	return ""
}

// used is what everything below this process has used.
func used() (usage.Use, error) { return usage.Of(os.Getpid()) }
