package protect

import (
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// An id tells a file from one that replaces it, also when the number is used again.
type id struct {
	dev, ino uint64
	born     unix.StatxTimestamp
}

// A file is what there is to know about a name without opening it.
type file struct {
	id
	mode  uint16
	uid   uint32
	links uint32
	size  uint64

	changed, modified int64 // nanoseconds
}

// place is a file as locks name it.
func (f id) place() [2]uint64 { return [2]uint64{f.dev, f.ino} }

func (f file) is(kind uint16) bool { return f.mode&unix.S_IFMT == kind }

// stat looks at a name in a directory, never through a symlink.
func stat(dir int, name string) (file, error) { return statx(dir, name, unix.AT_SYMLINK_NOFOLLOW) }

// statFD looks at what is open.
func statFD(fd int) (file, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

func statx(dir int, name string, flags int) (file, error) {
	var st unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return file{}, err
	}
	return file{
		id:   id{dev: uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), ino: st.Ino, born: st.Btime},
		mode: st.Mode, uid: st.Uid, links: st.Nlink, size: st.Size,
		changed: nanoseconds(st.Ctime), modified: nanoseconds(st.Mtime),
	}, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// openDir opens a directory below another without passing any symlink: a box that runs
// meanwhile could put one there to lead us elsewhere.
func openDir(top int, rel string, flags int) (int, error) {
	if rel == "" {
		rel = "."
	}
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(top, rel, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// in calls do with the directory that holds a name, and the name.
func in(top int, rel string, do func(dir int, name string) error) error {
	if parent(rel) == "" {
		return do(top, rel)
	}
	fd, err := openDir(top, parent(rel), unix.O_PATH)
	if err == unix.EACCES {
		grant(top, parent(rel))
		fd, err = openDir(top, parent(rel), unix.O_PATH)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd, path.Base(rel))
}

// readable calls do with a directory that is open for reading, and which do closes. A box
// can take the permission to read from a directory of its user, and programs that know a
// name in it get there all the same; so we give it to ourselves for a moment.
func readable(top int, rel string, do func(fd int) error) error {
	fd, err := openDir(top, rel, unix.O_RDONLY)
	if err == nil {
		if is, err := statFD(fd); err == nil && is.mode&0o100 == 0 {
			grant(top, rel)
		}
	}
	if err == unix.EACCES {
		grant(top, rel)
		return permitted(top, rel, 0o400, func(int) error {
			fd, err := openDir(top, rel, unix.O_RDONLY)
			if err != nil {
				return err
			}
			return do(fd)
		})
	}
	if err != nil {
		return err
	}
	return do(fd)
}

// permitted calls do while the owner of a directory, when that is us, has the permissions
// of bits on it.
func permitted(top int, rel string, bits uint32, do func(dir int) error) error {
	fd, err := openDir(top, rel, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	f, err := statFD(fd)
	if err != nil {
		return err
	}
	path, mode := "/proc/self/fd/"+strconv.Itoa(fd), uint32(f.mode)&0o7777
	if int(f.uid) == os.Geteuid() && mode&bits != bits {
		if err := unix.Chmod(path, mode|bits); err != nil {
			return err
		}
		defer unix.Chmod(path, mode)
	}
	return do(fd)
}

// grant gives a user back the permission to search its own directories, down to one, for good:
// a box of that user can take it, and give it back when nobody looks.
func grant(top int, rel string) {
	if os.Geteuid() == 0 {
		return // nothing is kept from us
	}
	give := func(fd int) {
		if is, err := statFD(fd); err == nil && int(is.uid) == os.Geteuid() && is.mode&0o100 == 0 {
			unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), uint32(is.mode)&0o7777|0o100) // where that fails, what follows says so
		}
	}
	give(top)
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		if fd, err := openDir(top, rel[:i], unix.O_PATH); err == nil {
			give(fd)
			unix.Close(fd)
		}
	}
}

// parent is the directory of a relative path; that of the top is empty.
func parent(rel string) string {
	if dir := path.Dir(rel); dir != "." {
		return dir
	}
	return ""
}

// list reads a directory that was opened for reading, at most so many entries, and closes
// it.
func list(fd int, most int) ([]os.DirEntry, error) {
	f := os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd)) // some filesystems make it look again, by name
	defer f.Close()
	entries, err := f.ReadDir(most)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}
