package protect

import (
	"path"
	"strings"

	"github.com/writ-run/writ/policy"
	"golang.org/x/sys/unix"
)

const maxLinks = 40

// follow keeps what a protected name that is a symlink leads to: every symlink on the way,
// since whoever can replace one decides what is read by the name, and what is at the end,
// or a placeholder where the way ends in nothing. What leads out of the root is not the
// box's to write, and its view decides whether it can be read.
func (b *builder) follow(k candidate) {
	todo, at := strings.Split(k.rel, "/"), ""
	for steps := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return
			}
			at = parent(at)
			continue
		}
		rel := path.Join(at, name)
		f, target, err := b.x.lookAt(rel)
		switch {
		case err == unix.ENOENT:
			b.put(rel, Mount{Path: path.Join(b.x.root, rel), How: ReadOnly})
			b.missing[rel] = true
			return
		case err != nil:
			return
		case f.is(unix.S_IFLNK):
			if steps++; steps > maxLinks {
				return
			}
			b.put(rel, Mount{Path: path.Join(b.x.root, rel), How: ReadOnly, Link: true})
			if path.IsAbs(target) {
				rest, ok := strings.CutPrefix(path.Clean(target), b.x.root+"/")
				if !ok {
					return
				}
				at, target = "", rest
			}
			todo = append(strings.Split(target, "/"), todo...)
		default:
			at = rel
			if len(todo) == 0 {
				b.end(k, rel, f)
			}
		}
	}
}

// end keeps what a protected symlink leads to.
func (b *builder) end(k candidate, rel string, f file) {
	m := Mount{Path: path.Join(b.x.root, rel), How: ReadOnly, Dir: f.is(unix.S_IFDIR)}
	if k.class == policy.SecretName {
		m.How = Masked
	}
	b.put(rel, m)
}

// lookAt looks at a name below the root and, when it is a symlink, where it points.
func (x *index) lookAt(rel string) (f file, target string, err error) {
	err = in(x.top, rel, func(dir int, name string) error {
		if f, err = stat(dir, name); err != nil || !f.is(unix.S_IFLNK) {
			return err
		}
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		target = string(buf[:max(n, 0)])
		return err
	})
	return f, target, err
}
