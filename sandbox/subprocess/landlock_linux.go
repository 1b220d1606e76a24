package subprocess

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
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
)

// restrictFiles confines this process to the grants: strictly, never what the
// kernel happens to have. V6 also keeps signals and abstract sockets inside and
// allows no TCP port. shown are descriptors of the box's own mounts.
func restrictFiles(grants []grant, shown map[string]int) error {
	var rules []landlock.Rule
	for _, g := range grants {
		fd, owned, err := openGrant(g, shown)
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("grant %s: %w", g.Path, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("grant %s: %w", g.Path, err)
		}
		if rights := g.rights(st.Mode&unix.S_IFMT == unix.S_IFDIR); rights != 0 {
			// By descriptor: the path could lead elsewhere by now.
			rules = append(rules, landlock.PathAccess(rights, "/proc/self/fd/"+strconv.Itoa(fd)))
		}
		if owned {
			defer unix.Close(fd)
		}
	}
	return landlock.V6.Restrict(rules...)
}

// absent says that a path grants nothing because it is not there, or not for
// this user. Grants widen, so leaving one out is no less strict.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)
}

func openGrant(g grant, shown map[string]int) (fd int, owned bool, err error) {
	if fd, ok := shown[g.Path]; ok {
		return fd, false, nil
	}
	if g.Strict {
		fd, err = openNoSymlinks(g.Path)
	} else {
		fd, err = unix.Open(g.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	return fd, true, err
}

// rights are what a grant means for a directory or for anything else.
func (g grant) rights(dir bool) landlock.AccessFSSet {
	var set landlock.AccessFSSet
	if g.Read {
		set |= rightsRead
	}
	if g.Write {
		set |= rightsWrite
	}
	if g.Exec {
		set |= ll.AccessFSExecute
	}
	if g.List {
		set |= ll.AccessFSReadDir
	}
	if g.Device {
		set |= rightsDevice
	}
	if !dir {
		set &= rightsOfFile
		if !g.Device {
			set &^= ll.AccessFSIoctlDev
		}
	}
	return set
}
