package restrict

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A Grant is one Landlock rule: what may be done to a path and what is below it. A path
// that is not there grants nothing.
type Grant struct {
	Path              string
	Read, Write, Exec bool
	List              bool // names in directories only
	Device            bool // a harmless one: reading, writing, ioctl
	Strict            bool // named by the confinement: no symlink on the way
}

const (
	rightsRead  = ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsWrite = rightsRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeReg | ll.AccessFSMakeDir |
		ll.AccessFSMakeSym | ll.AccessFSMakeFifo
	rightsDevice = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	// rightsOfFile are those that a rule on something other than a directory may carry.
	rightsOfFile = ll.AccessFSExecute | rightsDevice
)

// LandlockHolds reports whether this kernel has the Landlock that boxes need: the first
// that keeps signals inside.
func LandlockHolds() bool {
	abi, err := ll.LandlockGetABIVersion()
	return err == nil && abi >= 6
}

// Files confines this process to the grants, and takes away every way to new privileges:
// strictly, never what the kernel happens to have. V6 also keeps signals and abstract
// sockets inside and allows no TCP port. shown are descriptors, by path, of what the box
// has mounted and may not be reached by path.
func Files(grants []Grant, shown map[string]int) error {
	return files(landlock.V6, grants, shown)
}

// FilesAlone is Files for a process in a network namespace of its own, whose ports are
// nobody else's.
func FilesAlone(grants []Grant) error {
	all := landlock.V6
	all.HandledAccessNet = 0
	return files(all, grants, nil)
}

func files(all landlock.Config, grants []Grant, shown map[string]int) error {
	var rules []landlock.Rule
	for _, g := range grants {
		fd, owned, err := g.open(shown)
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("grant %s: %w", g.Path, err)
		}
		if owned {
			defer unix.Close(fd)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("grant %s: %w", g.Path, err)
		}
		if rights := g.rights(st.Mode&unix.S_IFMT == unix.S_IFDIR); rights != 0 {
			// By descriptor: the path could lead elsewhere by now.
			rules = append(rules, landlock.PathAccess(rights, "/proc/self/fd/"+strconv.Itoa(fd)))
		}
	}
	return all.Restrict(rules...)
}

// absent says that a path grants nothing because it is not there, or not for
// this user. Grants widen, so leaving one out is no less strict.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)
}

func (g Grant) open(shown map[string]int) (fd int, owned bool, err error) {
	if fd, ok := shown[g.Path]; ok {
		return fd, false, nil
	}
	if g.Strict {
		fd, err = OpenNoSymlinks(g.Path)
	} else {
		fd, err = unix.Open(g.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	return fd, true, err
}

// OpenNoSymlinks names a file by descriptor. Paths of a confinement have their
// symlinks resolved; one on the way now was put there since, to lead elsewhere.
func OpenNoSymlinks(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// rights are what a grant means for a directory or for anything else.
func (g Grant) rights(dir bool) landlock.AccessFSSet {
	var set landlock.AccessFSSet
	for _, part := range []struct {
		on     bool
		rights landlock.AccessFSSet
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
