package protect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/policy"
	"golang.org/x/sys/unix"
)

// A part is what this test program does when a test starts it as another process.
const part = "WRIT_PROTECT_TEST"

func TestMain(m *testing.M) {
	parts := map[string]func([]string) error{"hold": holdPart, "blind": blindPart, "hidden": hiddenPart, "box": boxPart}
	name := os.Getenv(part)
	if name == "" {
		os.Exit(m.Run())
	}
	go func() {
		time.Sleep(time.Minute) // whatever goes wrong, nothing of this stays
		os.Exit(9)
	}()
	if err := parts[name](os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process starts a part.
func process(t *testing.T, name string, attr *syscall.SysProcAttr, args ...string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if attr != nil && attr.Credential != nil { // another user cannot get at what go test has built
		copied := filepath.Join(args[0], "test")
		text, err := os.ReadFile(self)
		if err := errors.Join(err, os.WriteFile(copied, text, 0o755)); err != nil {
			t.Fatal(err)
		}
		self = copied
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), part+"="+name)
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		need.Lacking(t, "another process cannot be started: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, in, bufio.NewReader(out)
}

// names lists a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestPlaceholders(t *testing.T) {
	root := workspace(t, "x=y", ".envrc=mine")
	before := names(t, root)
	f := finder(t, Options{})
	a, b := cover(t, f, root), cover(t, f, root)
	all := slices.Concat(policy.ConfigNames(), []string{"x"})
	slices.Sort(all)
	for _, c := range []*Cover{a, b} {
		if err := c.Prepare(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, names(t, root)); diff != "" {
			t.Errorf("during the run (-want +got):\n%s", diff)
		}
	}
	// The index of a third run knows them for what they are.
	c := cover(t, f, root)
	if diff := cmp.Diff([]string{"ro .envrc"}, lines(c)); diff != "" {
		t.Error(diff)
	}
	ended(t, c)
	if got := ended(t, a); got != nil {
		t.Errorf("moved %v", got)
	}
	if diff := cmp.Diff(all, names(t, root)); diff != "" {
		t.Errorf("one run is over, the other needs them (-want +got):\n%s", diff)
	}
	if got := ended(t, b); got != nil {
		t.Errorf("moved %v", got)
	}
	if diff := cmp.Diff(before, names(t, root)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(root + "/.envrc"); string(text) != "mine" || err != nil {
		t.Errorf(".envrc has %q, %v", text, err)
	}
}

// Git takes no notice of placeholders, on the host as well.
func TestGitIgnoresPlaceholders(t *testing.T) {
	root := workspace(t, "f=x")
	git(t, root, "init", "-q")
	c := cover(t, finder(t, Options{}), root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	git(t, root, "add", "-A")
	git(t, root, "commit", "-qm", "x")
	for _, args := range [][]string{{"status", "--short"}, {"diff"}, {"submodule", "status"}, {"check-attr", "-a", "f"}, {"fsck", "--no-progress"}} {
		if out := git(t, root, args...); out != "" {
			t.Errorf("git %v: %s", args, out)
		}
	}
	if out := git(t, root, "ls-files"); out != "f\n" {
		t.Errorf("committed: %s", out)
	}
	ended(t, c)
}

// A name that comes to be between Cover and Prepare is kept as what it is.
func TestPrepareLate(t *testing.T) {
	root := workspace(t)
	c := cover(t, finder(t, Options{}), root)
	put(t, root, ".envrc=mine")
	put(t, root, ".claude/settings.json=mine")
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ro .claude/", "ro .envrc"}, lines(c)); diff != "" {
		t.Error(diff)
	}
	if got := ended(t, c); got != nil {
		t.Errorf("moved %v, which was there before the run", got)
	}
}

// What is no longer a placeholder is never removed as one.
func TestPlaceholderReplaced(t *testing.T) {
	root := workspace(t)
	c := cover(t, finder(t, Options{}), root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".envrc", ".mcp.json", ".idea"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, root, ".envrc=new")
	put(t, root, ".idea/")
	os.Chmod(root+"/.vscode", 0o755)
	put(t, root, ".vscode/tasks.json=new")
	if diff := cmp.Diff([]string{".vscode", ".envrc"}, ended(t, c)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".idea"}, names(t, root)); diff != "" {
		t.Error(diff)
	}
}

// Many runs at once in one workspace, and in one inside it.
func TestConcurrentRuns(t *testing.T) {
	root := workspace(t, "sub/x=y", ".git/config=", "sub/.env=x")
	before, beforeSub := names(t, root), names(t, root+"/sub")
	f := finder(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			at := root
			if i%2 == 1 {
				at = root + "/sub"
			}
			for range 20 {
				c, err := f.Cover(context.Background(), at, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.Prepare(); err != nil {
					t.Error(err)
				}
				for _, p := range c.Placeholders {
					if _, err := os.Lstat(p.Path); err != nil {
						t.Error(err)
					}
				}
				if list, err := c.Done(); err != nil || len(list) > 0 {
					t.Errorf("%v, %v", list, err)
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([][]string{before, beforeSub}, [][]string{names(t, root), names(t, root+"/sub")}); diff != "" {
		t.Error(diff)
	}
}

// holdPart prepares a run and waits to be killed.
func holdPart(args []string) error {
	f, err := New(Options{State: args[0], Quarantine: args[0] + "/q"})
	if err != nil {
		return err
	}
	c, err := f.Cover(context.Background(), args[1], nil)
	if err != nil {
		return err
	}
	if err := c.Prepare(); err != nil {
		return err
	}
	fmt.Println(len(c.Placeholders))
	io.Copy(io.Discard, os.Stdin)
	return nil
}

func TestKilledAndRecovered(t *testing.T) {
	root, state := workspace(t, ".git/HEAD=x", "x=y", "sub/"), t.TempDir()
	before := names(t, root)
	cmd, _, out := process(t, "hold", nil, state, root)
	line, err := out.ReadString('\n')
	if err != nil || line == "0\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := New(Options{State: state, Quarantine: state + "/q"}); err == nil || err.Error() != state+"/placeholders is in use by another process; stop that, or use another state directory" {
		t.Errorf("a second Finder for one state: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	during := names(t, root)
	if len(during) < len(before)+20 {
		t.Fatalf("placeholders should have been left: %v", during)
	}
	// Since then people have put their own things in place of some.
	for _, name := range []string{".envrc", ".idea", ".bashrc", ".codex", ".mcp.json"} {
		os.Remove(filepath.Join(root, name))
	}
	put(t, root, ".envrc=mine")
	put(t, root, ".idea/x=mine")
	put(t, root, ".codex/")
	put(t, root, ".mcp.json>x")
	os.Chmod(root+"/.vscode", 0o755)
	put(t, root, ".vscode/settings.json=mine")
	finder(t, Options{State: state})
	want := slices.Concat(before, []string{".codex", ".envrc", ".idea", ".mcp.json", ".vscode"})
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, root)); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"HEAD"}, names(t, root+"/.git")); diff != "" {
		t.Errorf("recovered in .git (-want +got):\n%s", diff)
	}
}

// Killed at any moment, a run leaves nothing that the next start does not remove.
func TestKilledAnywhere(t *testing.T) {
	root, state := workspace(t, ".git/HEAD=x", "x=y"), t.TempDir()
	before := names(t, root)
	for i := range 20 {
		cmd, _, _ := process(t, "hold", nil, state, root)
		time.Sleep(time.Duration(i) * time.Millisecond) // the moment is the point
		cmd.Process.Kill()
		cmd.Wait()
	}
	finder(t, Options{State: state})
	if diff := cmp.Diff(before, names(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A journal that was tampered with is refused, and a symlink on the way leads nowhere.
func TestJournal(t *testing.T) {
	state, elsewhere := t.TempDir(), workspace(t)
	if err := os.WriteFile(state+"/placeholders", []byte("\"relative\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Options{State: state, Quarantine: state})
	if err == nil || !strings.HasSuffix(err.Error(), `the line "\"relative\"\n" is no path; remove the line`) {
		t.Errorf("got %v", err)
	}
	if err := unix.Mkdir(elsewhere+"/.idea", dirMode); err != nil {
		t.Fatal(err)
	}
	os.Chmod(elsewhere+"/.idea", os.ModeSticky|0o555)
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(elsewhere, link)
	journal := fmt.Sprintf("%q\n%q\n\"/cut sho", link+"/.idea", elsewhere+"/nothing")
	if err := os.WriteFile(state+"/placeholders", []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := New(Options{State: state, Quarantine: state})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if diff := cmp.Diff([]string{".idea"}, names(t, elsewhere)); diff != "" {
		t.Error(diff)
	}
}

// A box that swaps directories and symlinks all the time gets nothing done outside.
func TestSymlinkSwaps(t *testing.T) {
	outside := workspace(t, "keep=x", "d/.envrc=mine", ".git/config=[core]\nfsmonitor=x\n")
	before := names(t, outside)
	root := workspace(t, "a/d/x=y", "real/d/x=y")
	f := finder(t, Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		os.Symlink(outside, root+"/link")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			unix.Renameat2(unix.AT_FDCWD, root+"/a", unix.AT_FDCWD, root+"/link", unix.RENAME_EXCHANGE)
			os.WriteFile(root+"/a/d/.mcp.json", []byte("x"), 0o644)
			os.Symlink(outside, root+"/a/.git")
			os.Remove(root + "/a/.git")
		}
	})
	for range 200 {
		c, err := f.Cover(t.Context(), root, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Prepare(); err != nil && !strings.Contains(err.Error(), "keep coming and going") {
			t.Error(err)
		}
		if _, err := c.Done(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	os.Remove(outside + "/d/.mcp.json") // the swapper's own doing
	os.Remove(outside + "/.git/.git")
	if diff := cmp.Diff([][]string{before, {".envrc"}, {"config"}}, [][]string{names(t, outside), names(t, outside+"/d"), names(t, outside+"/.git")}); diff != "" {
		t.Error(diff)
	}
}

// blindPart works where the kernel watches three directories and no more.
func blindPart(args []string) error {
	if err := os.WriteFile("/proc/sys/user/max_inotify_watches", []byte("3"), 0); err != nil {
		return err
	}
	f, err := New(Options{State: args[0], Quarantine: args[0] + "/q"})
	if err != nil {
		return err
	}
	for i := range 3 {
		c, err := f.Cover(context.Background(), args[1], nil)
		if err != nil {
			return err
		}
		fmt.Println(strings.Join(lines(c), ","), strings.HasSuffix(c.index.blind, "raise fs.inotify.max_user_watches"))
		if err := c.Prepare(); err != nil {
			return err
		}
		dir := fmt.Sprintf("%s/d%d/e", args[1], i)
		err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/.envrc", nil, 0o644), os.WriteFile(dir+"/.env", nil, 0o644))
		list, doneErr := c.Done()
		if err := errors.Join(err, doneErr); err != nil || len(list) != 1 {
			return fmt.Errorf("moved %v, %w", list, err)
		}
	}
	return nil
}

func TestWatchesRunOut(t *testing.T) {
	root := workspace(t, "a/.env=x", "b/x=y", "c/x=y")
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	_, _, out := process(t, "blind", attr, t.TempDir(), root)
	text, _ := io.ReadAll(out)
	want := "pin a/,mask a/.env true\n" +
		"pin a/,mask a/.env,pin d0/,pin d0/e/,mask d0/e/.env true\n" +
		"pin a/,mask a/.env,pin d0/,pin d0/e/,mask d0/e/.env,pin d1/,pin d1/e/,mask d1/e/.env true\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

// hiddenPart is a user without privileges who hides what a run has left.
func hiddenPart(args []string) error {
	f, err := New(Options{State: args[0], Quarantine: args[0] + "/q"})
	if err != nil {
		return err
	}
	root := args[1]
	c, err := f.Cover(context.Background(), root, nil)
	if err != nil {
		return err
	}
	for _, dir := range []string{"a/b", "c", "d/.vscode/e", "e/r", "f"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, name := range []string{"a/b/.envrc", "c/.envrc", "d/.vscode/e/x", "e/r/.envrc", "f/.envrc"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	err = errors.Join(err, os.Chmod(root+"/a/b", 0o111), os.Chmod(root+"/a", 0o311), os.Chmod(root+"/c", 0o555), os.Chmod(root+"/d/.vscode", 0), os.Chmod(root+"/d", 0o511), os.Chmod(root+"/e", 0), os.Chmod(root+"/f", 0o600))
	if _, readErr := os.ReadDir(root + "/a"); err != nil || readErr == nil {
		return fmt.Errorf("the directory can be read: %w", err)
	}
	list, err := c.Done()
	for _, a := range list {
		fmt.Println(strings.TrimPrefix(a.Path, root+"/"))
	}
	info, statErr := os.Stat(root + "/a")
	if err := errors.Join(err, statErr); err != nil || info.Mode().Perm() != 0o311 {
		return fmt.Errorf("a has mode %v, %w", info.Mode(), err)
	}
	return nil
}

func TestHiddenByModes(t *testing.T) {
	need.Root(t)
	root, state := t.TempDir(), t.TempDir()
	const nobody = 65534
	for dir := state; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	for _, dir := range []string{root, state} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	_, _, out := process(t, "hidden", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, state, root)
	text, _ := io.ReadAll(out)
	if diff := cmp.Diff("a/b/.envrc\nc/.envrc\nd/.vscode\ne/r/.envrc\nf/.envrc\n", string(text)); diff != "" {
		t.Error(diff)
	}
}
