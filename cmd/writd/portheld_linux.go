package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holder is the daemon of this user that listens on a port, and its state directory: it
// holds the lock of its store as long as it runs. Of another user's nothing is told.
func holder(port uint16) (pid int, state string) {
	sockets := listening(port)
	dirs, _ := filepath.Glob("/proc/[0-9]*/fd")
	for _, dir := range dirs {
		listens, lock := false, ""
		fds, _ := os.ReadDir(dir) // another user's cannot be read
		for _, fd := range fds {
			to, _ := os.Readlink(filepath.Join(dir, fd.Name()))
			listens = listens || sockets[to]
			if filepath.Base(to) == "writ.db.lock" {
				lock = to
			}
		}
		if listens && lock != "" {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(dir)))
			return pid, filepath.Dir(lock)
		}
	}
	return 0, ""
}

// listening are the sockets that listen on a port, as /proc names them.
func listening(port uint16) map[string]bool {
	const state = "0A"
	out := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file) // where there is none, nothing listens
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == state && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				out["socket:["+f[9]+"]"] = true
			}
		}
	}
	return out
}
