package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sweep kills and removes what processes that were opened under this name have left
// behind, and lists the directories. It is for the start of a program: what belongs to a
// process that lives is spared, and so is everything of which it cannot be proved that a
// process of this user, deployment and process namespace made it and is dead.
func Sweep(name string) ([]string, error) {
	if _, err := nameOf(name); err != nil {
		return nil, err
	}
	space, err := pidSpace()
	if err != nil {
		return nil, err
	}
	all, err := find()
	if err != nil {
		return nil, err
	}
	var gone []string
	var errs []error
	for _, h := range all {
		base, _, err := h.base()
		if err != nil {
			continue // nothing could be made here either
		}
		for _, dir := range leftovers(base, name, space) {
			if err := removeTree(dir); err != nil {
				errs = append(errs, err)
				continue
			}
			gone = append(gone, dir)
		}
	}
	return gone, errors.Join(errs...)
}

// leftovers lists the directories in base that dead processes made.
func leftovers(base, name string, space uint64) []string {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		var st unix.Stat_t
		if !e.IsDir() || unix.Lstat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
			continue
		}
		if pid, start, ok := whose(e.Name(), name, space); ok && !alive(pid, start) {
			out = append(out, dir)
		}
	}
	return out
}

// whose reads the name of a directory as nameOf writes it, to the letter.
func whose(dir, name string, space uint64) (pid int, start uint64, ok bool) {
	f := strings.Split(dir, ".")
	if len(f) != 4 || f[0] != name || f[3] != strconv.FormatUint(space, 10) {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[2], 10, 64)
	if err1 != nil || err2 != nil || pid <= 0 || strconv.Itoa(pid) != f[1] || strconv.FormatUint(start, 10) != f[2] {
		return 0, 0, false
	}
	return pid, start, true
}

// alive reports whether a process can still be there. Only two things prove that it is
// not: nothing has its number, or what has it started at another time.
func alive(pid int, start uint64) bool {
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	now, err := startOf(pid)
	return err != nil || now == start
}
