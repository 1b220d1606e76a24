package supervise

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A proc names a process for longer than its number does.
type proc struct {
	pid   int
	start string // since boot; a reused number has another
}

// KillAll kills and reaps every descendant of this process and returns when none
// is left. Since orphans are reparented to it, having no child is having no
// descendant.
//
// Descendants are stopped before they are killed: a stopped process keeps its
// place in the count of RLIMIT_NPROC, so a fork bomb runs out of places, while
// killing at once would give it new ones.
func KillAll() {
	for pause := time.Millisecond; !reapAll(); pause = min(2*pause, 50*time.Millisecond) {
		seen := map[proc]bool{}
		for range 64 {
			grown := false
			descendants(func(p proc) {
				if !seen[p] {
					seen[p], grown = true, true
					p.signal(unix.SIGSTOP)
				}
			})
			if !grown {
				break
			}
		}
		for p := range seen {
			p.signal(unix.SIGKILL)
		}
		if reapAll() {
			return
		}
		time.Sleep(pause) // dying takes the kernel a moment
	}
}

// AskAll asks every descendant to end, and lets stopped ones hear it.
func AskAll() {
	descendants(func(p proc) {
		p.signal(unix.SIGTERM)
		p.signal(unix.SIGCONT)
	})
}

// reapAll reaps what has ended and reports whether no child is left.
func reapAll() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			return true
		}
		if pid <= 0 && err != syscall.EINTR {
			return false
		}
	}
}

// descendants calls visit for each living descendant of this process, as early
// as it is found, so that one that keeps forking and exiting has little time.
func descendants(visit func(proc)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	ours := map[int]bool{os.Getpid(): true}
	parent := map[proc]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, ppid, state := readStat(pid)
		if state == 0 || state == 'X' {
			continue
		}
		if ours[ppid] {
			ours[pid] = true
			visit(p)
		} else {
			parent[p] = ppid
		}
	}
	// A child can have a lower number than its parent.
	for grown := true; grown; {
		grown = false
		for p, ppid := range parent {
			if ours[ppid] {
				ours[p.pid], grown = true, true
				delete(parent, p)
				visit(p)
			}
		}
	}
}

// readStat reads a process's parent, state (0: gone) and start from /proc. The
// name in the middle may hold anything, so fields count from its last bracket.
func readStat(pid int) (p proc, ppid int, state byte) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, 0, 0
	}
	_, rest, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(") "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 20 {
		return proc{}, 0, 0
	}
	ppid, _ = strconv.Atoi(string(f[1]))
	return proc{pid, string(f[19])}, ppid, f[0][0]
}

// signal sends sig if p is still the process that it was: the descriptor holds
// on to whatever has the number now, and that is then compared. The number of a
// process that ended may belong to someone else by now.
func (p proc) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, _, state := readStat(p.pid); state != 0 && now == p {
		unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// Ended reaps children until the command itself has ended.
func Ended(command int) unix.WaitStatus {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case pid == command:
			return ws
		case err == unix.ECHILD:
			return Unknown
		}
	}
}
