package protect

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/policy"
)

// workspace makes a directory: "a/" is a directory, "a=text" a file, "a>b" a symlink.
func workspace(t testing.TB, items ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, item := range items {
		put(t, root, item)
	}
	return root
}

func put(t testing.TB, root, item string) {
	t.Helper()
	name, target, isLink := strings.Cut(item, ">")
	var text string
	if !isLink {
		name, text, _ = strings.Cut(item, "=")
	}
	p := filepath.Join(root, name)
	err := os.MkdirAll(filepath.Dir(p), 0o755)
	switch {
	case err != nil:
	case isLink:
		err = os.Symlink(target, p)
	case strings.HasSuffix(name, "/"):
		err = os.MkdirAll(p, 0o755)
	default:
		err = os.WriteFile(p, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func finder(t testing.TB, o Options) *Finder {
	t.Helper()
	if o.State == "" {
		o.State = t.TempDir()
	}
	if o.Quarantine == "" {
		o.Quarantine = filepath.Join(o.State, "quarantine")
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func cover(t testing.TB, f *Finder, root string, open ...string) *Cover {
	t.Helper()
	c, err := f.Cover(t.Context(), root, func(p string) bool {
		rel, _ := filepath.Rel(root, p)
		return slices.Contains(open, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ended calls Done and gives what appeared by name, with what was moved where checked.
func ended(t testing.TB, c *Cover) []string {
	t.Helper()
	list, err := c.Done()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range list {
		rel, _ := filepath.Rel(c.Root, a.Path)
		out = append(out, rel)
		if _, err := os.Lstat(a.MovedTo); err != nil && a.MovedTo != "" {
			t.Errorf("%s should be at %s: %v", a.Path, a.MovedTo, err)
		}
		if _, err := os.Lstat(a.Path); err == nil && a.MovedTo != "" {
			t.Errorf("%s is still there", a.Path)
		}
	}
	return out
}

// lines gives the mounts of a Cover, one a line, without the placeholders of every root.
func lines(c *Cover) []string {
	var out []string
	for _, m := range c.Mounts {
		rel, _ := filepath.Rel(c.Root, m.Path)
		missing := slices.ContainsFunc(c.Placeholders, func(p Placeholder) bool { return p.Path == m.Path })
		if missing && slices.Contains(policy.ConfigNames(), rel) {
			continue
		}
		line := map[How]string{Pin: "pin ", ReadOnly: "ro ", Masked: "mask "}[m.How] + rel
		if m.Dir {
			line += "/"
		}
		if m.Link {
			line += "@"
		}
		if missing {
			line += " +"
		}
		out = append(out, line)
	}
	return out
}

func TestCover(t *testing.T) {
	inside := []string{".claude/", ".codex/", ".copilot/", ".envrc", ".gemini/", ".gitattributes/", ".gitmodules", ".idea/", ".mcp.json", ".vscode/"}
	for _, c := range []struct {
		name  string
		files []string
		open  []string
		want  []string
	}{
		{name: "a plain directory", files: []string{"main.go=x", "sub/y=z"}},
		{name: "a repository", files: []string{".git/HEAD=ref", ".git/config=", ".git/hooks/x=", ".git/objects/ab/", ".git/index=x"},
			want: []string{"pin .git/", "ro .git/config", "ro .git/config.worktree +", "ro .git/hooks/", "ro .git/info/ +", "ro .git/modules/ +", "ro .git/worktrees/ +"}},
		{name: "a repository further down", files: []string{"a/b/.git/config=", "a/b/.git/hooks/", "a/b/.git/info/", "a/b/.git/modules/", "a/b/.git/worktrees/", "a/b/.git/config.worktree="},
			want: slices.Sorted(slices.Values(append([]string{"pin a/", "pin a/b/", "pin a/b/.git/", "ro a/b/.git/config", "ro a/b/.git/config.worktree", "ro a/b/.git/hooks/", "ro a/b/.git/info/", "ro a/b/.git/modules/", "ro a/b/.git/worktrees/"},
				each(inside, "ro a/b/%s +")...)))},
		{name: "a worktree's file", files: []string{".git=gitdir: /elsewhere\n"}, want: []string{"ro .git"}},
		{name: "secrets at any depth", files: []string{".env=x", "a/b/.env.local=x", "a/.env.example=x", "c/id_rsa=x", "d/.aws/credentials=x", "tls/server.key=x"},
			want: []string{"mask .env", "pin a/", "pin a/b/", "mask a/b/.env.local", "pin c/", "mask c/id_rsa", "pin d/", "mask d/.aws/", "pin tls/", "mask tls/server.key"}},
		{name: "configuration with a secret in it", files: []string{".claude/settings.json=x", ".claude/deep/token.pem=x", ".claude/.vscode/x=y", "a/.vscode/tasks.json=x"},
			want: []string{"ro .claude/", "mask .claude/deep/token.pem", "pin a/", "ro a/.vscode/"}},
		{name: "names that look alike", files: []string{".GIT/config=", ".Envrc=x", ".git\u200c/hooks/x=y"}, open: []string{".GIT/config.worktree"},
			want: []string{"ro .Envrc", "pin .GIT/", "ro .GIT/config", "ro .GIT/hooks/ +", "ro .GIT/info/ +", "ro .GIT/modules/ +", "ro .GIT/worktrees/ +",
				"pin .git\u200c/", "ro .git\u200c/config +", "ro .git\u200c/config.worktree +", "ro .git\u200c/hooks/", "ro .git\u200c/info/ +", "ro .git\u200c/modules/ +", "ro .git\u200c/worktrees/ +"}},
		{name: "what the policy names is left alone", files: []string{"a/.env=x", "b/.vscode/x=y", "b/.vscode/.env=z", ".mcp.json=x"}, open: []string{"a/.env", "b/.vscode", ".mcp.json", ".envrc"},
			want: []string{"pin b/", "pin b/.vscode/", "mask b/.vscode/.env"}},
		{name: "packages are not looked at", files: []string{"node_modules/p/.git/config=", "node_modules/p/.env=x", "venv/cacert.pem=x", "src/.env=x"}, want: []string{"pin src/", "mask src/.env"}},
		{name: "a symlink, what it leads to and the way", files: []string{".envrc>conf/rc", "conf/rc=x", "s>conf", ".mcp.json>s/mcp", "conf/mcp=x"},
			want: []string{"ro .envrc@", "ro .mcp.json@", "pin conf/", "ro conf/mcp", "ro conf/rc", "ro s@"}},
		{name: "a symlink of a secret", files: []string{".env>deep/real", "deep/real=x", "b/.env>../../outside", "c/.env>/etc/passwd"},
			want: []string{"ro .env@", "pin b/", "ro b/.env@", "pin c/", "ro c/.env@", "pin deep/", "mask deep/real"}},
		{name: "a symlink to nothing, and around", files: []string{".envrc>x/y", "d/.mcp.json>d2", "d/d2>.mcp.json"},
			want: []string{"ro .envrc@", "pin d/", "ro d/.mcp.json@", "ro d/d2@", "ro x +"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := workspace(t, c.files...)
			got := cover(t, finder(t, Options{}), root, c.open...)
			defer got.Done()
			if diff := cmp.Diff(sorted(c.want), sorted(lines(got))); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
			for i, m := range got.Mounts {
				if slices.ContainsFunc(got.Mounts[:i], func(a Mount) bool { return strings.HasPrefix(a.Path, m.Path+"/") }) {
					t.Errorf("%s comes after what is in it", m.Path)
				}
			}
		})
	}
}

func each(names []string, format string) []string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf(format, n))
	}
	return out
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

// What a Cover keeps is what policy says of the path below the root.
func TestAgreesWithPolicy(t *testing.T) {
	for _, name := range []string{"main.go", "config", "CONFIG", "objects", ".envrc", ".EnvRC", ".git", ".git\u200c", "GIT~1", ".gitignore", ".env", ".env.local", ".env.example", "server.key", "id_rsa", "hooks"} {
		for _, inGit := range []bool{false, true} {
			rel := path.Join("a", name)
			if inGit {
				rel = path.Join("a/.git", name)
			}
			class := policy.ClassOf(name, inGit)
			if (policy.WriteProtected(rel) != "") != (class != policy.Unprotected) {
				t.Errorf("ClassOf(%q, %t) = %d, but WriteProtected(%q) = %q", name, inGit, class, rel, policy.WriteProtected(rel))
			}
			if (policy.Secret(rel) != "") != (class == policy.SecretName) {
				t.Errorf("ClassOf(%q, %t) = %d, but Secret(%q) = %q", name, inGit, class, rel, policy.Secret(rel))
			}
		}
	}
}

// The index hears of changes between runs.
func TestWatched(t *testing.T) {
	root := workspace(t, "a/b/c/x=y", "old/.env=x", "far/.envrc=x")
	f := finder(t, Options{})
	first := cover(t, f, root)
	defer first.Done()
	if first.index.blind != "" {
		need.Lacking(t, "%s", first.index.blind)
	}
	walked := first.index.dirs
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() {}, []string{"pin far/", "ro far/.envrc", "pin old/", "mask old/.env"}},
		{func() { put(t, root, "a/b/c/.env=x") }, []string{"pin a/", "pin a/b/", "pin a/b/c/", "mask a/b/c/.env", "pin far/", "ro far/.envrc", "pin old/", "mask old/.env"}},
		{func() { os.Rename(root+"/a", root+"/z") }, []string{"pin far/", "ro far/.envrc", "pin old/", "mask old/.env", "pin z/", "pin z/b/", "pin z/b/c/", "mask z/b/c/.env"}},
		{func() { put(t, root, "z/b/c/n/m/.envrc=x") }, []string{"pin far/", "ro far/.envrc", "pin old/", "mask old/.env", "pin z/", "pin z/b/", "pin z/b/c/", "mask z/b/c/.env", "pin z/b/c/n/", "pin z/b/c/n/m/", "ro z/b/c/n/m/.envrc"}},
		{func() { os.RemoveAll(root + "/z"); os.Remove(root + "/old/.env") }, []string{"pin far/", "ro far/.envrc"}},
		{func() { os.Remove(root + "/far/.envrc"); put(t, root, "far/.envrc/d=x") }, []string{"pin far/", "ro far/.envrc/"}},
	} {
		step.do()
		c := cover(t, f, root)
		if diff := cmp.Diff(sorted(step.want), sorted(lines(c))); diff != "" {
			t.Errorf("mounts (-want +got):\n%s", diff)
		}
		if fmt.Sprintf("%p", c.index.dirs) != fmt.Sprintf("%p", walked) {
			t.Error("the whole workspace was looked at again")
		}
		if _, err := c.Done(); err != nil {
			t.Error(err)
		}
	}
}

// A queue that is too short to hear of every change is no reason to miss one.
func TestOverflow(t *testing.T) {
	root := workspace(t, "a/x=y")
	f := finder(t, Options{})
	ended(t, cover(t, f, root))
	for i := range 20_000 {
		p := filepath.Join(root, "a", fmt.Sprint(i))
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		os.Remove(p)
	}
	put(t, root, "a/.env=x")
	c := cover(t, f, root)
	defer c.Done()
	if diff := cmp.Diff([]string{"pin a/", "mask a/.env"}, lines(c)); diff != "" {
		t.Error(diff)
	}
}

func TestBounds(t *testing.T) {
	root := workspace(t, "a/.env=x", "b/c/d/.env=x", "b/e/x=y")
	f := finder(t, Options{MaxDirs: 3})
	c := cover(t, f, root)
	if diff := cmp.Diff([]string{"pin a/", "mask a/.env", "pin b/", "ro b/c/", "ro b/e/"}, lines(c)); diff != "" {
		t.Error(diff)
	}
	put(t, root, "b/e/.envrc=of the host's own") // the run cannot have made it
	found, err := c.Done()
	if want := "2 directories, such as b/c, b/e, and at times what they are in, cannot be changed: they are too deep, or there are more than 3, to be looked at; make a smaller directory the workspace"; err != nil || len(found) != 1 || found[0].Why != want {
		t.Errorf("%v %v", found, err)
	}
	few := finder(t, Options{MaxMounts: 10})
	put(t, root, "a/.env=x")
	put(t, root, "b/c/d/.env=x")
	_, err = few.Cover(t.Context(), root, nil)
	if want := fmt.Sprintf("protected names of %s: there are %d places to protect and at most 10 can be: make a smaller directory the workspace, or let the tool's policy name what it may change", root, len(policy.ConfigNames())+8); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := few.Cover(t.Context(), "relative", nil); err == nil || err.Error() != `protected names: "relative" is not an absolute clean path; resolve it first` {
		t.Error(err)
	}
	file := filepath.Join(root, "b/e/x")
	if c, err := few.Cover(t.Context(), file, nil); err != nil || len(c.Mounts) != 0 {
		t.Errorf("a file as root: %v", err)
	}
}

// Another directory at the path of a root that is known is looked at itself.
func TestReplacedRoot(t *testing.T) {
	top := workspace(t, "ws/.env=x", "other/b/.env=x")
	f := finder(t, Options{})
	ended(t, cover(t, f, top+"/ws"))
	os.Rename(top+"/ws", top+"/gone")
	os.Rename(top+"/other", top+"/ws")
	c := cover(t, f, top+"/ws")
	defer c.Done()
	if diff := cmp.Diff([]string{"pin b/", "mask b/.env"}, lines(c)); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Cover(t.Context(), top+"/nothing", nil); err == nil {
		t.Error("a root that does not exist was covered")
	}
	os.Symlink(top+"/ws", top+"/link")
	if _, err := f.Cover(t.Context(), top+"/link", nil); err == nil {
		t.Error("a root that is a symlink was covered")
	}
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	need.Programs(t, "git")
	cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func BenchmarkCover(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(root string)
	}{
		{"plain", func(string) {}},
		{"repository", func(root string) { git(b, root, "init", "-q") }},
		{"many", func(root string) {
			git(b, root, "init", "-q")
			for i := range 2000 {
				put(b, root, fmt.Sprintf("d%d/e%d/x=y", i%50, i))
			}
			for i := range 40 {
				put(b, root, fmt.Sprintf("d%d/.env=y", i))
			}
		}},
	} {
		root := workspace(b, "x=y")
		c.make(root)
		f := finder(b, Options{})
		ended(b, cover(b, f, root))
		open := func(string) bool { return false }
		run := func(name string, whole bool) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				mounts := 0
				for b.Loop() {
					c, err := f.Cover(b.Context(), root, open)
					if err != nil {
						b.Fatal(err)
					}
					mounts = len(c.Mounts)
					if whole {
						if err := c.Prepare(); err != nil {
							b.Fatal(err)
						}
					}
					b.StopTimer()
					if !whole {
						c.Done()
					}
					b.StartTimer()
					if whole {
						if _, err := c.Done(); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(mounts), "mounts")
			})
		}
		run("Cover", false)
		run("Cover+Prepare+Done", true)
	}
}

// A directory that was not looked at and is gone is not kept by anything, so that what a run
// makes in its place counts.
func TestUnseenAndGone(t *testing.T) {
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprintf("m/%02d/x=y", i))
	}
	root := workspace(t, items...)
	f := finder(t, Options{MaxDirs: 3})
	c := cover(t, f, root)
	if !slices.Contains(lines(c), "ro m/20/") {
		t.Fatalf("%v", lines(c))
	}
	ended(t, c)
	if err := os.RemoveAll(root + "/m/20"); err != nil { // of which nothing is heard
		t.Fatal(err)
	}
	c = cover(t, f, root)
	if slices.Contains(lines(c), "ro m/20/") {
		t.Errorf("what is not there is to be mounted: %v", lines(c))
	}
	ended(t, c)
	if slices.Contains(c.unseen, "m/20") {
		t.Error("what a run makes there would not be looked at")
	}
}

// Of too many directories that were not looked at, what they are in is kept.
func TestUnseenMany(t *testing.T) {
	root := workspace(t)
	for i := range 1100 {
		must(t, os.MkdirAll(fmt.Sprintf("%s/a/%d/x", root, i), 0o755))
	}
	c := cover(t, finder(t, Options{MaxDirs: 3}), root)
	defer c.Done()
	if diff := cmp.Diff([]string{"ro a/"}, lines(c)); diff != "" {
		t.Error(diff)
	}
}

// What is said of directories that were not looked at is one line, whatever they are called.
func TestUnseenIsOneLine(t *testing.T) {
	root := workspace(t, "a/b\nwrit run: forged/x=y", "a/c/x=y")
	c := cover(t, finder(t, Options{MaxDirs: 2}), root)
	said, err := Covers{c}.Done()
	if err != nil || len(said) == 0 || strings.Contains(strings.Join(said, ""), "\n") || !strings.Contains(said[0], `b\nwrit run: forged`) {
		t.Errorf("%q %v", said, err)
	}
}
