package protect

import (
	"bytes"
	"context"
	"encoding/binary"
	"path"
	"strconv"
	"strings"

	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox/mounted"
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

// drain hears what has changed, and reports whether everything has to be looked at anew. What
// was taken from a name is forgotten, and then what is there now is looked at, once: so
// placeholders, which come and go, cost next to nothing, and two names that were exchanged
// are both looked at, whose last change is told as a loss.
func (x *index) drain(ctx context.Context, most int) (again bool, err error) {
	changes, ok := x.hear()
	if !ok {
		return true, nil
	}
	if len(changes) == 0 {
		return false, nil
	}
	var touched []change
	seen := make(map[change]bool, len(changes))
	moves := 0
	for _, c := range changes {
		if dir, ok := x.wds[c.wd]; ok {
			x.finder.doubt(path.Join(x.root, dir, c.name))
		}
		if c.mask&unix.IN_ISDIR != 0 && c.mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0 {
			mounted.Doubt() // with what is mounted in it
		}
		if x.lost(c) {
			if moves++; moves > maxMoves {
				return true, nil
			}
		}
		if key := c.key(); c.name != "" && !seen[key] {
			seen[key] = true
			touched = append(touched, key)
		}
	}
	var queue []place
	for _, c := range touched {
		queue = append(queue, x.found(c)...)
	}
	if err := x.scan(ctx, queue, most, nil); err != nil {
		x.names = nil // what was heard is lost, and half of it is nothing to rely on
		return false, err
	}
	return false, nil
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

// lost takes note of what a change took away, and reports whether it was a directory that
// was moved.
func (x *index) lost(c change) (moved bool) {
	dir, ok := x.wds[c.wd]
	if c.mask&unix.IN_IGNORED != 0 {
		delete(x.wds, c.wd)
	}
	if !ok || c.name == "" || c.mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) == 0 {
		return false
	}
	rel := path.Join(dir, c.name)
	_, known := x.dirs[rel]
	moved = known && c.mask&unix.IN_MOVED_FROM != 0
	x.drop(rel, moved)
	return moved
}

// found takes note of what is by a name now, and lists directories to look into: it, or the
// one that holds it, where that may have become a repository by it.
func (x *index) found(c change) (look []place) {
	dir, ok := x.wds[c.wd]
	if !ok {
		return nil
	}
	at := place{dir, x.dirs[dir]}
	if policy.PartOfRepository(c.name) && at.in == ordinary {
		look = append(look, place{dir, ordinary})
	}
	isDir := false
	err := in(x.top, path.Join(dir, c.name), func(fd int, name string) error {
		is, err := stat(fd, name)
		isDir = is.is(unix.S_IFDIR)
		return err
	})
	if err != nil {
		return look // nothing is
	}
	if next, ok := x.name(at, c.name, isDir, nil); ok {
		look = append(look, next)
	}
	return look
}

// drop forgets a name, and what is below one that was moved away; a directory that was
// deleted was empty.
func (x *index) drop(rel string, below bool) {
	x.dropOne(rel)
	if below {
		x.dropBelow(rel)
	}
}

func (x *index) dropBelow(rel string) {
	if rel != "" {
		rel += "/"
	}
	for name := range x.names {
		if strings.HasPrefix(name, rel) {
			x.dropOne(name)
		}
	}
	for dir := range x.dirs {
		if dir != "" && strings.HasPrefix(dir, rel) {
			x.dropOne(dir)
		}
	}
}

func (x *index) dropOne(rel string) {
	if _, ok := x.names[rel]; ok {
		delete(x.names, rel)
		x.version++
	}
	if x.bare[rel] {
		delete(x.bare, rel)
		x.version++
	}
	if _, ok := x.dirs[rel]; !ok {
		return
	}
	delete(x.dirs, rel)
	x.entries -= x.sizes[rel]
	delete(x.sizes, rel)
	if wd, ok := x.byDir[rel]; ok {
		delete(x.byDir, rel)
		if x.wds[wd] == rel {
			unix.InotifyRmWatch(x.watch, uint32(wd))
			delete(x.wds, wd)
		}
	}
}
