package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long dying may take, and the kernel to let go of what died.
const patience = 5 * time.Second

// killAll kills every process of some groups, not those of groups inside them.
func killAll(dirs []string) error {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left, where := 0, ""
		for _, dir := range dirs {
			n, err := strike(dir)
			if err != nil {
				return err
			}
			if n > 0 {
				left, where = n, dir
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes of %s do not die; see what state they are in with ps", left, where)
		}
		time.Sleep(pause)
	}
}

// strike kills the processes that a group has now and returns how many these were.
//
// Version 2 does it as one step. In version 1 a fork bomb can be faster than this loop,
// so where processes are limited none may be started any more. A number that was read may
// be another process's by the time it is used; so each process is held first, and only
// what is still in the group then is killed.
func strike(dir string) (int, error) {
	here, err := processes(dir)
	if err != nil || len(here) == 0 {
		return 0, err
	}
	if os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0) == nil {
		return len(here), nil
	}
	if shut := openControl(dir, "pids.max"); shut.there() {
		shut.put("0")
		shut.close()
	}
	held := map[int]int{}
	for _, pid := range here {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			held[pid] = fd
		}
	}
	still, err := processes(dir)
	for _, pid := range still {
		if fd, ok := held[pid]; ok {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	for _, fd := range held {
		unix.Close(fd)
	}
	return len(here), err
}

// processes lists those of a group; a group that is gone has none. One that this process
// cannot see has the number 0 and counts.
func processes(dir string) ([]int, error) {
	b, err := os.ReadFile(dir + "/cgroup.procs")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, line := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs says %q, which is no process", dir, line)
		}
		out = append(out, pid)
	}
	return out, nil
}

// remove removes an empty group; the kernel may take a moment to let go of it.
func remove(dir string) error {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil || err == unix.ENOENT:
			return nil
		case err != unix.EBUSY || time.Now().After(end):
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		time.Sleep(pause)
	}
}

// removeTree kills everything in a group and the groups inside it, and removes them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeTree(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(append(errs, killAll([]string{dir}), remove(dir))...)
}
