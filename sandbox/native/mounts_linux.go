package native

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Where the factory and its boxes have the host, and the root of a box that is being
// made. A launcher writes who is who below oldRoot, too.
const (
	oldRoot = "/old"
	newRoot = "/new"
)

const (
	plain    = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = plain | unix.MOUNT_ATTR_RDONLY
	noExec   = unix.MOUNT_ATTR_NOEXEC
	attrSize = 32
)

func (s *script) mount(kind, at string, flags uintptr, data string) {
	s.call(unix.SYS_MOUNT, s.text(kind), s.text(at), s.text(kind), num(flags), s.text(data))
}

// tmpfs mounts an empty directory; mode, size and owner are in data.
func (s *script) tmpfs(at string, flags uintptr, data string) {
	s.mount("tmpfs", at, unix.MS_NOSUID|unix.MS_NODEV|flags, data)
}

func (s *script) mkdir(path string, mode uint32) {
	s.callMay(unix.EEXIST, unix.SYS_MKDIRAT, here, s.text(path), num(mode))
}

// mkdirs makes a directory below base and those above it.
func (s *script) mkdirs(base, path string) {
	at := base
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if part != "" {
			at += "/" + part
			s.mkdir(at, 0o755)
		}
	}
}

// file makes a file with some text in it.
func (s *script) file(path string, text []byte) {
	fd := s.call(unix.SYS_OPENAT, here, s.text(path), num(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW), num(0o644))
	if len(text) > 0 {
		s.call(unix.SYS_WRITE, fd, s.bytes(text), num(len(text)))
	}
	s.call(unix.SYS_CLOSE, fd)
}

// copied makes a file with what the host has at from, at most so many bytes of it.
func (s *script) copied(from, path string, most int) {
	how := s.bytes(words(unix.O_RDONLY|unix.O_CLOEXEC, 0, unix.RESOLVE_NO_SYMLINKS)) // struct open_how
	in := s.call(unix.SYS_OPENAT2, here, s.text(oldRoot+from), how, num(unix.SizeofOpenHow))
	out := s.call(unix.SYS_OPENAT, here, s.text(path), num(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW), num(0o644))
	s.call(unix.SYS_SENDFILE, out, in, num(0), num(most))
	s.call(unix.SYS_CLOSE, out)
	s.call(unix.SYS_CLOSE, in)
}

func (s *script) symlink(to, path string) {
	s.callMay(unix.EEXIST, unix.SYS_SYMLINKAT, s.text(to), here, s.text(path))
}

// bind shows what the host has at from, with all that is mounted below it, at at. The
// path was resolved before: a symlink on the way was put there since, to lead elsewhere.
func (s *script) bind(from, at string, attrs uint64) {
	how := s.bytes(words(unix.O_PATH|unix.O_CLOEXEC, 0, unix.RESOLVE_NO_SYMLINKS)) // struct open_how
	fd := s.call(unix.SYS_OPENAT2, here, s.text(oldRoot+from), how, num(unix.SizeofOpenHow))
	tree := s.call(unix.SYS_OPEN_TREE, fd, s.text(""), num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH))
	s.setattr(tree, attrs, unix.AT_RECURSIVE)
	s.attach(tree, at)
	s.call(unix.SYS_CLOSE, fd)
}

// copyOf is a copy of the mount at a path, with all that is mounted below it.
func (s *script) copyOf(path string) arg {
	return s.call(unix.SYS_OPEN_TREE, here, s.text(path), num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE))
}

// attach puts a copy somewhere.
func (s *script) attach(tree arg, at string) {
	s.call(unix.SYS_MOVE_MOUNT, tree, s.text(""), here, s.text(at), num(unix.MOVE_MOUNT_F_EMPTY_PATH))
	s.call(unix.SYS_CLOSE, tree)
}

// proc shows the processes of the process table that mounts it.
func (s *script) proc(at string) {
	s.mount("proc", at, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// setattr sets attributes of the mount that a descriptor stands for.
func (s *script) setattr(tree arg, attrs uint64, flags int) {
	attr := s.bytes(words(attrs, 0, 0, 0)) // struct mount_attr
	s.call(unix.SYS_MOUNT_SETATTR, tree, s.text(""), num(unix.AT_EMPTY_PATH|flags), attr, num(attrSize))
}

// seal makes the mount at a path, alone, read-only.
func (s *script) seal(at string) {
	attr := s.bytes(words(readOnly, 0, 0, 0))
	s.call(unix.SYS_MOUNT_SETATTR, here, s.text(at), num(0), attr, num(attrSize))
}

// enter makes the new root the root, and lets go of the host.
func (s *script) enter() {
	s.call(unix.SYS_CHDIR, s.text(newRoot))
	s.call(unix.SYS_PIVOT_ROOT, s.text("."), s.text("."))
	s.call(unix.SYS_UMOUNT2, s.text("."), num(unix.MNT_DETACH))
	s.call(unix.SYS_CHDIR, s.text("/"))
}
