package usage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A stat is what everybody can read of a process.
type stat struct {
	flags   int64         // of its first thread
	cpu     time.Duration // its own, and of children that were waited for
	threads int64
	began   int64 // in ticks since the machine did
}

// exiting is the flag of a thread that the kernel is done with but for its remains.
const exiting = 0x4

// ended says that a process runs nothing any more. A first thread that ended before others
// is no end.
func (s stat) ended() bool { return s.threads <= 1 && s.flags&exiting != 0 }

// tick is the unit of times in stat, the same on every architecture.
const tick = 10 * time.Millisecond

func read(pid int) (s stat, err error) {
	text, err := contents(file(pid, "stat"))
	if err != nil {
		return s, err
	}
	// The name in the middle may hold anything, so fields count from its last bracket.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return s, errors.New("its stat file is cut short")
	}
	var n [20]int64
	for i := 6; i < len(n); i++ {
		if n[i], err = strconv.ParseInt(string(f[i]), 10, 64); err != nil {
			return s, err
		}
	}
	for _, ticks := range n[11:15] {
		s.cpu += time.Duration(ticks) * tick
	}
	s.flags, s.threads, s.began = n[6], n[17], n[19]
	return s, nil
}

// A Process is one by its number and by when it began, which tells it from another that
// has the number later.
type Process struct {
	pid   int
	began int64
}

// Tree lists a process and all below it.
func Tree(pid int) (out []Process, err error) {
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		s, err := read(queue[0])
		var below []int
		if err == nil {
			below, err = children(queue[0])
		}
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list process %d and what is below it: %w", queue[0], err)
		}
		out = append(out, Process{queue[0], s.began})
		queue = append(queue, below...)
	}
	return out, nil
}

func listed(all []Process, pid int) bool {
	s, err := read(pid)
	return err == nil && slices.Contains(all, Process{pid, s.began})
}
