package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A root is a view, being made of what all its boxes share: a skeleton, and on it what its
// writ names.
type root struct {
	*script
	skeleton *skeleton
	plan     *reach.Plan
	fresh    []string // directories of this view's own, in which mount points are made
	shown    []string // host paths that were put in
	pinned   []string // directories around what is hidden that are mounts, too
	covered  []string // temporary directories within them, which are the box's own
}

// showAll puts in what the plan names. What cannot be shown whole is an error.
func (r *root) showAll(extra map[string]string) error {
	type item struct {
		path, from string
		attrs      uint64
	}
	var items []item
	for _, p := range r.plan.Write {
		attrs := uint64(plain)
		if r.plan.Listed {
			attrs |= noExec
		}
		items = append(items, item{p, p, attrs})
	}
	for _, p := range r.plan.Read {
		if _, err := os.Lstat(p); err != nil {
			continue // nothing is there to be read
		}
		attrs := uint64(readOnly)
		if r.plan.Listed && !r.system(p) {
			attrs |= noExec
		}
		items = append(items, item{p, p, attrs})
	}
	for at, from := range extra {
		items = append(items, item{at, from, readOnly})
	}
	for _, p := range r.plan.Programs {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			items = append(items, item{real, real, readOnly})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return len(a.path) - len(b.path) }) // what is around comes first
	for _, it := range items {
		if slices.Contains(r.shown, it.path) {
			continue
		}
		r.doing("show " + it.path)
		if reach.InAny(it.path, r.skeleton.bound) && it.attrs&unix.MOUNT_ATTR_RDONLY != 0 && it.attrs&noExec == 0 {
			continue // a part of the system
		}
		if err := r.place(it.path, it.from); err != nil {
			return err
		}
		r.bind(it.from, newRoot+inside(it.path), it.attrs)
		r.shown = append(r.shown, it.path)
	}
	for _, dir := range reach.PrivateDirs[1:] { // which stay a box's own where more was shown around them
		if real, err := filepath.EvalSymlinks(dir); err == nil && real == dir && reach.InAny(dir, r.shown) {
			r.covered = append(r.covered, dir)
		}
	}
	return errors.Join(r.links(), r.hide())
}

// system reports whether a path holds, or is in, what programs are made of.
func (r *root) system(p string) bool {
	return slices.ContainsFunc(reach.RealAll(reach.SystemDirs), func(s string) bool { return reach.Within(p, s) || reach.Within(s, p) })
}

// inside is where the box has a host path: all its temporary directories are one.
func inside(path string) string {
	for _, dir := range reach.PrivateDirs[1:] {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			return reach.PrivateTmp + "/" + rest
		}
	}
	return path
}

// place makes a mount point for a path, where there is none. Only in directories of the
// box's own can one be made.
func (r *root) place(path, from string) error {
	at := inside(path)
	if reach.InAny(at, r.skeleton.bound) || slices.ContainsFunc(r.shown, func(s string) bool { return reach.Within(at, inside(s)) }) {
		return nil // shown with what is around it
	}
	if slices.Contains(r.skeleton.empty, at) || at == "/etc" || at == "/usr" {
		return nil // it is mounted over what is there
	}
	base := r.room(at)
	if base == "" {
		return fmt.Errorf("%s: there is no place for it among what every box has; name a directory above it", path)
	}
	r.emptied(base)
	info, err := os.Lstat(from)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return errors.Join(fmt.Errorf("%s must exist and be no symlink", from), err)
	}
	r.mkdirs(newRoot, filepath.Dir(at))
	if info.IsDir() {
		r.mkdir(newRoot+at, 0o755)
	} else {
		r.file(newRoot+at, nil)
	}
	return nil
}

// emptied gives the view a directory of its own in place of an empty one of the skeleton.
func (r *root) emptied(dir string) {
	if slices.Contains(r.fresh, dir) {
		return
	}
	r.tmpfs(newRoot+dir, 0, tiny)
	r.fresh = append(r.fresh, dir)
	if dir == "/var" {
		r.symlink("../tmp", newRoot+"/var/tmp")
	}
}

// room is the directory that a box can have for itself, nearest to a path below it.
func (r *root) room(at string) string {
	if reach.Within(at, reach.PrivateTmp) {
		return reach.PrivateTmp
	}
	for dir := filepath.Dir(at); dir != "/"; dir = filepath.Dir(dir) {
		if slices.Contains(r.skeleton.empty, dir) {
			return dir
		}
	}
	return ""
}

// links puts in the symlinks that the names of programs are, where they are not shown.
func (r *root) links() error {
	for _, p := range r.plan.Programs {
		for range 8 {
			dir, err := filepath.EvalSymlinks(filepath.Dir(p))
			if err != nil {
				break
			}
			p = filepath.Join(dir, filepath.Base(p))
			to, err := os.Readlink(p)
			if err != nil {
				break
			}
			if !r.visible(p) {
				r.doing("show " + p)
				if r.room(p) == "" {
					return fmt.Errorf("%s: there is no place for it among what every box has; list %s instead", p, to)
				}
				r.emptied(r.room(p))
				r.symlink(to, newRoot+p)
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			p = to
		}
	}
	return nil
}

// hide covers what is out of reach whatever else was shown.
func (r *root) hide() error {
	var hidden []string
	for _, path := range slices.Sorted(slices.Values(r.plan.Hide)) { // what is around comes first
		if slices.Contains(reach.PrivateDirs, path) || !r.visible(path) || reach.InAny(path, hidden) {
			continue
		}
		r.doing("hide " + path)
		r.pinAbove(path)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
			if reach.InAny(path, r.plan.Write) {
				return fmt.Errorf("%s: it does not exist and the box could create it; create it, or hide its directory", path)
			}
		case errors.Is(err, os.ErrPermission): // this user cannot get there, so neither can the box
		case err != nil:
			return err
		case info.IsDir():
			hidden = append(hidden, path)
			r.tmpfs(newRoot+inside(path), unix.MS_RDONLY|unix.MS_NOEXEC, "mode=755,size=4k")
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("%s is a symlink now; hide what it leads to", path)
		default:
			r.bind("/dev/null", newRoot+inside(path), readOnly|noExec)
		}
	}
	return nil
}

// pinAbove makes mounts of the directories between a path and what the box may write around
// it: one of them that was renamed would take along what is hidden, and leave its place to
// the box.
func (r *root) pinAbove(path string) {
	var above []string
	for dir := filepath.Dir(path); dir != "/" && reach.InAny(dir, r.plan.Write); dir = filepath.Dir(dir) {
		_, err := os.Lstat(dir)
		if err == nil && !slices.Contains(r.plan.Write, dir) && !slices.Contains(r.pinned, dir) { // which are mounts already
			above = append(above, dir)
		}
	}
	for _, dir := range slices.Backward(above) {
		at := newRoot + inside(dir)
		r.onto(at, at, unix.O_PATH|unix.O_CLOEXEC, plain)
		r.pinned = append(r.pinned, dir)
	}
}

func (r *root) visible(path string) bool {
	return reach.InAny(path, r.shown) || reach.InAny(path, r.skeleton.bound)
}

// finish makes the view unchangeable and enters it. Somebody who sees no /proc may not mount
// one later, so there is one.
func (r *root) finish() {
	r.doing("make /proc")
	for _, dir := range r.fresh {
		r.seal(newRoot + dir)
	}
	r.proc(newRoot + "/proc")
	r.doing("enter the root")
	r.enter()
}

// settle gives a box that is used once, in the root that it has entered, what it has for itself.
func (s *script) settle(r *root) {
	s.renew(r)
	s.endow()
}

// endow gives a box what all commands in it have.
func (s *script) endow() {
	s.doing(stepLimits)
	s.watching("", 2) // by its own /proc: in the host's, each box would add a file of the same name to look through
	s.terminals()
}

// terminals are pseudo terminals of its own, which end with what has them open.
func (s *script) terminals() {
	s.doing("make /dev/pts")
	s.mount("devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600,max=256")
}

// private makes the temporary directory, with the home in it.
func (s *script) private(p *reach.Plan) {
	s.doing("make /tmp")
	flags := uintptr(0)
	if p.Listed {
		flags = unix.MS_NOEXEC
	}
	s.tmpfs(reach.PrivateTmp, flags, fmt.Sprintf("mode=1777,uid=%d,gid=%d,size=%d,nr_inodes=%d", p.UID, p.GID, p.Tmp, max(p.Tmp>>10, 1024)))
	const home = reach.PrivateHome
	s.mkdir(home, 0o700)
	if p.Root {
		s.call(unix.SYS_FCHOWNAT, here, s.text(home), num(p.UID), num(p.GID), num(0))
	}
	for name, text := range p.Home {
		s.file(home+"/"+name, []byte(text))
		if p.Root {
			s.call(unix.SYS_FCHOWNAT, here, s.text(home+"/"+name), num(p.UID), num(p.GID), num(unix.AT_SYMLINK_NOFOLLOW))
		}
	}
}

// renew gives a box, or one run in a mount namespace of its own, a process table's view and
// temporary directories that are fresh, within a root that was entered before. What the
// writ shows in there is taken along.
func (s *script) renew(r *root) {
	s.doing("renew /tmp")
	type kept struct {
		at   string
		tree arg
		dir  bool
	}
	var all []kept
	for _, path := range r.shown {
		at := inside(path)
		if !strings.HasPrefix(at, reach.PrivateTmp+"/") || slices.ContainsFunc(all, func(k kept) bool { return reach.Within(at, k.at) }) {
			continue
		}
		all = append(all, kept{at, s.copyOf(at), isDir(path)})
	}
	s.private(r.plan)
	for _, k := range all {
		s.mkdirs("", filepath.Dir(k.at))
		if k.dir {
			s.mkdir(k.at, 0o755)
		} else {
			s.file(k.at, nil)
		}
		s.attach(k.tree, k.at)
	}
	for _, dir := range r.covered {
		s.attach(s.copyOf(reach.PrivateTmp), dir)
	}
	s.doing("renew /proc")
	s.proc("/proc")
}
