package protect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

func TestDone(t *testing.T) {
	safe := "[core]\n\tbare = false\n"
	evil := "[core]\n\tfsmonitor = touch /tmp/x\n"
	for _, c := range []struct {
		name   string
		before []string
		open   []string
		run    func(t *testing.T, root string)
		want   []string // moved
		stays  []string
	}{
		{name: "nothing", run: func(*testing.T, string) {}},
		{name: "ordinary files", run: makes("a/b/x=y", "c/"), stays: []string{"a/b/x"}},
		{name: "configuration further down", run: makes("a/.envrc=x", "b/.vscode/tasks.json=x", "b/.mcp.json>x", "c/.bashrc=x", "d/.Envrc=x"),
			want: []string{"a/.envrc", "b/.mcp.json", "b/.vscode", "c/.bashrc", "d/.Envrc"}, stays: []string{"a", "b"}},
		{name: "secrets and empty directories are the run's own", run: makes("a/.env=x", "b/.vscode/", "c/key.pem=x"), stays: []string{"a/.env", "b/.vscode", "c/key.pem"}},
		{name: "what counts at home", run: makes(".gitconfig=x", ".bash_aliases=x", ".ssh/config=x", "home/.aws/config=x", ".netrc=x", ".kube/"),
			want: []string{".bash_aliases", ".gitconfig", ".netrc", ".ssh", "home/.aws"}, stays: []string{".kube"}},
		{name: "what counts at home, and was there", before: []string{".gitconfig=x", ".ssh/config=x"}, run: makes(".ssh/known_hosts=x"), stays: []string{".gitconfig", ".ssh/config"}},
		{name: "what the policy names", open: []string{"a/.envrc"}, run: makes("a/.envrc=x", "b/.envrc=x"), want: []string{"b/.envrc"}, stays: []string{"a/.envrc"}},
		{name: "git init", run: func(t *testing.T, root string) { git(t, root, "init", "-q"); git(t, root, "init", "-q", "sub") }, stays: []string{".git/config", ".git/hooks", "sub/.git/config", "sub/.git/hooks"}},
		{name: "git clone", before: []string{"up/"}, run: func(t *testing.T, root string) {
			git(t, root+"/up", "init", "-q")
			put(t, root, "up/.gitattributes=* text=auto\n")
			git(t, root+"/up", "add", "-A")
			git(t, root+"/up", "commit", "-qm", "x")
			git(t, root, "clone", "-q", "up", "copy")
			git(t, root, "clone", "-q", "--sparse", "up", "sparse")
		}, stays: []string{"copy/.git/config", "copy/.gitattributes", "sparse/.git/config.worktree"}},
		{name: "a submodule", run: func(t *testing.T, root string) {
			git(t, root, "init", "-q", "lib")
			put(t, root, "lib/x=y")
			git(t, root+"/lib", "add", "-A")
			git(t, root+"/lib", "commit", "-qm", "x")
			git(t, root, "init", "-q", "app")
			git(t, root+"/app", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "lib")
			git(t, root+"/app", "commit", "-qm", "x")
			git(t, root+"/app", "worktree", "add", "-q", "../tree")
		}, stays: []string{"app/.gitmodules", "app/.git/modules/lib/config", "app/lib/.git", "tree/.git", "app/.git/worktrees/tree/gitdir", "app/.git/worktrees/tree/commondir"}},
		{name: "hooks", run: makes("r/.git/config="+safe, "r/.git/hooks/pre-commit=x", "r/.git/hooks/a.sample=x", "r/.git/hooks/d/x=y", "r/.git/hooks/l.sample>x"),
			want: []string{"r/.git/hooks/d", "r/.git/hooks/l.sample", "r/.git/hooks/pre-commit"}, stays: []string{"r/.git/config", "r/.git/hooks/a.sample"}},
		{name: "hooks that lie elsewhere", run: makes("r/.git/hooks>../x", "r/x/pre-commit=x"), want: []string{"r/.git/hooks"}},
		{name: "settings that run something", run: makes("r/.git/config="+evil, "r/.git/HEAD=x", "r/.git/config.worktree="+evil), want: []string{"r/.git/config", "r/.git/config.worktree"}, stays: []string{"r/.git/HEAD"}},
		{name: "a file with another name", run: func(t *testing.T, root string) {
			makes("r/.git/config="+safe, "s/.git/config="+safe, "s/.gitattributes=* text\n")(t, root)
			os.Link(root+"/r/.git/config", root+"/later")
			os.Link(root+"/s/.gitattributes", root+"/later2")
		}, want: []string{"r/.git/config", "s/.gitattributes"}, stays: []string{"s/.git/config", "later"}},
		{name: "git pointed elsewhere", run: makes("a/.git=gitdir: ../x\n", "b/.git>../x", "c/.git/commondir=../../x\n", "d/.git/gitdir=x\n", "e/.git=gitdir: /etc/.git/modules/x\n"),
			want: []string{"a/.git", "b/.git", "c/.git/commondir", "d/.git/gitdir", "e/.git"}},
		{name: "git pointed at what is not looked at", run: func(t *testing.T, root string) {
			makes("r/.git/config="+safe, "node_modules/z/.git/modules/m/config="+evil, "a/.git=gitdir: ../node_modules/z/.git/modules/m\n",
				"r/.git/modules/objects/m/config="+evil, "b/.git=gitdir: ../r/.git/modules/objects/m\n",
				"c/.git=gitdir: ../lnk/z/.git/modules/m\n", "lnk>node_modules", "d/.git=gitdir: ../r/.git/modules/m\n", "r/.git/modules/m/HEAD=x")(t, root)
		}, want: []string{"a/.git", "b/.git", "c/.git"}, stays: []string{"d/.git"}},
		{name: "a repository without the name", run: makes("s/HEAD=x", "s/objects/", "s/refs/", "s/config="+evil, "s/hooks/post-checkout=x", "u/HEAD=x", "u/objects/", "u/refs/", "u/config="+safe, "v/HEAD=x", "v/config="+evil),
			want: []string{"s/config", "s/hooks/post-checkout"}, stays: []string{"s/HEAD", "u/config", "v/config"}},
		{name: "one that comes to be", before: []string{"s/objects/", "s/refs/", "s/config=" + evil, "w/objects/", "w/refs/"}, run: makes("s/HEAD=x", "w/hooks/post-checkout=x", "w/HEAD=x"),
			want: []string{"s/config", "w/hooks/post-checkout"}},
		{name: "directories exchanged", before: []string{"b/"}, run: func(t *testing.T, root string) {
			makes("a/.git/config="+evil, "a/.git/hooks/post-checkout=x")(t, root)
			if err := unix.Renameat2(unix.AT_FDCWD, root+"/a", unix.AT_FDCWD, root+"/b", unix.RENAME_EXCHANGE); err != nil {
				t.Fatal(err)
			}
		}, want: []string{"b/.git/config", "b/.git/hooks/post-checkout"}, stays: []string{"a"}},
		{name: "attributes and submodules", run: makes("a/.gitattributes=* filter=x\n", "b/.git/info/attributes=* filter=x\n", "b/.git/info/exclude=x\n", "c/.gitmodules=[submodule \"x\"]\npath=x\nurl=../x\nupdate=!x\n"),
			want: []string{"a/.gitattributes", "b/.git/info/attributes", "c/.gitmodules"}, stays: []string{"b/.git/info/exclude"}},
		{name: "below modules and worktrees", run: makes("a/.git/modules/m/hooks/post-checkout=x", "a/.git/modules/m/config="+evil, "a/.git/modules/m/modules/n/config="+evil, "a/.git/worktrees/w/config.worktree="+evil, "a/.git/worktrees/w/commondir=/x", "a/.git/modules/m/HEAD=x", "b/.git/modules/m/config=[core]\nworktree=../../../../../etc\n", "c/.git/modules/m/config=[core]\nworktree=../..\n", "d/.git/config=[core]\nworktree=../x\n"),
			want: []string{"a/.git/modules/m/config", "a/.git/modules/m/hooks/post-checkout", "a/.git/modules/m/modules/n/config", "a/.git/worktrees/w/commondir", "a/.git/worktrees/w/config.worktree", "b/.git/modules/m/config", "c/.git/modules/m/config", "d/.git/config"}, stays: []string{"a/.git/modules/m/HEAD"}},
		{name: "in a repository that was there", before: []string{"r/.git/config=" + evil, "r/.git/HEAD=x"}, run: makes("r/.git/commondir=x", "r/n/.envrc=x"), want: []string{"r/.git/commondir", "r/n/.envrc"}, stays: []string{"r/.git/config"}},
		{name: "a directory moved in", before: []string{"a/b/x=y"}, run: func(t *testing.T, root string) {
			put(t, root, "a/b/.envrc=x")
			os.Rename(root+"/a", root+"/z")
		}, want: []string{"z/b/.envrc"}},
		{name: "replaced from outside", before: []string{"r/.git/config=" + evil, "r/.git/hooks/x=y", ".mcp.json=x"}, run: func(t *testing.T, root string) {
			makes("new="+evil+"[branch \"x\"]\n\tremote = origin\n", "m=y")(t, root)
			os.Rename(root+"/new", root+"/r/.git/config") // what was there stays allowed
			os.Rename(root+"/m", root+"/.mcp.json")
		}, want: []string{".mcp.json"}, stays: []string{"r/.git/config"}},
		{name: "replaced by settings that were not there", before: []string{"r/.git/config=" + safe}, run: func(t *testing.T, root string) {
			put(t, root, "new="+evil)
			os.Rename(root+"/new", root+"/r/.git/config")
		}, want: []string{"r/.git/config"}},
	} {
		for _, how := range []string{"watched", "walked"} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				root := workspace(t, c.before...)
				cov := cover(t, finder(t, Options{}), root, c.open...)
				if err := cov.Prepare(); err != nil {
					t.Fatal(err)
				}
				c.run(t, root)
				if how == "walked" {
					cov.index.blind = "for a test"
				}
				if diff := cmp.Diff(c.want, ended(t, cov)); diff != "" {
					t.Errorf("moved (-want +got):\n%s", diff)
				}
				for _, name := range c.stays {
					if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
						t.Error(err)
					}
				}
				for _, p := range cov.Placeholders {
					if f, err := os.Lstat(p.Path); err == nil && f.Mode()&os.ModeSticky != 0 {
						t.Errorf("%s is still there", p.Path)
					}
				}
			})
		}
	}
}

func makes(items ...string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		for _, item := range items {
			put(t, root, item)
		}
	}
}

// A quarantine on another filesystem has to be copied to; nothing is lost.
func TestQuarantineElsewhere(t *testing.T) {
	far, err := os.MkdirTemp("/dev/shm", "writ-test-")
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	defer os.RemoveAll(far)
	root := workspace(t)
	var a, b unix.Stat_t
	if unix.Stat(far, &a) != nil || unix.Stat(root, &b) != nil || a.Dev == b.Dev {
		need.Lacking(t, "there is no second filesystem here")
	}
	c := cover(t, finder(t, Options{Quarantine: far + "/q"}), root)
	put(t, root, "a/.vscode/deep/tasks.json=run")
	put(t, root, "a/.vscode/link>/etc/passwd")
	put(t, root, "b/.idea/x=y")
	if err := unix.Mkfifo(root+"/b/.idea/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := c.Done()
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	text, err := os.ReadFile(list[0].MovedTo + "/deep/tasks.json")
	if !strings.HasPrefix(list[0].MovedTo, far+"/q/") || string(text) != "run" || err != nil {
		t.Errorf("%+v: %q, %v", list[0], text, err)
	}
	if to, err := os.Readlink(list[0].MovedTo + "/link"); to != "/etc/passwd" || err != nil {
		t.Errorf("the symlink leads to %q, %v", to, err)
	}
	// What cannot be copied stays where it was, under a name that means nothing.
	if dir := filepath.Dir(list[1].MovedTo); dir != root+"/b" || !strings.HasPrefix(filepath.Base(list[1].MovedTo), "writ-") {
		t.Errorf("%+v", list[1])
	}
	left, err := os.ReadDir(root + "/a")
	if len(left) != 0 || err != nil {
		t.Errorf("left in a: %v, %v", left, err)
	}
}

// A run cannot hide something behind the bound without that being told.
func TestDoneBound(t *testing.T) {
	for _, c := range []struct {
		dirs int
		want []string
	}{{10, []string{"x/y/z/.envrc"}}, {100, []string{"x/y/z/.envrc"}}, {400, []string{"."}}} {
		root := workspace(t)
		cov := cover(t, finder(t, Options{MaxDirs: 5}), root)
		for i := range c.dirs {
			put(t, root, fmt.Sprintf("d%d/", i))
		}
		put(t, root, "x/y/z/.envrc=x")
		if diff := cmp.Diff(c.want, ended(t, cov)); diff != "" {
			t.Errorf("%d directories (-want +got):\n%s", c.dirs, diff)
		}
	}
}

// A quarantine inside the workspace is not looked at for what was moved there.
func TestQuarantineInside(t *testing.T) {
	root := workspace(t, "a/x=y")
	f := finder(t, Options{State: root + "/state", Quarantine: root + "/q"})
	for range 2 {
		c := cover(t, f, root)
		put(t, root, "a/.envrc=x")
		if diff := cmp.Diff([]string{"a/.envrc"}, ended(t, c)); diff != "" {
			t.Error(diff)
		}
	}
	c := cover(t, f, root)
	if got := lines(c); got != nil {
		t.Errorf("mounts %v", got)
	}
	ended(t, c)
}

// One run may write what another must not: while both are going it stays.
func TestOtherRunMayWrite(t *testing.T) {
	root := workspace(t, "a/x=y")
	f := finder(t, Options{})
	strict, free := cover(t, f, root), cover(t, f, root, "a/.envrc")
	put(t, root, "a/.envrc=x")
	put(t, root, "a/.mcp.json=x")
	if diff := cmp.Diff([]string{"a/.mcp.json"}, ended(t, strict)); diff != "" {
		t.Error(diff)
	}
	if got := ended(t, free); got != nil {
		t.Errorf("moved %v", got)
	}
	if _, err := os.Stat(root + "/a/.envrc"); err != nil {
		t.Error(err)
	}
	if _, err := free.Done(); err == nil || err.Error() != "protected names: Done was called before" {
		t.Errorf("a second Done: %v", err)
	}
}

// A path that is too long to be looked at is said, and does not keep the next run from
// looking at the rest.
func TestTooDeep(t *testing.T) {
	root := workspace(t)
	f := finder(t, Options{})
	c := cover(t, f, root)
	must(t, c.Prepare())
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	name := strings.Repeat("d", 250)
	for range 20 {
		must(t, unix.Mkdirat(dir, name, 0o755))
		next, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(dir)
		dir = next
	}
	unix.Close(dir)
	makes("e/1/2/3/r/.git/config=[core]\n\tfsmonitor = x\n", "z/.envrc=x")(t, root)
	found, err := c.Done()
	var moved, said []string
	for _, a := range found {
		if a.MovedTo != "" {
			moved = append(moved, strings.TrimPrefix(a.Path, root+"/"))
		} else {
			said = append(said, a.Why)
		}
	}
	if diff := cmp.Diff([]string{"e/1/2/3/r/.git/config", "z/.envrc"}, moved); diff != "" || len(said) != 1 || err != nil {
		t.Errorf("%s %v %v", diff, said, err)
	}
	c = cover(t, f, root)
	must(t, c.Prepare())
	makes("y/.envrc=x")(t, root)
	if deep := c.Mounts[slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.How == ReadOnly && strings.Contains(m.Path, name) })]; len(deep.Path) >= unix.PathMax {
		t.Errorf("what cannot be mounted is to be: %d bytes", len(deep.Path))
	}
	if diff := cmp.Diff([]string{"y/.envrc", "."}, ended(t, c)); diff != "" { // and it is said again
		t.Error(diff)
	}
}

// What was counted is not counted again when a directory moves about.
func TestManyMoves(t *testing.T) {
	var items []string
	for i := range 200 {
		items = append(items, fmt.Sprintf("d0/%d=x", i))
	}
	root := workspace(t, items...)
	f := finder(t, Options{MaxDirs: 10}) // and 50 names a directory
	for i := range 20 {
		c := cover(t, f, root)
		must(t, c.Prepare())
		must(t, os.Rename(fmt.Sprintf("%s/d%d", root, i), fmt.Sprintf("%s/d%d", root, i+1)))
		makes(fmt.Sprintf("n%d/.envrc=x", i%3))(t, root)
		if diff := cmp.Diff([]string{fmt.Sprintf("n%d/.envrc", i%3)}, ended(t, c)); diff != "" {
			t.Fatalf("after %d: %s", i, diff)
		}
	}
}

// What a run could change is looked at, however much there is that it could not.
func TestDoneBeyondBound(t *testing.T) {
	root := workspace(t)
	for i := range 60 {
		put(t, root, fmt.Sprintf("a/b/c/%d/", i))
	}
	f := finder(t, Options{MaxDirs: 8})
	cov := cover(t, f, root)
	put(t, root, "z/1/2/3/4/.envrc=x")
	if diff := cmp.Diff([]string{".", "z/1/2/3/4/.envrc"}, sorted(ended(t, cov))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cov = cover(t, f, root)
	for i := range 50 { // with what it makes nearer to the top
		put(t, root, fmt.Sprintf("decoy/%d/", i))
	}
	put(t, root, "new/1/2/3/4/5/.vscode/x=y")
	if diff := cmp.Diff([]string{".", "new/1/2/3/4/5/.vscode"}, sorted(ended(t, cov))); diff != "" {
		t.Errorf("beside decoys (-want +got):\n%s", diff)
	}
	cov = cover(t, f, root)
	for i := range 900 {
		put(t, root, fmt.Sprintf("z/more/%d/", i))
	}
	found, err := cov.Done()
	said := ""
	for _, a := range found {
		said += a.told() + "\n"
	}
	if err != nil || len(found) != 2 || !strings.Contains(said, " that the run could change were not") {
		t.Errorf("%v: %s", err, said)
	}
}

// In a workspace whose own path is nearly as long as paths can be, names have none.
func TestLongRoot(t *testing.T) {
	f := finder(t, Options{})
	if _, err := f.Cover(t.Context(), "/"+strings.Repeat("x/", unix.PathMax/4)+"y", nil); err == nil || !strings.Contains(err.Error(), "has 2050 bytes; at most 2048 can be") {
		t.Error(err)
	}
}
