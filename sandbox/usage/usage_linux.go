package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Use is what was used so far.
type Use struct {
	Written int64         // bytes of files that are on a disk, or on their way there
	CPU     time.Duration // user and system time
}

// Of counts for a process, which is a launcher, and all below it. What ends meanwhile is
// left out. Launchers need not let this user look at what they write, which is next to
// nothing; what anything else keeps from being looked at is an error, and so is what keeps
// it from being told for sure.
func Of(pid int, launchers ...Process) (Use, error) {
	return all([]int{pid}, func(p int) bool { return p == pid || listed(launchers, p) })
}

// Below counts for all below a process; what is right below it is a launcher.
func Below(pid int) (Use, error) {
	first, err := children(pid)
	if err != nil && !gone(err) {
		return Use{}, fmt.Errorf("list the children of process %d: %w", pid, err)
	}
	return all(first, func(p int) bool { return slices.Contains(first, p) })
}

// Everything counts for every process that can be seen, for a kernel which does not say
// what is below one.
func Everything() (sum Use, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return sum, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		one, err := of(pid, func(int) bool { return false })
		if err != nil && !gone(err) {
			return sum, fmt.Errorf("count what process %d uses: %w", pid, err)
		}
		sum.Written += one.Written
		sum.CPU += one.CPU
	}
	return sum, nil
}

// all counts for some and what is below them. Launchers are told by where they are and not
// by name: a process names itself.
func all(queue []int, launcher func(pid int) bool) (sum Use, err error) {
	queue = slices.Clone(queue)
	for ; len(queue) > 0; queue = queue[1:] {
		one, err := of(queue[0], launcher)
		if err != nil && !gone(err) {
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

// of counts for one process. Its time is there for everybody to read. A process that has
// ended is root's until it is waited for, and writes no more.
func of(pid int, launcher func(pid int) bool) (Use, error) {
	for try := 1; ; try++ {
		written, hidden := written(pid)
		s, err := read(pid)
		if err != nil {
			return Use{}, err
		}
		denied := errors.Is(hidden, fs.ErrPermission)
		switch {
		case hidden == nil || denied && (s.ended() || launcher(pid)):
			return Use{written, s.cpu}, nil
		case !denied || try == tries:
			return Use{CPU: s.cpu}, hidden
		}
		time.Sleep(between)
	}
}

// Threads end one after the other, and the first of them can be gone before the rest: for
// as long as a process takes to end, it looks like one that goes on without its first
// thread, whose bytes nobody can count.
const (
	tries   = 10
	between = 2 * time.Millisecond
)

// written is the bytes that a process wrote, with those of children that were waited for.
func written(pid int) (n int64, err error) {
	text, err := contents(file(pid, "io"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if word, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		}
	}
	return 0, errors.New("its io file does not say what was written")
}

// children lists those of all threads of a process.
func children(pid int) ([]int, error) {
	threads, err := os.ReadDir(file(pid, "task"))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, t := range threads {
		list, err := contents(file(pid, "task/"+t.Name()+"/children"))
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

// contents reads a file of the kernel's, of which there are many to look at several times a
// second: os.ReadFile first finds out whether one could be waited for, which takes most of
// the time.
func contents(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, 1024)
	for {
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return b, nil
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
}

func file(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
