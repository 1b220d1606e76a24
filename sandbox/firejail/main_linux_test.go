package firejail_test

import (
	"flag"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/firejail"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"github.com/writ-run/writ/sandbox/wrapped"
)

func TestMain(m *testing.M) {
	probe.Main()
	wrapped.Main()
	os.Exit(m.Run())
}

// byWatch are attacks that end the box, where other drivers give them an error: an
// ordinary user cannot bound firejail's temporary file systems.
var byWatch = []string{"temporary_space", "temporary_space,_shared_memory", "temporary_space,_home", "temporary_names"}

// TestSuite runs the suite in a process of its own, as a user that firejail takes.
func TestSuite(t *testing.T) {
	need.Programs(t, "firejail")
	if os.Getenv("WRIT_TEST_ORDINARY") != "" {
		sandboxtest.Run(t, firejail.New(firejail.Options{}))
		return
	}
	cmd := ordinary(t, "-test.run=^TestSuite$", "-test.v", "-test.parallel="+flag.Lookup("test.parallel").Value.String())
	text, err := cmd.CombinedOutput()
	passed := 0
	for line := range strings.Lines(string(text)) {
		name, failed := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestSuite/")
		name, _, _ = strings.Cut(name, " (")
		group, row, _ := strings.Cut(name, "/")
		if failed && row != "" && (group != "limits" || !slices.Contains(byWatch, row)) {
			t.Errorf("%s failed", name)
		}
		if strings.Contains(line, "--- PASS: TestSuite/") {
			passed++
		}
	}
	if t.Failed() || passed < 100 {
		t.Fatalf("%d passed: %v\n%s", passed, err, text)
	}
}

// ordinary is this test again, as a user of the password file, with a directory of its
// own.
func ordinary(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		uid = someUser(t)
	} else if _, err := user.LookupId(strconv.Itoa(uid)); err != nil {
		need.Lacking(t, "firejail does not take user %d, who is not in the password file", uid)
	}
	dir := scratch(t)
	self, err := os.Executable()
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(self); err == nil {
			err = os.WriteFile(filepath.Join(dir, "test"), text, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WRIT_TEST_ORDINARY=1", "HOME="+dir, "TMPDIR="+dir, "WRIT_TEST_DIR="+dir)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		// Mounts of its own: firejail gives up when somebody mounts something elsewhere while
		// it looks whether its own mount is the last one, as Docker does all the time.
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Unshareflags: syscall.CLONE_NEWNS}
	}
	return cmd
}

// someUser is a user that a person could be.
func someUser(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if len(f) < 7 {
			continue
		}
		uid, _ := strconv.Atoi(f[2])
		if info, err := os.Stat(f[5]); uid >= 1000 && uid < 60000 && err == nil && info.IsDir() {
			return uid
		}
	}
	need.Lacking(t, "there is no ordinary user with a home directory; firejail takes no other")
	return 0
}

// scratch is a directory that is not below /tmp, which is the box's own.
func scratch(t *testing.T) string {
	t.Helper()
	cwd, _ := os.Getwd()
	for _, parent := range []string{os.Getenv("WRIT_TEST_DIR"), "/srv", "/opt", "/var/lib", cwd} {
		if parent == "" {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "writ-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Fatal("no directory for the test; set WRIT_TEST_DIR")
	return ""
}
