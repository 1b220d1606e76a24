package native

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A view says which boxes are alike: key is everything of a plan that a box is made of
// before anybody says what to run; stamp is what the names in it lead to, and what the host
// has mounted there.
type view struct{ key, stamp string }

var errUnwanted = errors.New("nobody wants it any more")

func viewOf(p *reach.Plan, mounts *mounted.Table) view {
	var key, stamp []byte
	for _, list := range [][]string{p.Read, p.Write, p.Named, p.Hide, p.Programs} {
		for _, path := range list {
			key = append(append(key, path...), 0)
		}
		key = append(key, 0)
	}
	for _, n := range []uint64{uint64(p.UID), uint64(p.GID), p.Limits.Address, p.Limits.Data, p.Limits.Pids, p.Limits.Files, p.Limits.Size} {
		key = append(strconv.AppendUint(key, n, 36), 0)
	}
	for _, is := range []bool{p.Root, p.Listed, p.Agent} {
		key = strconv.AppendBool(key, is)
	}
	for _, list := range [][]string{p.Read, p.Write, p.Hide} {
		for _, path := range list {
			stamp = append(appendStamp(stamp, path, false), mounts.Mark(path)...)
		}
	}
	for _, dir := range everybodys {
		stamp = append(stamp, mounts.Mark(dir)...)
	}
	// Programs are many; one that was exchanged shows in its directory.
	var dirs []string
	for _, path := range p.Programs {
		if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
			stamp = appendStamp(stamp, dir, true)
		}
	}
	return view{string(key), string(stamp)}
}

// appendStamp says what a name leads to now: which file of which mount, and of a
// directory whose names count, since when it has those.
func appendStamp(out []byte, path string, names bool) []byte {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_MTIME|unix.STATX_MNT_ID, &s); err != nil {
		return append(append(out, err.Error()...), 0)
	}
	for _, n := range []uint64{uint64(s.Dev_major), uint64(s.Dev_minor), s.Ino, s.Mnt_id, uint64(s.Mode & unix.S_IFMT)} {
		out = append(strconv.AppendUint(out, n, 36), ' ')
	}
	if names {
		out = strconv.AppendInt(strconv.AppendInt(out, s.Mtime.Sec, 36), int64(s.Mtime.Nsec), 36)
	}
	return append(out, 0)
}
