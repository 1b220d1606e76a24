package mounted

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Table is what was mounted where at one time. It does not change: as long as [Now] gives
// the same one, nothing was mounted and nothing unmounted, nor moved that anybody has said.
type Table struct {
	rows []row  // in the kernel's order: what lies on something comes after it
	nth  uint64 // of all that there were

	mu    sync.Mutex
	marks map[string]string // by path
}

// A row is one mount. Its text tells it from others, before and after it: a number of its own,
// what is mounted, and how.
type row struct {
	id       uint64
	at, text string
}

const source = "/proc/self/mountinfo"

// latest is the last Table. Its file is kept open, for the kernel to tell by it whether
// something has changed: once, whoever asks. So it is none of Go's, which would ask as well.
var latest struct {
	mu     sync.Mutex
	fd     int
	is     *Table
	count  uint64 // how often something has changed,
	tables uint64 // and how many there were
	doubt  bool   // somebody knows better than the kernel tells
}

// Doubt has the table read anew: the kernel does not tell when a directory that something is
// mounted in is renamed.
func Doubt() {
	latest.mu.Lock()
	defer latest.mu.Unlock()
	latest.doubt = true
}

// numbers are what a mount is called by the number that mountinfo has for it. Where the kernel
// does not say, a mount is another one whenever something has changed anywhere.
func numbers() func(string) uint64 {
	known, err := unique()
	return func(number string) uint64 {
		if id, ok := known[number]; err == nil && ok {
			return id
		}
		return latest.count
	}
}

// Now is what is mounted.
func Now() (*Table, error) {
	latest.mu.Lock()
	defer latest.mu.Unlock()
	if latest.fd == 0 {
		fd, err := unix.Open(source, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("what is mounted cannot be read (%s): %w", source, err)
		}
		latest.fd = fd
	}
	changed, err := changed(latest.fd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if latest.is != nil && !changed && !latest.doubt {
		return latest.is, nil
	}
	text, err := os.ReadFile(source) // what changes meanwhile is told the next time
	var now *Table
	if err == nil {
		if changed || latest.is == nil {
			latest.count++
		}
		now, err = parse(string(text), numbers())
	}
	if err != nil {
		latest.is = nil
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	latest.doubt = false
	if latest.is == nil || !slices.Equal(now.rows, latest.is.rows) {
		latest.tables++
		now.nth = latest.tables
		latest.is = now
	}
	return latest.is, nil
}

// changed reports whether something was mounted or unmounted since it was asked last.
func changed(fd int) (bool, error) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return n > 0, err
		}
	}
}

// fields of a line that count: its number and that of what it is mounted on, the filesystem,
// what of it, where, and how. What it passes on to others follows.
const fields, where = 6, 4

func parse(text string, number func(string) uint64) (*Table, error) {
	t := &Table{marks: map[string]string{}}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", fields+1)
		if len(f) <= fields {
			return nil, fmt.Errorf("a mount is told as %q", line)
		}
		id := number(f[0])
		t.rows = append(t.rows, row{id, unescape(f[where]), fmt.Sprint(id, " ", strings.Join(f[:fields], " "))})
	}
	return t, nil
}

// unescape undoes what the kernel does to spaces and the like.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// Before reports whether a Table is of an earlier time than another.
func (t *Table) Before(later *Table) bool { return t.nth < later.nth }

// Points are where something is mounted, each once.
func (t *Table) Points() []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range t.rows {
		if !seen[r.at] {
			seen[r.at] = true
			out = append(out, r.at)
		}
	}
	return out
}

// Mark says what is mounted on a path and below it; of a later Table it is another one when
// that has changed.
func (t *Table) Mark(path string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mark, ok := t.marks[path]; ok {
		return mark
	}
	var mark strings.Builder
	for _, r := range t.rows {
		if within(r.at, path) {
			mark.WriteString(r.text + "\n")
		}
	}
	if len(t.marks) >= mostMarks {
		clear(t.marks)
	}
	t.marks[path] = mark.String()
	return t.marks[path]
}

// mostMarks bounds what is remembered of one Table.
const mostMarks = 4096

// Since are the places at which something was mounted or unmounted since an earlier Table.
func (t *Table) Since(before *Table) []string {
	count := map[row]int{}
	for _, r := range before.rows {
		count[r]--
	}
	for _, r := range t.rows {
		count[r]++
	}
	var out []string
	for r, n := range count {
		if n != 0 {
			out = append(out, r.at)
		}
	}
	return out
}

// Others are the places at which something is mounted now that was not mounted anywhere, or
// was that is not any more: where it was.
func (t *Table) Others(before *Table) []string {
	var out []string
	for _, pair := range [][2]*Table{{t, before}, {before, t}} {
		known := map[uint64]bool{}
		for _, r := range pair[1].rows {
			known[r.id] = true
		}
		for _, r := range pair[0].rows {
			if !known[r.id] {
				out = append(out, r.at)
			}
		}
	}
	return out
}

// Touches reports whether a mount at a place changes what a path leads to, or what is below
// it.
func Touches(place, path string) bool { return within(place, path) || within(path, place) }

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
