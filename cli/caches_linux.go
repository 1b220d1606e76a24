package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox/reach"
)

// cache is what one package manager keeps, and the variables that tell it where.
type cache struct {
	own   string            // the variable that says where it is
	at    string            // where it is otherwise, below the home
	parts []string          // of it, what is shown: beside it can be tokens; none: all of it
	env   map[string]string // besides own, where the cache is there
}

var caches = []cache{
	{own: "GOMODCACHE", at: "go/pkg/mod", env: map[string]string{"GOFLAGS": "-modcacherw"}},
	{own: "npm_config_cache", at: ".npm", parts: []string{"_cacache"}},
	{own: "CARGO_HOME", at: ".cargo", parts: []string{"registry", "git"}},
}

// built are variables for directories of the build cache. Pip's is one: it uses none that
// it cannot write.
var built = map[string]string{"GOCACHE": "go", "PIP_CACHE_DIR": "pip"}

// fetched are those for what package managers fetch, where they have a network: they write
// where they look.
var fetched = map[string]string{"GOMODCACHE": "gomod", "npm_config_cache": "npm", "CARGO_HOME": "cargo"}

// addCaches lets a command read the package caches that there are, and gives it a build
// cache that it shares with other commands in the same directory only. With a network it
// fetches into that: of the caches only Go's is of use then, which go takes for a proxy before
// those that were chosen.
func addCaches(c *writ.Confinement, env map[string]string, dir string, online bool) (own []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil // then there are none
	}
	for _, k := range caches {
		at := os.Getenv(k.own)
		if at == "" {
			at = filepath.Join(home, filepath.FromSlash(k.at))
		}
		real, shown := k.shown(at)
		if len(shown) == 0 || real == home {
			continue
		}
		if anybodys(at, home) {
			fmt.Fprintf(os.Stderr, "writ run: %s leads to %s by a symlink, which a command may have made; it is not shown. --read %[2]s --env %[3]s=%[2]s shows it\n", Visible(at), Visible(real), k.own)
			continue
		}
		proxies := os.Getenv("GOPROXY")
		if online && (k.own != "GOMODCACHE" || proxies == "" || strings.Contains(proxies, "@")) { // which is a password's place
			continue
		}
		c.Read = append(c.Read, shown...)
		env[k.own] = real
		maps.Copy(env, k.env)
		if online {
			env["GOPROXY"] = "file://" + real + "/cache/download|" + proxies
		}
	}
	at := maps.Clone(built)
	if online {
		maps.Copy(at, fetched)
	}
	build, err := buildCache(c, dir)
	if err != nil || build == "" {
		return nil, err
	}
	c.Write = append(c.Write, build)
	for name, sub := range at {
		env[name] = filepath.Join(build, sub)
	}
	return []string{build}, nil
}

// anybodys reports whether a path goes by a symlink that is not the system's, other than to
// the home that it is in.
func anybodys(path, home string) bool {
	abs, err := filepath.Abs(path)
	way := config.Trail(abs)
	if err != nil || way == nil {
		return true
	}
	return slices.ContainsFunc(way[:len(way)-1], func(link string) bool {
		var is syscall.Stat_t
		return !reach.Within(home, link) && (syscall.Lstat(link, &is) != nil || is.Uid != 0)
	})
}

// shown is where a cache really is, and what of it there is to be read.
func (k cache) shown(at string) (real string, dirs []string) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", nil
	}
	parts := k.parts
	if parts == nil {
		parts = []string{"."}
	}
	for _, part := range parts {
		dir := filepath.Join(real, part)
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return real, dirs
}

// buildCache is a directory's own, made where it is not there. It belongs to whom the
// command runs as: the owner of the directory. A command that can change what build caches
// lie in has none, and does not see those of others: what it put there, later commands
// would take for theirs.
func buildCache(c *writ.Confinement, dir string) (string, error) {
	own, err := ownCache()
	if err != nil {
		return "", err
	}
	if own = wouldBe(own); reach.InAny(own, c.Write) {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir))
	all := filepath.Join(own, "build")
	at := filepath.Join(all, hex.EncodeToString(sum[:nameBytes]))
	var runs syscall.Stat_t
	if err := syscall.Stat(dir, &runs); err != nil {
		return "", err
	}
	me := uint32(os.Geteuid())
	for _, d := range []string{own, all} {
		if err := ownDirectory(d, me); err != nil {
			return "", err
		}
	}
	var was syscall.Stat_t
	if me == 0 && syscall.Lstat(at, &was) == nil && was.Uid != runs.Uid && was.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		if err := removeIn(all, filepath.Base(at)); err != nil { // it is of who had the directory before
			return "", err
		}
	}
	if err := ownDirectory(at, me, runs.Uid); err != nil {
		return "", err
	}
	if me == 0 {
		if err := os.Lchown(at, int(runs.Uid), int(runs.Gid)); err != nil {
			return "", err
		}
	}
	now := time.Now() // which says when it was used last
	return at, os.Chtimes(at, now, now)
}

// ownCache is where build caches lie.
func ownCache() (string, error) {
	base, err := os.UserCacheDir()
	return filepath.Join(base, "writ"), err
}

// removeIn removes what has a name in a directory, and nothing elsewhere.
func removeIn(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(name)
}

// nameBytes of a digest are the name of a build cache.
const nameBytes = 8

// ownDirectory makes a directory, or finds that it is one, no symlink, and belongs to one of
// some users. When it is made, those beside it that nobody uses are removed.
func ownDirectory(at string, users ...uint32) error {
	made := os.Mkdir(at, 0o700)
	if made == nil {
		dropUnused(filepath.Dir(at))
		return nil
	}
	var is syscall.Stat_t
	if err := syscall.Lstat(at, &is); err != nil {
		return made
	}
	if is.Mode&syscall.S_IFMT != syscall.S_IFDIR || !slices.Contains(users, is.Uid) {
		return fmt.Errorf("%s is not a directory of yours; build caches are to lie there: remove it, or use --no-caches", at)
	}
	return nil
}

// unused is how long a build cache is kept that nobody uses.
const unused = 30 * 24 * time.Hour

// dropUnused removes build caches of directories in which nothing was run for long; when
// another one is made, so that one that is used is not kept waiting. What cannot be removed
// stays.
func dropUnused(all string) {
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		if name, err := hex.DecodeString(e.Name()); err != nil || len(name) != nameBytes {
			continue
		}
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > unused {
			removeIn(all, e.Name())
		}
	}
}

// gitIdentity is a configuration for git with the name and the address of the one at
// hand, and nothing else of theirs: other keys can run programs.
func gitIdentity() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	var name, email string
	for _, path := range []string{filepath.Join(home, ".config/git/config"), filepath.Join(home, ".gitconfig")} {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // a command that was run at home may have made it
		}
		text, err := readSome(path)
		if err != nil {
			continue
		}
		in := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				in = strings.EqualFold(strings.ReplaceAll(line, " ", ""), "[user]")
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !in || !ok {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "name":
				name = plainValue(value)
			case "email":
				email = plainValue(value)
			}
		}
	}
	if name == "" && email == "" {
		return ""
	}
	return "[user]\n\tname = \"" + name + "\"\n\temail = \"" + email + "\"\n"
}

// plainValue is a value without what could end it and begin something else.
func plainValue(v string) string {
	v = strings.Trim(strings.TrimSpace(v), `"`)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			return -1
		}
		return r
	}, v)
}
