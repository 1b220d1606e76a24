package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"syscall"
)

// Use is what was used so far.
type Use struct {
	Written int64         // bytes of files that are on a disk, or on their way there
	CPU     time.Duration // user and system time
}

// Of counts for a process and all below it. What ends meanwhile is left out.
func Of(pid int) (Use, error) { return all(pid) }

// Below counts for all below a process.
func Below(pid int) (Use, error) {
	first, err := children(pid)
	if err != nil && !gone(err) {
		return Use{}, fmt.Errorf("list the children of process %d: %w", pid, err)
	}
	return all(first...)
}

// all counts for some and what is below them. A process that this user may not look at
// counts for nothing: to an ordinary user that is a launcher, which uses next to nothing.
func all(queue ...int) (sum Use, err error) {
	for ; len(queue) > 0; queue = queue[1:] {
		one, err := of(queue[0])
		if err != nil && !gone(err) && !errors.Is(err, fs.ErrPermission) {
			return sum, fmt.Errorf("count what process %d uses: %w", queue[0], err)
		}
		sum.Written += one.Written
		sum.CPU += one.CPU
		below, err := children(queue[0])
		if err != nil && !gone(err) {
			return sum, fmt.Errorf("list the children of process %d: %w", queue[0], err)
		}
		queue = append(queue, below...)
	}
	return sum, nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

func of(pid int) (Use, error) {
	var u Use
	io, err := os.ReadFile(file(pid, "io"))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(io)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.Written, err = strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	if err != nil {
		return u, err
	}
	stat, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return u, err
	}
	// The name in the middle may hold anything, so fields count from its last bracket.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 15 {
		return u, errors.New("its stat file is cut short")
	}
	for _, ticks := range f[11:15] { // its own, and of children that were waited for
		n, err := strconv.ParseInt(string(ticks), 10, 64)
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(n) * tick
	}
	return u, nil
}

// tick is the unit of times in stat, the same on every architecture.
const tick = 10 * time.Millisecond

// children lists those of all threads of a process.
func children(pid int) ([]int, error) {
	threads, err := os.ReadDir(file(pid, "task"))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, t := range threads {
		list, err := os.ReadFile(file(pid, "task/"+t.Name()+"/children"))
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(string(list)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			out = append(out, child)
		}
	}
	return out, nil
}

func file(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
