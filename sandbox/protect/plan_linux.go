package protect

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ/policy"
	"golang.org/x/sys/unix"
)

// directories are the protected names that are directories by nature, so that what is
// looked for in them is absent and not an error; and .gitattributes, where git warns about
// anything else.
var directories = []string{".claude", ".codex", ".gemini", ".copilot", ".vscode", ".idea", ".gitattributes", "hooks", "info", "modules", "worktrees"}

// inRepository are the names that programs look for at the top of a repository. The other
// protected names, start-up files of shells, count in a home directory only.
var inRepository = []string{".gitmodules", ".gitattributes", ".mcp.json", ".envrc", ".claude", ".codex", ".gemini", ".copilot", ".vscode", ".idea"}

// unplaced are obeyed by git but get no placeholder: an empty commondir makes git fail, and
// gitdir means something only in a worktree's directory. Both are found after the run.
var unplaced = []string{"commondir", "gitdir"}

// A candidate is a name to be kept unless it is open.
type candidate struct {
	rel     string
	mount   Mount
	class   policy.Class
	missing bool // it takes a placeholder
}

// wanted is what the names of an index come to.
type wanted struct {
	version uint64
	all     []candidate // by path
	links   bool        // where symlinks lead can change without notice
	unseen  []string    // directories that nobody looks into
}

// A plan is what that comes to for one answer to what is open. Covers share it, and tell by
// it what mounts were made for, so it is never changed.
type plan struct {
	lasts        bool // it holds until the index changes
	mounts       []Mount
	placeholders []Placeholder
}

// maxPlans bounds what is remembered for different answers to what is open.
const maxPlans = 16

// planFor derives the mounts, or gives those of an earlier time when nothing has changed.
func (x *index) planFor(open func(string) bool) *plan {
	if x.wanted == nil || x.wanted.version != x.version || len(x.unseen) > 0 { // of which nothing is heard
		x.wanted, x.plans = x.candidates(), nil
	}
	letters := make([]byte, len(x.wanted.all))
	for i, k := range x.wanted.all {
		letters[i] = 'n'
		if open(k.mount.Path) {
			letters[i] = 'y'
		}
	}
	if p := x.plans[string(letters)]; p != nil {
		return p
	}
	b := builder{x: x, at: map[string]Mount{}, missing: map[string]bool{}}
	for i, k := range x.wanted.all {
		if letters[i] == 'n' {
			b.add(k)
		}
	}
	p := b.finish()
	// Where symlinks lead can change without notice.
	p.lasts = !x.wanted.links && x.blind == "" && len(x.unseen) == 0
	if p.lasts {
		if x.plans == nil || len(x.plans) >= maxPlans {
			x.plans = map[string]*plan{}
		}
		x.plans[string(letters)] = p
	}
	return p
}

func (x *index) candidates() *wanted {
	w := &wanted{version: x.version}
	exists := func(rel string) bool { _, ok := x.names[rel]; return ok }
	missing := func(dir string, names []string) {
		for _, name := range names {
			rel := path.Join(dir, name)
			if !exists(rel) && !slices.Contains(unplaced, name) {
				m := Mount{Path: path.Join(x.root, rel), How: ReadOnly, Dir: slices.Contains(directories, name)}
				w.all = append(w.all, candidate{rel: rel, mount: m, class: policy.Config, missing: true})
			}
		}
	}
	missing("", policy.ConfigNames())
	for rel := range x.bare {
		missing(rel, policy.GitNames())
		if rel != "" {
			w.all = append(w.all, candidate{rel: rel, mount: Mount{Path: path.Join(x.root, rel), How: Pin, Dir: true}, class: policy.Repository})
		}
	}
	for rel, e := range x.names {
		m := Mount{Path: path.Join(x.root, rel), How: ReadOnly, Dir: e.kind == unix.S_IFDIR, Link: e.kind == unix.S_IFLNK}
		switch {
		case e.placed: // whoever needs it last removes it
			w.all = append(w.all, candidate{rel: rel, mount: m, class: e.class, missing: true})
			continue
		case m.Link:
			w.links = true
		case e.class == policy.SecretName:
			m.How = Masked
		case e.class == policy.Repository && m.Dir:
			m.How = Pin
			if !x.unseen[rel] {
				missing(rel, policy.GitNames())
			}
			if parent(rel) != "" {
				missing(parent(rel), inRepository)
			}
		}
		w.all = append(w.all, candidate{rel: rel, mount: m, class: e.class})
	}
	for rel := range x.around() { // what is not looked at stays as it is
		if is, err := x.stat(rel); err == nil && is.is(unix.S_IFDIR) {
			w.unseen = append(w.unseen, rel)
			w.all = append(w.all, candidate{rel: rel, mount: Mount{Path: path.Join(x.root, rel), How: ReadOnly, Dir: true}})
		}
	}
	// A repository that another one's hooks are in may be both: the strictest holds.
	slices.SortFunc(w.all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rel, b.rel), cmp.Compare(b.mount.How, a.mount.How))
	})
	w.all = slices.CompactFunc(w.all, func(a, b candidate) bool { return a.rel == b.rel })
	return w
}

// A builder collects mounts by path below the root.
type builder struct {
	x       *index
	at      map[string]Mount
	missing map[string]bool
}

func (b *builder) add(k candidate) {
	b.put(k.rel, k.mount)
	if k.missing {
		b.missing[k.rel] = true
	}
	if k.mount.Link {
		b.follow(k)
	}
}

// put adds a mount, and pins what is above it. The strictest for a path holds.
func (b *builder) put(rel string, m Mount) {
	if b.at[rel].How < m.How {
		b.at[rel] = m
	}
	for dir := parent(rel); dir != ""; dir = parent(dir) {
		if _, ok := b.at[dir]; !ok {
			b.at[dir] = Mount{Path: path.Join(b.x.root, dir), How: Pin, Dir: true}
		}
	}
}

// finish orders the mounts. What lies in something read-only needs no more, and a pin there
// would open it again; only secrets are masked. In what is masked there is nothing.
func (b *builder) finish() *plan {
	p := &plan{}
	rels := make([]string, 0, len(b.at))
	for rel := range b.at {
		rels = append(rels, rel)
	}
	slices.Sort(rels)
	for _, rel := range rels {
		m := b.at[rel]
		if around := b.around(rel); around == Masked || around == ReadOnly && m.How != Masked {
			continue
		}
		p.mounts = append(p.mounts, m)
		if b.missing[rel] {
			p.placeholders = append(p.placeholders, Placeholder{Path: m.Path, Dir: m.Dir, file: b.x.readByGit(rel)})
		}
	}
	return p
}

// readByGit reports whether git reads a name that does not exist as a file of settings: a
// .git/config always, a .git/config.worktree when the config says so.
func (x *index) readByGit(rel string) bool {
	if at := x.names[parent(rel)]; at.class != policy.Repository && !x.bare[parent(rel)] {
		return false
	}
	name := path.Base(rel)
	return name == "config" || name == "config.worktree" && x.names[path.Join(parent(rel), "config")].perTree
}

// around is the strictest way in which something above a path is mounted.
func (b *builder) around(rel string) How {
	var most How
	for dir := parent(rel); dir != ""; dir = parent(dir) {
		most = max(most, b.at[dir].How)
	}
	return most
}

// mostUnseen is how many directories are kept for not being looked at.
const mostUnseen = 1000

// around are the directories that were not looked at; in place of what cannot be named, and of
// too many, what they are in.
func (x *index) around() map[string]bool {
	out := map[string]bool{}
	for rel := range x.unseen {
		for len(path.Join(x.root, rel)) >= unix.PathMax-256 {
			rel = parent(rel)
		}
		out[rel] = true
	}
	for before := 0; len(out) > mostUnseen && len(out) != before; {
		before = len(out)
		up := map[string]bool{}
		for rel := range out {
			if parent(rel) != "" {
				rel = parent(rel)
			}
			up[rel] = true
		}
		out = up
	}
	return out
}

// notSeen says which directories the index does not know, since there are too many.
func (x *index) notSeen() string {
	all := slices.Sorted(maps.Keys(x.unseen))
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d directories, such as %s, and at times what they are in, cannot be changed: they are too deep, or there are more than %d, to be looked at; make a smaller directory the workspace", len(all), some(all), x.finder.opts.MaxDirs)
}

// some are the first of many directories, as they stand in a line.
func some(all []string) string {
	few := slices.Clone(all[:min(3, len(all))])
	for i, rel := range few {
		if len(rel) > 80 {
			rel = strings.ToValidUTF8(rel[:80], "") + "…"
		}
		few[i] = shown(rel)
	}
	return strings.Join(few, ", ")
}
