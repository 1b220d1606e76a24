package wrapped

import (
	"errors"
	"fmt"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

const (
	rightsRead  = ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsWrite = rightsRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeReg | ll.AccessFSMakeDir |
		ll.AccessFSMakeSym | ll.AccessFSMakeFifo
	rightsDevice = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	// rightsOfFile are those that a rule on something other than a directory may carry.
	rightsOfFile = ll.AccessFSExecute | rightsDevice
	rightsAll    = 1<<16 - 1 // of ABI 5 and later
	scopes       = 3         // signals and abstract sockets, of ABI 6
)

// NeedABI is the Landlock that boxes need: the first that keeps signals inside.
const NeedABI = 6

// LandlockABI is what this kernel has; 0: none.
func LandlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// restrictFiles confines this thread to the grants, and its signals to its own.
func restrictFiles(grants []Grant) error {
	rules, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: rightsAll, Scoped: scopes}, 0)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	for _, g := range grants {
		if err := g.add(rules); err != nil {
			return fmt.Errorf("grant %s: %w", g.Path, err)
		}
	}
	return ll.LandlockRestrictSelf(rules, 0)
}

func (g Grant) add(rules int) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if g.Strict {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, g.Path, &how)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := g.rights(st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if rights == 0 {
		return nil
	}
	return ll.LandlockAddPathBeneathRule(rules, &ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0)
}

// rights are what a grant means for a directory or for anything else.
func (g Grant) rights(dir bool) uint64 {
	var set uint64
	for _, part := range []struct {
		on     bool
		rights uint64
	}{
		{g.Read, rightsRead}, {g.Write, rightsWrite}, {g.Exec, ll.AccessFSExecute}, {g.List, ll.AccessFSReadDir}, {g.Device, rightsDevice},
	} {
		if part.on {
			set |= part.rights
		}
	}
	if !dir {
		set &= rightsOfFile
		if !g.Device {
			set &^= ll.AccessFSIoctlDev
		}
	}
	return set
}

// restrictCalls installs the filter on all threads.
func restrictCalls(k calls.Kind) error {
	filter, err := calls.Filter(k)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d does not take the filter", thread)
	}
	return nil
}
