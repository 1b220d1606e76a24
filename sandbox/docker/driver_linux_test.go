package docker

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/rig"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// options are those of boxes on the rig, with a directory that is gone afterwards.
func options(t *testing.T) Options {
	t.Helper()
	e := rig.Start(t)
	return Options{
		Host: e.Host, Image: e.Image, Program: program, Memory: 512 << 20, CPU: 2, Pids: 256, Tmpfs: 64 << 20, Deployment: "test",
		State: filepath.Join(place(t), "state"), Sidecar: Sidecar{Pids: 32, Tmpfs: 8 << 20},
		Outlet: func(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
			return egress.New(egress.Options{}).Open(egress.Run{}).Serve(m), nil
		},
	}
}

// place is a directory that boxes can be shown.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "writ-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// workspace is one that belongs to the user of boxes.
func workspace(t *testing.T) string {
	t.Helper()
	ws := filepath.Join(place(t), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(ws, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	return ws
}

func driver(t *testing.T, o Options) *Driver {
	t.Helper()
	d := New(o)
	d.Own([]byte(o.State)) // whoever else runs these tests, on the engine that all share, has another
	f, err := protect.New(protect.Options{State: place(t), Quarantine: filepath.Join(place(t), "q")})
	if err != nil {
		t.Fatal(err)
	}
	d.Protect(f)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
	return d
}

func TestDriver(t *testing.T) { sandboxtest.Run(t, sandboxtest.Kept(driver(t, options(t)))) }

// On Podman as well, but for the number of files in /tmp, which it has no word for. All of
// it takes minutes, so CI has a part.
func TestPodman(t *testing.T) {
	o, e := options(t), rig.Podman(t)
	o.Host, o.Image = e.Host, e.Image
	groups := []string{"refuse", "hide", "tree"}
	if os.Getenv("WRIT_SOAK") != "" {
		groups = []string{"refuse", "read", "devices", "write", "knobs", "hide", "exec", "network", "hosts", "kernel", "privileges", "processes", "table", "tree", "use", "time", "environment", "io"}
	}
	sandboxtest.Run(t, sandboxtest.Kept(driver(t, o)), groups...)
}

func shell(script string, dir string) sandbox.Spec {
	return sandbox.Spec{Argv: []string{"bash", "-c", script}, Dir: dir}
}

// Protected names stay as they are, whether they exist or not; nothing is left of what
// stood in for them.
func TestProtected(t *testing.T) {
	d, ws := driver(t, options(t)), workspace(t)
	for _, dir := range []string{".git/hooks", "sub"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n", ".env": "SECRET=1\n", "sub/.env": "SECRET=2\n"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../elsewhere", filepath.Join(ws, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	own(t, ws)
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	o := sandboxtest.Command(t, d, c, shell(`
echo fine >file || echo CONTROL
for f in .git/config .git/hooks/pre-commit .envrc .vscode/settings.json; do echo x >$f && echo BROKEN $f; done
cat .env sub/.env && echo BROKEN read
mv .git aside && echo BROKEN mv; rm .mcp.json && echo BROKEN rm; mv sub aside && echo BROKEN sub; rm -rf .env && echo BROKEN rm2
true`, ws))
	if o.Error != nil || o.Exit.Code != 0 || o.Out != "" {
		t.Fatalf("%v", o)
	}
	if b, _ := os.ReadFile(filepath.Join(ws, "file")); string(b) != "fine\n" {
		t.Error("the control was not written")
	}
	entries, _ := os.ReadDir(ws)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".env", ".git", ".mcp.json", "file", "sub"}; !equal(names, want) {
		t.Errorf("left in the workspace: %q, want %q", names, want)
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func own(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 1000, 1000)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where no engine answers, everywhere that it was looked for is named, and what a daemon
// does not see.
func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	gone := &net.OpError{Op: "dial", Err: syscall.ENOENT}
	said := New(Options{}).failed("start a container", fmt.Errorf("cannot connect: %w", gone)).Error()
	for _, want := range []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/user/7/docker.sock", "/run/user/7/podman/podman.sock", "DOCKER_HOST is not set for the process that looked, and a daemon that a command started does not see the shell's", "sandboxing.docker.host"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	if said := New(Options{Host: "unix:///x"}).failed("start a container", gone).Error(); !strings.Contains(said, "answers at unix:///x; install") {
		t.Errorf("%q", said)
	}
}
