package wrapped

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// threadsBeside counts the threads of the supervisor: the limit on processes counts them
// too. Those of this process end when it executes the command.
func threadsBeside() uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Threads:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
			return n
		}
	}
	return 0
}

// FileSystems are those that are mounted for this process, by number, besides what the
// kernel has of its own in dirs.
func FileSystems(dirs []string) ([]uint64, error) {
	now, err := mounted.Now()
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, path := range now.Points() {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && !reach.InAny(path, dirs) && !slices.Contains(out, st.Dev) {
			out = append(out, st.Dev)
		}
	}
	return out, nil
}

// sealed makes sure of what a wrapper was to do: modes, owners and times can be changed,
// whatever Landlock says, wherever a mount is not read-only.
func (j *Job) sealed() error {
	if len(j.Sealed) == 0 {
		return nil
	}
	now, err := mounted.Now()
	if err != nil {
		return err
	}
	for _, path := range slices.Concat(now.Points(), j.Writable) {
		var fs unix.Statfs_t
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || unix.Statfs(path, &fs) != nil {
			continue // it cannot be got at
		}
		switch {
		case slices.Contains(j.Writable, path):
			if fs.Flags&unix.ST_RDONLY != 0 {
				return fmt.Errorf("%s is read-only in the box; it must belong to the user of the box", path)
			}
		case slices.Contains(j.Sealed, st.Dev) && fs.Flags&unix.ST_RDONLY == 0 && !reach.InAny(path, j.Writable):
			return fmt.Errorf("%s is not", path)
		}
	}
	return nil
}
