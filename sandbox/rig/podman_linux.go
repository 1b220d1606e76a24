package rig

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// limits are those that Podman gives a container of its own accord: less than its defaults,
// which are more than a build machine may have to give.
const limits = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
`

// Podman gives a test a Podman engine of its own, with the image that Start's has, which
// ends with the test. It mounts where nobody else sees it, and ends by itself when the test
// is killed.
func Podman(t testing.TB) Engine {
	t.Helper()
	from := Start(t)
	if _, err := exec.LookPath("podman"); err != nil {
		need.Lacking(t, "podman is not installed")
	}
	dir, err := os.MkdirTemp("", "writ-podman-")
	if err != nil {
		t.Fatal(err)
	}
	conf, socket := filepath.Join(dir, "containers.conf"), filepath.Join(dir, "podman.sock")
	if err := os.WriteFile(conf, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "podman", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
		"--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime", "runc", "system", "service", "--time", "120", "unix://"+socket)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := Engine{Host: "unix://" + socket, Image: "localhost/" + from.Image}
	t.Cleanup(func() {
		sweep(t, e)
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait() // its mounts go with it
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); !answers(t, e); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("podman does not answer; it said:\n%s", said)
		}
	}
	carry(t, from, e)
	return e
}

// carry brings the image of one engine to another.
func carry(t testing.TB, from, to Engine) {
	t.Helper()
	a, b := dial(t, from), dial(t, to)
	defer a.Close()
	defer b.Close()
	saved, err := a.ImageSave(t.Context(), []string{from.Image})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	loaded, err := b.ImageLoad(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if _, err := io.Copy(io.Discard, loaded); err != nil { // it is there when all is said
		t.Fatal(err)
	}
}
