package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Root is where this process makes its groups: one directory a hierarchy, named for this
// process. It is safe for concurrent use.
type Root struct {
	places []place
	made   atomic.Uint64

	mu     sync.Mutex
	back   []*Group // given back, the oldest first
	closed bool
	leaves sync.WaitGroup // those that are being removed
}

// A place is our directory in one hierarchy, and what is enforced there.
type place struct {
	unified bool
	dir     string
	has     []string
}

// Open makes the directories in which this process makes its groups. The name tells
// deployments apart; it is of lower-case letters, digits and dashes. What cannot be
// limited here is missing from Enforces; if nothing can be, the error says how to change
// that.
func Open(name string) (*Root, error) {
	mine, err := nameOf(name)
	if err != nil {
		return nil, err
	}
	all, err := find()
	if err != nil {
		return nil, err
	}
	return openIn(all, mine)
}

func openIn(all []hierarchy, mine string) (*Root, error) {
	r := &Root{}
	var why []error
	for _, h := range all {
		p, err := h.open(mine)
		if err != nil {
			why = append(why, err)
			continue
		}
		r.places = append(r.places, p)
	}
	if len(r.Enforces()) == 0 {
		return nil, errors.Join(fmt.Errorf("control groups: no limit of a whole box can be set here: %w", errors.Join(why...)), r.Close())
	}
	return r, nil
}

// open makes our directory in one hierarchy.
func (h hierarchy) open(mine string) (place, error) {
	base, has, err := h.base()
	if err != nil {
		return place{}, err
	}
	p := place{unified: h.unified, dir: filepath.Join(base, mine), has: has}
	err = os.Mkdir(p.dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		name, _, _ := strings.Cut(mine, ".")
		return place{}, fmt.Errorf("%s is there already: this process has opened %s; open it once", p.dir, name)
	}
	if err != nil {
		return place{}, fmt.Errorf("%w; give this user the directory, or run writ as root", err)
	}
	if p.unified {
		if err := handOn(p.dir, has); err != nil {
			return place{}, errors.Join(err, remove(p.dir))
		}
	}
	return p, nil
}

// Enforces lists the limits that groups of this root can have, of memory and pids.
func (r *Root) Enforces() []string {
	var out []string
	for _, c := range []string{memory, pids} {
		if slices.ContainsFunc(r.places, func(p place) bool { return slices.Contains(p.has, c) }) {
			out = append(out, c)
		}
	}
	return out
}

// Close kills and removes the groups that are left, and the root.
func (r *Root) Close() error {
	r.mu.Lock()
	back := r.back
	r.back, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for _, g := range back {
		errs = append(errs, g.Close())
	}
	r.leaves.Wait() // or they would remove groups of whoever opens the same name next
	for _, p := range r.places {
		errs = append(errs, removeTree(p.dir))
	}
	return errors.Join(errs...)
}

var goodName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9-]{1,40}$`) })

// nameOf is the name of this process's directory: deployment, process, its start, and the
// process namespace in which these numbers mean it. Process numbers are used again, and
// another container can see the same tree of groups, so less would not prove whose it is.
func nameOf(name string) (string, error) {
	if !goodName().MatchString(name) {
		return "", fmt.Errorf("control groups: %q is not a name of a deployment; use lower-case letters, digits and dashes, at most 40", name)
	}
	start, err := startOf(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("control groups: %w; mount /proc", err)
	}
	space, err := pidSpace()
	if err != nil {
		return "", fmt.Errorf("control groups: %w; mount /proc", err)
	}
	return fmt.Sprintf("%s.%d.%d.%d", name, os.Getpid(), start, space), nil
}

// pidSpace is the number of the process namespace of this process.
func pidSpace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("/proc/self/ns/pid: %w", err)
	}
	return st.Ino, nil
}

// startOf is when a process started, in ticks since boot. The name in the middle of the
// line may hold anything, so fields count from its last bracket.
func startOf(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	line := string(b)
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(f) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat is cut short", pid)
	}
	return strconv.ParseUint(f[19], 10, 64)
}
