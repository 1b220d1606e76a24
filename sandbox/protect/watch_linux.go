package protect

import (
	"bytes"
	"context"
	"encoding/binary"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const changes = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR

// maxMoves is how many directories may have been moved before looking at everything anew
// is quicker than following them.
const maxMoves = 64

// observe asks the kernel to tell of changes in an open directory. When it cannot, all
// changes of the workspace go unnoticed and each run looks at everything.
func (x *index) observe(fd int, rel string) {
	if x.watch < 0 {
		return
	}
	wd, err := unix.InotifyAddWatch(x.watch, "/proc/self/fd/"+strconv.Itoa(fd), changes)
	if err != nil {
		unix.Close(x.watch)
		x.watch = -1
		x.blind = "changes go unnoticed (" + err.Error() + "), so every run looks at the whole workspace; raise fs.inotify.max_user_watches"
		return
	}
	x.wds[int32(wd)], x.byDir[rel] = rel, int32(wd)
}

// A change is what the kernel tells of one name.
type change struct {
	wd   int32
	mask uint32
	name string
}

// key tells names apart.
func (c change) key() change { return change{wd: c.wd, name: c.name} }

// drain hears what has changed, and reports whether everything has to be looked at anew. Of
// several changes of a name only the last is looked into, so that placeholders, which come
// and go, cost next to nothing.
func (x *index) drain(ctx context.Context, most int) (again bool, err error) {
	changes, ok := x.hear()
	if !ok {
		return true, nil
	}
	if len(changes) == 0 {
		return false, nil
	}
	last := make(map[change]int, len(changes))
	for i, c := range changes {
		last[c.key()] = i
	}
	var queue []place
	moves := 0
	for i, c := range changes {
		if c.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 && last[c.key()] != i {
			continue
		}
		next, moved, look := x.changed(c)
		if moved {
			if moves++; moves > maxMoves {
				return true, nil
			}
		}
		if look {
			queue = append(queue, next)
		}
	}
	return false, x.scan(ctx, queue, most, nil)
}

// hear reads what the kernel has to tell; it is not ok when the kernel has lost some of it.
func (x *index) hear() (out []change, ok bool) {
	if x.buf == nil {
		x.buf = make([]byte, 64<<10)
	}
	for {
		n, err := unix.Read(x.watch, x.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return out, true
		case err != nil || n <= 0:
			return nil, false
		}
		for b := x.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:size], []byte{0})
			b = b[size:]
			if mask&unix.IN_Q_OVERFLOW != 0 {
				return nil, false
			}
			out = append(out, change{wd, mask, string(name)})
		}
	}
}

// changed takes note of one change, and says whether to look into a new directory, or that
// one was moved away.
func (x *index) changed(c change) (next place, moved, look bool) {
	dir, ok := x.wds[c.wd]
	if c.mask&unix.IN_IGNORED != 0 {
		delete(x.wds, c.wd)
	}
	if !ok || c.name == "" {
		return place{}, false, false
	}
	rel, isDir := path.Join(dir, c.name), c.mask&unix.IN_ISDIR != 0
	if c.mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0 {
		_, known := x.dirs[rel]
		moved = known && c.mask&unix.IN_MOVED_FROM != 0
		x.drop(rel, moved)
		return place{}, moved, false
	}
	next, look = x.name(place{dir, x.dirs[dir]}, c.name, isDir, nil)
	return next, false, look
}

// drop forgets a name, and what is below one that was moved away; a directory that was
// deleted was empty.
func (x *index) drop(rel string, below bool) {
	x.dropOne(rel)
	if !below {
		return
	}
	for name := range x.names {
		if strings.HasPrefix(name, rel+"/") {
			x.dropOne(name)
		}
	}
	for dir := range x.dirs {
		if strings.HasPrefix(dir, rel+"/") {
			x.dropOne(dir)
		}
	}
}

func (x *index) dropOne(rel string) {
	if _, ok := x.names[rel]; ok {
		delete(x.names, rel)
		x.version++
	}
	if _, ok := x.dirs[rel]; !ok {
		return
	}
	delete(x.dirs, rel)
	if wd, ok := x.byDir[rel]; ok {
		delete(x.byDir, rel)
		if x.wds[wd] == rel {
			unix.InotifyRmWatch(x.watch, uint32(wd))
			delete(x.wds, wd)
		}
	}
}
