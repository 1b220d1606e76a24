package protect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// boxPart is a box: it has the mounts of a Cover, gives up every capability, and tries
// things. It says what happened to each, one a line.
func boxPart(args []string) error {
	runtime.LockOSThread()
	var mounts []Mount
	if err := json.Unmarshal([]byte(args[1]), &mounts); err != nil {
		return err
	}
	root := args[0]
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := bind(Mount{Path: root, How: Pin, Dir: true}); err != nil {
		return err
	}
	for _, m := range mounts {
		if err := bind(m); err != nil {
			return fmt.Errorf("mount %+v: %w", m, err)
		}
	}
	if err := os.Chdir(root); err != nil { // into the mounts
		return err
	}
	if err := giveUp(); err != nil {
		return err
	}
	for _, a := range attacks {
		fmt.Printf("%s: %s\n", a.name, told(a.do()))
	}
	return nil
}

// bind makes one mount as a driver does.
func bind(m Mount) error {
	from := m.Path
	attrs := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	switch {
	case m.How == Masked && m.Dir:
		return unix.Mount("tmpfs", m.Path, "tmpfs", unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID, "mode=0,size=4k")
	case m.How == Masked:
		from = "/dev/null"
		attrs.Attr_set |= unix.MOUNT_ATTR_RDONLY
	case m.How == ReadOnly:
		attrs.Attr_set |= unix.MOUNT_ATTR_RDONLY
	case m.How != Pin:
		return errors.New("how?")
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, from, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attrs); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, m.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// giveUp drops all capabilities of this thread, and of the programs it starts.
func giveUp() error {
	const noRoot, locked = 1 << 0, 1 << 1
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|locked, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func told(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

func writeTo(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

func read(name string) error {
	_, err := os.ReadFile(name)
	return err
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

func shell(line string) error {
	out, err := exec.Command("/bin/sh", "-ec", line).CombinedOutput()
	if err != nil {
		return fmt.Errorf("failed: %s", strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", " | "))
	}
	if len(out) > 0 {
		return fmt.Errorf("said: %s", strings.TrimSpace(string(out)))
	}
	return nil
}

const busy, readOnly, denied, cross = "device or resource busy", "read-only file system", "permission denied", "invalid cross-device link"

// attacks on a workspace, each next to what is allowed and shows that the attempt is alive.
var attacks = []struct {
	name string
	do   func() error
	want string
}{
	{"write a file", func() error { return writeTo("new") }, "done"},
	{"write a hook", func() error { return writeTo(".git/hooks/pre-commit") }, readOnly},
	{"write beside the hooks", func() error { return writeTo(".git/scratch") }, "done"},
	{"write the config", func() error { return writeTo(".git/config") }, readOnly},
	{"replace the config", func() error { return os.Rename("new", ".git/config") }, cross},
	{"replace the config from beside", func() error { return os.Rename(".git/scratch", ".git/config") }, busy},
	{"replace a file beside it", func() error { return os.Rename(".git/scratch", ".git/scratch2") }, "done"},
	{"remove the config", func() error { return os.Remove(".git/config") }, busy},
	{"make config.worktree", func() error { return writeTo(".git/config.worktree") }, denied},
	{"make a module", func() error { return os.Mkdir(".git/modules/x", 0o755) }, readOnly},
	{"move .git", func() error { return os.Rename(".git", "git") }, busy},
	{"move a directory", func() error { return os.Rename("plain", "plain2") }, "done"},
	{"copy .git around it", func() error { return shell("mv .git x 2>&1 && cp -r x .git") }, "failed: mv: cannot move '.git' to 'x': Device or resource busy"},
	{"copy a directory around it", func() error { return shell("mv plain2 x && cp -r x plain && rm -r x") }, "done"},
	{"exchange .git", func() error { return exchange(".git", "plain") }, busy},
	{"exchange directories", func() error { return exchange("plain", "plain3") }, "done"},
	{"move what a secret is in", func() error { return os.Rename("deep/er", "deep/x") }, busy},
	{"move what that is in", func() error { return os.Rename("deep", "x") }, busy},
	{"move a neighbour", func() error { return os.Rename("deep/other", "deep/x") }, "done"},
	{"read a secret", func() error { return read(".env") }, denied},
	{"read a secret further down", func() error { return read("deep/er/.env") }, denied},
	{"read a directory of secrets", func() error { _, err := os.ReadDir(".aws"); return err }, denied},
	{"read beside a secret", func() error { return read("deep/er/x") }, "done"},
	{"read by another way", func() error { return read("/proc/self/cwd/.env") }, denied},
	{"write a secret", func() error { return writeTo(".env") }, denied},
	{"link a secret", func() error { return os.Link(".env", "x") }, cross},
	{"link the config", func() error { return os.Link(".git/config", ".git/x") }, cross},
	{"link beside the config", func() error { return os.Link(".git/HEAD", ".git/x") }, "done"},
	{"make .envrc", func() error { return writeTo(".envrc") }, denied},
	{"make envrc", func() error { return writeTo("envrc") }, "done"},
	{"move onto .envrc", func() error { return os.Rename("envrc", ".envrc") }, busy},
	{"remove .envrc", func() error { return unix.Unlink(".envrc") }, busy},
	{"exchange .envrc", func() error { return exchange("envrc", ".envrc") }, busy},
	{"link onto .envrc", func() error { return os.Link("envrc", ".envrc") }, "file exists"},
	{"remove .claude", func() error { return unix.Rmdir(".claude") }, busy},
	{"move .claude", func() error { return os.Rename(".claude", "x") }, busy},
	{"write in .claude", func() error { return writeTo(".claude/settings.json") }, readOnly},
	{"open .claude up", func() error { return os.Chmod(".claude", 0o777) }, readOnly},
	{"remove a directory", func() error { return unix.Rmdir("deep/empty") }, "done"},
	{"write through a symlink", func() error { return writeTo(".mcp.json") }, readOnly},
	{"write where it leads", func() error { return writeTo("conf/mcp") }, readOnly},
	{"replace the symlink", func() error { return os.Rename("envrc", ".mcp.json") }, busy},
	{"remove the symlink", func() error { return os.Remove(".mcp.json") }, busy},
	{"read through the symlink", func() error { return read(".mcp.json") }, "done"},
	{"write where nothing is yet", func() error { return writeTo("conf/later") }, denied},
	{"unmount", func() error { return unix.Unmount(".git/hooks", unix.MNT_DETACH) }, "operation not permitted"},
	{"mount over", func() error { return unix.Mount("plain", ".git", "", unix.MS_BIND, "") }, "operation not permitted"},
	{"git works", func() error {
		return shell("export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; git add -A 2>&1; git -c user.name=n -c user.email=e commit -qm x 2>&1; git status --short 2>&1; git show --stat --format= HEAD -- .envrc .claude .gitattributes")
	}, "done"},
	{"git init works", func() error { return shell("git init -q inner && cd inner && git status --short") }, "done"},
	{"leave things", func() error {
		return shell("mkdir -p evil/.git/hooks late && cp -r inner/.git/. evil/.git && echo x > evil/.git/hooks/post-checkout && printf '[core]\\n\\tfsmonitor = x\\n' >> evil/.git/config && echo x > late/.envrc && echo x > sub/.GIT && echo x > .git/commondir")
	}, "done"},
}

func TestInABox(t *testing.T) {
	root := workspace(t, "file=y", ".gitignore=.env\n.aws\n", ".env=secret", "deep/er/.env=secret", "deep/er/x=y", "deep/other/", "deep/empty/", ".aws/credentials=x", "plain/x=y", "plain3/", "sub/x=y",
		".mcp.json>conf/mcp", "conf/mcp=x", ".vscode>conf/later")
	git(t, root, "init", "-q")
	c := cover(t, finder(t, Options{}), root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c.Mounts)
	if err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	cmd, _, out := process(t, "box", attr, root, string(text))
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the box: %v", err)
	}
	var want []string
	for _, a := range attacks {
		want = append(want, a.name+": "+a.want)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(said)), "\n")); diff != "" {
		t.Errorf("in the box (-want +got):\n%s", diff)
	}
	moved := ended(t, c)
	if diff := cmp.Diff([]string{".git/commondir", "evil/.git/config", "evil/.git/hooks/post-checkout", "late/.envrc", "sub/.GIT"}, moved); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{".env": "secret", "deep/er/.env": "secret", "conf/mcp": "x"} {
		if got, err := os.ReadFile(filepath.Join(root, name)); string(got) != want || err != nil {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	for _, p := range c.Placeholders {
		if _, err := os.Lstat(p.Path); err == nil {
			t.Errorf("%s is still there", p.Path)
		}
	}
	if got := names(t, root+"/.git/hooks"); len(got) == 0 || strings.Contains(strings.Join(got, " "), "pre-commit ") {
		t.Errorf("hooks: %v", got)
	}
}
