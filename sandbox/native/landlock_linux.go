package native

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// Rights of Landlock, as far as a kernel knows them.
const (
	llRead  = ll.AccessFSReadFile | ll.AccessFSReadDir
	llWrite = llRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSMakeSym | ll.AccessFSMakeFifo
	llDevice = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	llFile   = ll.AccessFSExecute | llDevice // what a rule about a file may carry
	llScopes = 3                             // signals and abstract sockets
)

// landlockABI is what this kernel has; 0: none.
var landlockABI = sync.OnceValue(func() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
})

// handled are the rights that an ABI knows.
func handled(abi int) uint64 {
	known := uint64(1<<13 - 1)
	for _, since := range []struct {
		abi   int
		right uint64
	}{{2, ll.AccessFSRefer}, {3, ll.AccessFSTruncate}, {5, ll.AccessFSIoctlDev}} {
		if abi >= since.abi {
			known |= since.right
		}
	}
	return known
}

// landlock says again, inside the root, what may be done to what is there: mounts say so
// already, and neither has to be trusted alone.
func (s *script) landlock(p *reach.Plan) {
	abi := landlockABI()
	known := handled(abi)
	attr := binary.NativeEndian.AppendUint64(nil, known)
	if abi >= 4 {
		attr = binary.NativeEndian.AppendUint64(attr, 0) // ports are the network namespace's matter
	}
	if abi >= 6 {
		attr = binary.NativeEndian.AppendUint64(attr, llScopes)
	}
	rules := s.call(unix.SYS_LANDLOCK_CREATE_RULESET, s.bytes(attr), num(len(attr)), num(0))
	grant := func(path string, rights uint64) {
		fd := s.callMay(unix.ENOENT, unix.SYS_OPENAT, here, s.text(path), num(unix.O_PATH|unix.O_CLOEXEC), num(0))
		beneath := s.bytes(append(binary.NativeEndian.AppendUint64(nil, rights&known), 0, 0, 0, 0))
		s.store(beneath, 8, fd)
		s.callMay(unix.EBADF, unix.SYS_LANDLOCK_ADD_RULE, rules, num(1), beneath, num(0)) // what is not there grants nothing
		s.callMay(unix.EBADF, unix.SYS_CLOSE, fd)
	}
	exec := uint64(ll.AccessFSExecute)
	if p.Listed {
		exec = 0
	}
	grant("/", llRead|exec)
	grant("/dev", llDevice)
	grant("/proc", llRead|ll.AccessFSWriteFile)
	grant(reach.PrivateTmp, llWrite|exec)
	for _, w := range p.Write {
		rights := llWrite | exec
		if !isDir(w) {
			rights &= llFile
		}
		grant(inside(w), rights)
	}
	if p.Listed {
		for _, path := range slices.Concat([]string{p.Path}, reach.RealAll(p.Programs), reach.RealAll(reach.GlobAll(reach.Loaders))) {
			rights := llRead | ll.AccessFSExecute
			if !isDir(path) {
				rights &= llFile
			}
			grant(inside(path), uint64(rights))
		}
	}
	s.call(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, num(0))
	s.call(unix.SYS_CLOSE, rules)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
