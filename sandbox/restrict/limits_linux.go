package restrict

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// Limits sets the limits of a command, which this process executes next, and of all its
// children.
func Limits(l reach.Limits, argv, env []string) error {
	if l.Address < reach.ReserveMemory || RaceBuild {
		reserveHeap(argv, env)
	}
	all, err := l.All()
	if err != nil {
		return err
	}
	for _, r := range all {
		err := unix.Setrlimit(r.What, &unix.Rlimit{Cur: r.Max, Max: r.Max})
		if err == unix.EPERM && r.Spare() {
			continue // the kernel of runsc keeps none of these
		}
		if err != nil {
			return fmt.Errorf("limit %d: %w", r.What, err)
		}
	}
	return nil
}

// reserveHeap grows the heap by what executing will take, and frees it: under
// the limit on memory, which this process is over already, it cannot grow.
func reserveHeap(argv, env []string) {
	n := 8 << 20
	for _, s := range slices.Concat(argv, env) {
		n += 2 * len(s)
	}
	ballast := make([]byte, n)
	runtime.KeepAlive(ballast)
	ballast = nil
	runtime.GC()
}

// ThreadsOf counts a user's threads, by the links of their task directories: where a box
// has the host's user, the limit on processes counts those too.
func ThreadsOf(uid int) uint64 {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var n uint64
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name+"/task", &st) == nil && int(st.Uid) == uid && st.Nlink > 2 {
			n += uint64(st.Nlink) - 2
		}
	}
	return n
}
