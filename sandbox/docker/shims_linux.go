package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endShims ends what is left of a container that did not start. With runsc that is gVisor's
// kernel and what watches over it (containerd's shim), of which the engine knows nothing
// once it has removed the container. The number of a container is nobody else's; but anybody
// can give a process such a name, so only those of the engine's user count. Where this is
// not that user they are told of.
func (d *Driver) endShims(id string) error {
	socket, err := os.Stat(strings.TrimPrefix(Host(d.opts.Host), "unix://"))
	if err != nil {
		return fmt.Errorf("look at the engine's socket: %w", err)
	}
	user := owner(socket)
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	for {
		left, err := shims(id, user)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, s := range left {
			if err := s.end(); err != nil {
				return fmt.Errorf("a container that did not start has left process %d, which is not this user's; end it as root: kill -9 %[1]d: %w", s.pid, err)
			}
		}
		select { // containerd notices, and cleans up after it
		case <-ctx.Done():
			return fmt.Errorf("a container that did not start has left process %d, which does not end; restart the engine", left[0].pid)
		case <-time.After(endAgain):
		}
	}
}

// A shim is a process that is there for one container.
type shim struct {
	pid  int
	args []string
	*os.Process
}

// nobody is who gVisor's kernel runs as under an engine of root's.
const nobody = 65534

func owner(f os.FileInfo) uint32 { return f.Sys().(*syscall.Stat_t).Uid }

// shims are the processes of an engine's user that name a container in their arguments.
func shims(id string, user uint32) (out []shim, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, err := os.FindProcess(pid) // before it is looked at, so that it stays that one
		if err != nil {
			continue
		}
		text, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		s := shim{pid, strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"), p}
		is, err := os.Stat("/proc/" + e.Name())
		if err != nil {
			continue
		}
		if s.watches() && owner(is) == user && slices.Contains(s.args, id) ||
			s.runs() && (owner(is) == user || owner(is) == nobody) && strings.Contains(string(text), "/"+id+"/") {
			out = append(out, s)
		}
	}
	return out, nil
}

func (s shim) watches() bool { return strings.HasPrefix(filepath.Base(s.args[0]), "containerd-shim") }

func (s shim) runs() bool { return strings.HasPrefix(s.args[0], "runsc-") } // what it calls itself

// end ends a shim. Containerd then ends what ran below it, with one that is not ended.
func (s shim) end() error {
	if !s.watches() || s.args[len(s.args)-1] == "delete" {
		return nil
	}
	if err := s.Kill(); err != nil && err != os.ErrProcessDone {
		return err
	}
	return nil
}
