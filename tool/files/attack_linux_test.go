package files

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
)

// attempts is every tool at one path, with arguments that would work on a file
// (or directory) that may be reached.
func attempts(path string) map[string]m {
	return map[string]m{
		"read_file":      {"path": path},
		"write_file":     {"path": path, "content": "x"},
		"edit_file":      {"path": path, "old_text": "CANARY", "new_text": "x"},
		"delete_file":    {"path": path},
		"stat":           {"path": path},
		"list_directory": {"path": path},
		"search_files":   {"path": path, "pattern": "CANARY"},
	}
}

// Nothing outside the roots is reached by naming it.
func TestOutsideTheRoots(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "mine")
	for _, path := range []string{w.out, w.out + "/canary", w.ws + "x", filepath.Dir(w.ws), "/", "/etc/passwd", "/proc/self/root" + w.out + "/canary", "/proc/self/cwd", "/proc/self/environ", "/dev/null"} {
		for name, args := range attempts(path) {
			w.denied(t, name, args)
		}
		w.denied(t, "move_file", m{"source": path, "destination": "stolen"})
		w.denied(t, "move_file", m{"source": "f", "destination": path, "overwrite": true})
		w.denied(t, "write_file", m{"path": path + "/new/x", "content": "x", "create_directories": true})
	}
	w.safe(t, "")
	// No roots, no reach; a root for reading is none for writing.
	w.confine = writ.Confinement{}
	for name, args := range attempts("f") {
		w.denied(t, name, args)
	}
	w.confine = writ.Confinement{Read: []string{w.ws}}
	for _, name := range []string{"write_file", "edit_file", "delete_file"} {
		w.denied(t, name, attempts("f")[name])
	}
	w.denied(t, "move_file", m{"source": "f", "destination": "g"})
	if got := w.ok(t, "read_file", m{"path": "f"}); got != "mine" {
		t.Errorf("control: %q", got)
	}
}

// A target that was not resolved opens nothing, were it to get this far.
func TestUnresolvedTarget(t *testing.T) {
	w := newWorld(t)
	w.confine.Read = []string{"/"}
	tl := named(t, "list_directory")
	for _, target := range []writ.Target{
		{Pointer: "/path", Value: "x", Problem: "why"},
		{Pointer: "/path", Value: "x", Path: w.ws, Problem: "why"},
		{Pointer: "/path", Value: "x", Path: "relative"},
		{Pointer: "/path", Value: "x", Path: w.ws + "/../out"},
	} {
		g := gate{w.confine, tl.Run}
		res, err := writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{ID: "c", Agent: "a", Tool: "t", Definition: tl.Digest, Args: `{"path":"x"}`, Dir: w.ws, Resolved: true, Targets: []writ.Target{target}})
		if writ.KindOf(err) != writ.Denied {
			t.Errorf("%+v: %q, %v", target, res.Content, err)
		}
	}
}

// A symlink that took a name's place after it was resolved is not followed: not
// as the last element, not above it, not dangling.
func TestSymlinkSwappedIn(t *testing.T) {
	outside := func(w *world) map[string]string {
		return map[string]string{
			"leaf": w.out + "/canary", "leafRelative": "../out/canary", "parent/canary": w.out, "parentRelative/canary": "../out", "dir": w.out,
			"dangling": w.out + "/new", "danglingRelative": "../out/new", "proc/canary": "/proc/self/root" + w.out, "inside": "keep", "insideDir/keep": ".",
		}
	}
	for path := range outside(newWorld(t)) {
		for name := range attempts("") {
			w := newWorld(t)
			w.put(t, "keep", "CANARY of the workspace")
			link, _, _ := strings.Cut(path, "/")
			must(t, os.Symlink(outside(w)[path], w.path(link)))
			res, err := w.try(t, name, attempts(path)[name])
			w.safe(t, res.Content)
			switch {
			case name == "delete_file" && link == path, name == "stat" && link == path:
				// It is the link itself that is deleted or looked at.
				if err != nil || res.IsError {
					t.Errorf("%s %s: %q, %v", name, path, res.Content, err)
				}
			case err == nil && !res.IsError:
				t.Errorf("%s %s: %q", name, path, res.Content)
			}
			if w.get(t, "keep") != "CANARY of the workspace" {
				t.Errorf("%s %s changed what the link inside points at", name, path)
			}
		}
	}
	// The controls: the same without a link.
	for name := range attempts("") {
		w := newWorld(t)
		w.put(t, "d/keep", "CANARY of the workspace")
		path := "d/keep"
		if name == "list_directory" || name == "search_files" {
			path = "d"
		}
		w.ok(t, name, attempts(path)[name])
	}
}

func TestMoveThroughSwappedSymlinks(t *testing.T) {
	for _, row := range []struct{ source, destination, link, to string }{
		{"link/canary", "stolen", "link", "../out"},
		{"f", "link/new", "link", "../out"},
		{"f", "link", "link", "../out"},
		{"f", "link", "link", "../out/canary"},
		{"f", "link", "link", "../out/new"},
		{"link", "stolen", "link", "../out/canary"},
	} {
		for _, overwrite := range []bool{false, true} {
			w := newWorld(t)
			w.put(t, "f", "mine")
			must(t, os.Symlink(row.to, w.path(row.link)))
			res, err := w.try(t, "move_file", m{"source": row.source, "destination": row.destination, "overwrite": overwrite})
			if err != nil || !res.IsError {
				t.Errorf("%+v: %q, %v", row, res.Content, err)
			}
			w.safe(t, "")
		}
	}
}

// The roots themselves are resolved paths: if a symlink stands in one now, it is
// not what was decided about.
func TestSymlinkInTheRoot(t *testing.T) {
	for name := range attempts("") {
		w := newWorld(t)
		// A path outside the workspace that a person agreed to.
		agreed := filepath.Join(filepath.Dir(w.ws), "agreed")
		must(t, os.Mkdir(agreed, 0o755))
		must(t, os.WriteFile(agreed+"/canary", []byte("CANARY of theirs"), 0o644))
		for _, root := range []string{agreed, agreed + "/canary"} {
			w.confine.Read, w.confine.Write = []string{w.ws, root}, []string{w.ws, root}
			path := agreed + "/canary"
			if name == "list_directory" || name == "search_files" {
				if path = agreed; root != agreed {
					continue
				}
			}
			control := attempts(path)[name]
			w.ok(t, name, control)
			must(t, os.WriteFile(agreed+"/canary", []byte("CANARY of theirs"), 0o644))
			must(t, os.Rename(agreed, agreed+"-away"))
			must(t, os.Symlink(w.out, agreed))
			res, err := w.try(t, name, control)
			w.safe(t, res.Content)
			if err == nil && !res.IsError {
				t.Errorf("%s %s: %q", name, root, res.Content)
			}
			must(t, os.Remove(agreed))
			must(t, os.Rename(agreed+"-away", agreed))
		}
	}
}

// A write leaves the other names of a file alone.
func TestHardLinks(t *testing.T) {
	for _, name := range []string{"write_file", "edit_file", "delete_file"} {
		w := newWorld(t)
		must(t, os.Link(w.out+"/canary", w.path("f")))
		w.ok(t, name, attempts("f")[name])
		w.safe(t, "")
	}
}

// What is not a file is refused at once: reading a pipe would wait for ever.
func TestNotFiles(t *testing.T) {
	w := newWorld(t)
	must(t, unix.Mkfifo(w.path("pipe"), 0o644))
	l, err := net.Listen("unix", w.path("socket"))
	must(t, err)
	defer l.Close()
	kinds := []string{"pipe", "socket"}
	if err := unix.Mknod(w.path("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err == nil { // /dev/zero
		kinds = append(kinds, "device")
	} else if !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	began := time.Now()
	for _, k := range kinds {
		w.fails(t, "read_file", m{"path": k}, `cannot read "`+k+`": it is not a regular file (`+k+`)`)
		w.fails(t, "edit_file", m{"path": k, "old_text": "a", "new_text": "b"}, `cannot edit "`+k+`": it is not a regular file (`+k+`)`)
		w.fails(t, "write_file", m{"path": k, "content": ""}, `cannot write "`+k+`": it is a `+k)
		w.fails(t, "list_directory", m{"path": k}, `"`+k+`" is not a directory`)
		w.fails(t, "move_file", m{"source": k, "destination": "x"}, `cannot move "`+k+`": only files and directories inside the workspace are moved`)
		if got := w.ok(t, "stat", m{"path": k}); !strings.HasPrefix(got, "type: "+k+"\n") {
			t.Errorf("%q", got)
		}
	}
	w.put(t, "z", "needle")
	if got := w.ok(t, "search_files", m{"pattern": "needle"}); got != "z:1: needle\n" {
		t.Errorf("%q", got)
	}
	if got := w.ok(t, "list_directory", m{}); !strings.Contains(got, "PIPE     pipe\n") || !strings.Contains(got, "SOCKET   socket\n") {
		t.Errorf("%q", got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// The daemon's own environment, memory and descriptors are files in /proc: with
// the whole filesystem to read they must not come with it (I7).
func TestProcIsNotRead(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", canary)
	w := newWorld(t)
	w.confine.Read = []string{"/"}
	w.confine.Write = []string{"/"}
	self, err := filepath.EvalSymlinks("/proc/self")
	must(t, err)
	for _, path := range []string{self + "/environ", self + "/cmdline", self + "/mem", self + "/maps", self + "/task", "/proc/1/environ", "/proc", "/proc/sys/kernel/hostname", self + "/net"} {
		for name, args := range attempts(path) {
			res, err := w.try(t, name, args)
			if err == nil && !res.IsError && (name != "stat" || path != "/proc") || strings.Contains(res.Content, canary) {
				t.Errorf("%s %s: %.100q, %v", name, path, res.Content, err)
			}
		}
	}
	w.put(t, "f", "x")
	w.ok(t, "read_file", m{"path": "f"})
	if got := w.ok(t, "list_directory", m{"path": "/"}); !strings.Contains(got, "DIR      etc/\n") {
		t.Errorf("control: %q", got)
	}
}

func TestSparseFile(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "")
	must(t, os.Truncate(w.path("f"), 1<<40))
	began := time.Now()
	w.fails(t, "read_file", m{"path": "f"}, `cannot read "f": it is a binary file`)
	w.fails(t, "read_file", m{"path": "f", "start_line": 2}, `cannot read "f": line 2 was not reached within 268435456 bytes`)
	w.fails(t, "edit_file", m{"path": "f", "old_text": "a", "new_text": "b"}, `cannot edit "f": it has 1099511627776 bytes; at most 10485760 are edited`)
	if got := w.ok(t, "search_files", m{"pattern": "x"}); got != "(no match in 0 files)\n[not searched: 1 files larger than 10485760 bytes]\n" {
		t.Errorf("%q", got)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// A daemon that runs as root leaves files of the workspace's owner.
func TestOwner(t *testing.T) {
	need.Root(t)
	w := newWorld(t)
	w.put(t, "old", "x")
	must(t, os.Chown(w.ws, 12345, 12346))
	must(t, os.Chown(w.path("old"), 22345, 22346))
	w.ok(t, "write_file", m{"path": "old", "content": "y"})
	w.ok(t, "write_file", m{"path": "a/b/new", "content": "y", "create_directories": true})
	for name, uid := range map[string]uint32{"old": 22345, "a": 12345, "a/b": 12345, "a/b/new": 12345} {
		info, err := os.Lstat(w.path(name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != uid+1 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

// Failures leave nothing behind: here the directory takes no new file.
func TestFailedWriteLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.put(t, "d/f", "old")
	asUser(t, w, func() {
		must(t, os.Chmod(w.path("d"), 0o555))
		w.fails(t, "write_file", m{"path": "d/f", "content": "new"}, `cannot write "d/f": permission denied`)
		w.fails(t, "edit_file", m{"path": "d/f", "old_text": "old", "new_text": "new"}, `cannot edit "d/f": permission denied`)
		w.fails(t, "delete_file", m{"path": "d/f"}, `cannot delete "d/f": permission denied`)
		w.fails(t, "move_file", m{"source": "d/f", "destination": "x"}, `cannot move "d/f": permission denied`)
		if w.get(t, "d/f") != "old" {
			t.Error("it was changed")
		}
		must(t, os.Chmod(w.path("d"), 0o755))
		w.ok(t, "write_file", m{"path": "d/f", "content": "new"})
	})
	if left := w.leftovers(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.put(t, "closed/f", "needle")
	w.put(t, "file", "needle")
	w.put(t, "open", "needle")
	asUser(t, w, func() {
		must(t, os.Chmod(w.path("closed"), 0))
		must(t, os.Chmod(w.path("file"), 0))
		defer os.Chmod(w.path("closed"), 0o755)
		w.fails(t, "read_file", m{"path": "closed/f"}, `cannot open "closed/f": permission denied`)
		w.fails(t, "read_file", m{"path": "file"}, `cannot read "file": permission denied`)
		w.fails(t, "list_directory", m{"path": "closed"}, `cannot list "closed": permission denied`)
		if got := w.ok(t, "list_directory", m{"recursive": true}); got != "DIR      closed/\nFILE     file (6 bytes)\nFILE     open (6 bytes)\n[not entered: 1 directories that cannot be read]\n" {
			t.Errorf("%q", got)
		}
		if got := w.ok(t, "search_files", m{"pattern": "needle"}); got != "open:1: needle\n[not searched: 1 files that cannot be read]\n[not entered: 1 directories that cannot be read]\n" {
			t.Errorf("%q", got)
		}
	})
}

// asUser runs f on a thread that is not root, so that modes hold.
func asUser(t *testing.T, w *world, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	base := filepath.Dir(w.ws)
	must(t, filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error { return errors.Join(err, os.Lchown(p, 65534, 65534)) }))
	must(t, os.Chmod(filepath.Dir(base), 0o755))
	must(t, syscall.Setresuid(-1, 65534, -1)) // of every thread
	defer func() { must(t, syscall.Setresuid(-1, 0, -1)) }()
	f()
}

// A directory that git would take for a repository, whatever it is called, gets nothing that git
// would obey, in whichever order; what is in one already stays as it is.
func TestRepositoryOfFiles(t *testing.T) {
	put := func(path string) m { return m{"path": path, "content": "x", "create_directories": true} }
	for _, order := range [][]string{
		{"HEAD", "objects/k", "refs/k", "config"}, {"config", "HEAD", "objects/k", "refs/k"}, {"hooks/pre-commit", "refs/k", "objects/k", "HEAD"},
		{"commondir", "HEAD"}, {"head", "Objects/k", "refs/k", "CONFIG"}, {"HEAD", "refs/k", "objects/k", "hooks/x"},
	} {
		w := newWorld(t)
		for i, name := range order {
			if path := "bare/" + name; i < len(order)-1 {
				w.ok(t, "write_file", put(path))
			} else {
				w.denied(t, "write_file", put(path))
				w.ok(t, "write_file", put("moved/"+name))
				from := "moved/" + strings.Split(name, "/")[0]
				w.denied(t, "move_file", m{"source": from, "destination": "bare/" + strings.Split(name, "/")[0]})
			}
		}
	}
	w := newWorld(t)
	for _, name := range []string{"r/.git/HEAD", "r/.git/objects/k", "r/.git/refs/k", "r/.git/config", "bare/HEAD", "bare/objects/k", "bare/refs/k", "bare/config", "plain/config", "plain/HEAD"} {
		w.put(t, name, "text")
	}
	for _, name := range []string{"r/.git/HEAD", "r/.git/refs/new", "bare/HEAD", "bare/refs/k", "bare/src", "plain/config", "plain/hooks/x"} {
		w.ok(t, "write_file", put(name))
	}
	w.denied(t, "edit_file", m{"path": "bare/config", "old_text": "text", "new_text": "x"})
	w.denied(t, "write_file", put("bare/config"))
}

// Nor does it by calls at the same time, while the directory is moved.
func TestRepositoryAtOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		d, e := fmt.Sprintf("d%d", i), fmt.Sprintf("e%d", i)
		must(t, os.MkdirAll(w.path(d+"/objects"), 0o755))
		must(t, os.MkdirAll(w.path(d+"/refs"), 0o755))
		var wg sync.WaitGroup
		for _, call := range []struct {
			tool string
			args m
		}{
			{"write_file", m{"path": d + "/HEAD", "content": "x"}}, {"write_file", m{"path": d + "/config", "content": "x"}}, {"move_file", m{"source": d, "destination": e}},
		} {
			wg.Go(func() { w.try(t, call.tool, call.args) })
		}
		wg.Wait()
		for _, at := range []string{d, e} {
			all := true
			for _, name := range []string{"HEAD", "config", "objects", "refs"} {
				_, err := os.Lstat(w.path(at + "/" + name))
				all = all && err == nil
			}
			if all {
				t.Fatalf("%s is a repository with a configuration", at)
			}
		}
	}
}

// A directory is moved as what is in it would be: not from where it is protected, nor to where
// it would be; and of what git takes for a repository nothing is taken away.
func TestMovesCarry(t *testing.T) {
	move := func(from, to string) m { return m{"source": from, "destination": to} }
	for _, holds := range []string{
		"x/.env", "x/a/b/.ENV", "x/a/id_rsa", "x/.git/HEAD", "x/a/.git/config", "x/.vscode/tasks.json", "x/a/.envrc", "x/a/.Git", "x/server.key",
	} {
		w := newWorld(t)
		w.put(t, holds, "text")
		w.put(t, "x/beside/file", "text")
		w.denied(t, "move_file", move("x", "node_modules-of"))
		w.ok(t, "move_file", move("x/beside", "y"))
		if _, err := os.Lstat(w.path(holds)); err != nil {
			t.Errorf("%s: %v", holds, err)
		}
	}
	w := newWorld(t)
	for _, name := range []string{"HEAD", "objects/k", "refs/k", "config", "hooks/x", "description"} {
		w.put(t, "all/b.git/"+name, "text")
		w.put(t, "plain/"+strings.ToLower(name)+"-", "text")
	}
	w.denied(t, "move_file", move("all", "other"))
	w.denied(t, "move_file", move("all/b.git", "other"))
	for _, name := range []string{"HEAD", "objects", "refs", "config", "hooks", "hooks/x", "objects/k"} {
		w.denied(t, "move_file", move("all/b.git/"+name, "away"))
	}
	for _, name := range []string{"HEAD", "config", "hooks/x", "refs/k"} {
		w.denied(t, "delete_file", m{"path": "all/b.git/" + name})
	}
	w.ok(t, "delete_file", m{"path": "all/b.git/description"})
	w.ok(t, "move_file", move("plain", "other"))
	w.ok(t, "delete_file", m{"path": "other/config-"})
}

// A box may make a repository of a directory while a file in it is edited, which can take long.
func TestRepositoryWhileEdited(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("x", 400_000) + "#1"
	w.put(t, "r/config", text)
	edits := []m{{"old_text": "x", "new_text": strings.Repeat("x", 12), "replace_all": true}}
	for i := range 60 {
		edits = append(edits, m{"old_text": fmt.Sprintf("x#%d", 1+i%2), "new_text": fmt.Sprintf("x#%d", 2-i%2)})
	}
	done := make(chan writ.Kind, 1)
	go func() {
		_, err := w.try(t, "edit_file", m{"path": "r/config", "edits": edits})
		done <- writ.KindOf(err)
	}()
	time.Sleep(100 * time.Millisecond)
	w.ok(t, "write_file", m{"path": "beside", "content": "x"}) // which does not wait for it
	select {
	case <-done:
		t.Fatal("inconclusive: it is done already")
	default:
	}
	for _, name := range []string{"r/HEAD", "r/objects/k", "r/refs/k"} {
		w.put(t, name, "x")
	}
	if kind := <-done; kind != writ.Denied {
		t.Errorf("the edit: %q", kind)
	}
	if got, err := os.ReadFile(w.path("r/config")); err != nil || string(got) != text {
		t.Errorf("the file has changed: %v", err)
	}
	if left, _ := filepath.Glob(w.path("r/.writ*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What is found directly after a change is undone.
func TestExchangeUndone(t *testing.T) {
	for _, there := range []bool{true, false} {
		root, err := os.OpenRoot(t.TempDir())
		must(t, err)
		defer root.Close()
		if there {
			must(t, root.WriteFile("config", []byte("old"), 0o600))
		}
		asked := 0
		_, err = place{dir: root, name: "config"}.replace([]byte("new"), func() error {
			if asked++; asked == 2 {
				return errors.New("no")
			}
			return nil
		})
		got, readErr := root.ReadFile("config")
		if err == nil || asked != 2 || there && string(got) != "old" || !there && !errors.Is(readErr, fs.ErrNotExist) {
			t.Errorf("there %v: %v, asked %d times, has %q (%v)", there, err, asked, got, readErr)
		}
		if left, _ := fs.Glob(root.FS(), ".writ*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// What somebody saves while a file is edited is not overwritten.
func TestEditKeepsWhatIsSavedMeanwhile(t *testing.T) {
	w := newWorld(t)
	edits := []m{{"old_text": "x", "new_text": strings.Repeat("x", 12), "replace_all": true}}
	for i := range 60 {
		edits = append(edits, m{"old_text": fmt.Sprintf("x#%d", 1+i%2), "new_text": fmt.Sprintf("x#%d", 2-i%2)})
	}
	const says = "was changed by somebody else meanwhile"
	for try := 0; ; try++ {
		w.put(t, "notes", strings.Repeat("x", 400_000)+"#1")
		done := make(chan writ.Result, 1)
		go func() {
			r, _ := w.try(t, "edit_file", m{"path": "notes", "edits": edits})
			done <- r
		}()
		time.Sleep(100 * time.Millisecond)
		w.put(t, "notes", "mine")
		r := <-done
		if got, err := os.ReadFile(w.path("notes")); r.IsError && (err != nil || string(got) != "mine") {
			t.Errorf("%.20q %v", got, err)
		}
		if strings.Contains(r.Content, says) {
			return
		}
		if try == 10 { // it was done before, or began after
			t.Fatalf("%+v", r)
		}
	}
}
