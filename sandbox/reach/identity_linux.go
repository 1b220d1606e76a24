package reach

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Nobody is the user that stands for none.
const Nobody = 65534

// identity is the user that a box runs as: this one, or, when this is root, the
// owner of what it writes, or nobody where it only reads what is root's. It is never 0.
func identity(c writ.Confinement, dir string) (uid, gid int, root bool, err error) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 {
		return uid, gid, false, nil
	}
	if len(c.Write) > 0 {
		dir = c.Write[0]
	} else if dir == PrivateHome {
		return Nobody, Nobody, true, nil
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return 0, 0, true, writ.Fail(writ.Invalid, "the workspace "+dir+" cannot be used; create it first", err)
	}
	if st.Uid == 0 && len(c.Write) == 0 { // it is only read, as far as anybody may
		return Nobody, Nobody, true, nil
	}
	if st.Uid == 0 {
		remedy := "give it to an unprivileged user (chown -R USER: " + dir + ")"
		if filepath.Dir(dir) == "/" || InAny(dir, SystemDirs) {
			remedy = "name a directory that belongs to an unprivileged user"
		}
		return 0, 0, true, sandbox.Anywhere(writ.Fail(writ.SandboxUnavailable, fmt.Sprintf(
			"sandbox_unavailable: %s is to be written and belongs to root, and nothing runs as root; %s", dir, remedy), nil))
	}
	if st.Gid == 0 {
		st.Gid = Nobody
	}
	return int(st.Uid), int(st.Gid), true, nil
}

// limitsOf are the limits of each process of a box, and their number.
func limitsOf(l writ.Limits) Limits {
	out := Limits{
		Pids:    uint64(orDefault(l.Pids, defaultPids)),
		Files:   uint64(orDefault(l.Files, defaultFiles)),
		Size:    uint64(orDefault(l.Size, defaultSize)),
		Disk:    orDefault(l.Disk, defaultDisk),
		CPU:     l.CPU,
		Data:    defaultMemory,
		Address: ReserveMemory,
	}
	if l.Memory > 0 {
		out.Data, out.Address = uint64(l.Memory), uint64(l.Memory)
	}
	return out
}

// orDefault is v, or def where v is not a bound: never no bound at all.
func orDefault[T cmp.Ordered](v, def T) T {
	var zero T
	if v <= zero {
		return def
	}
	return v
}
