package docker

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/rig"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// feigned is an engine of the test's own, whose runtime runsc is a script.
func feigned(t *testing.T, script string) (o Options, engine *client.Client) {
	t.Helper()
	need.Programs(t, "runsc")
	o = options(t)
	e := rig.Own(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(strings.TrimPrefix(e.Host, "unix://")), "runsc"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	engine, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	w.WriteHeader(&tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755})
	w.Close()
	out, err := engine.ImageImport(t.Context(), client.ImageImportSource{Source: &root, SourceName: "-"}, "small:1", client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	o.Host, o.Image, o.Runtime, o.ReadOnly = e.Host, "small:1", runsc, true
	return o, engine
}

// left counts the processes of an engine that are there for a container.
func left(t *testing.T, o Options) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		text, _ := os.ReadFile(f)
		s := shim{args: strings.Split(string(text), "\x00")}
		if (s.watches() || s.runs()) && strings.Contains(string(text), filepath.Dir(strings.TrimPrefix(o.Host, "unix://"))+"/exec") {
			n++
		}
	}
	return n
}

// A runsc that does not start a container leaves nothing behind: not when a call is refused
// for it, and not when the daemon was killed at that moment.
func TestRunscNotStarted(t *testing.T) {
	o, engine := feigned(t, `case " $* " in *" start "*) echo it does not start >&2; exit 1;; esac; exec runsc --network=host --ignore-cgroups "$@"`)
	d, ws := driver(t, o), workspace(t)
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	if got := sandboxtest.Command(t, d, c, shell("true", ws)); got.Error == nil || !strings.Contains(got.Error.Error(), "with runtime runsc") || !strings.Contains(got.Error.Error(), "--network=host") {
		t.Errorf("a start that fails: %v", got)
	}
	if n := left(t, o); n != 0 {
		t.Errorf("%d processes are left of a call", n)
	}
	made, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: "test-killed",
		Config:     &container.Config{Image: o.Image, Cmd: []string{"/x"}, Labels: map[string]string{labelDeployment: o.Deployment, labelProof: d.proof("test-killed")}},
		HostConfig: &container.HostConfig{NetworkMode: "none", Runtime: runsc}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err == nil || left(t, o) == 0 {
		t.Fatalf("%d processes are left by the engine, %v: nothing is shown", left(t, o), err)
	}
	if removed, err := driver(t, o).Reconcile(t.Context()); err != nil || removed != 1 {
		t.Errorf("%d removed, %v", removed, err)
	}
	if n := left(t, o); n != 0 {
		t.Errorf("%d processes are left of a daemon before", n)
	}
}

// Another runtime under the name of runsc starts nothing: what watches over commands would
// be root of this machine's kernel.
func TestRunscIsNone(t *testing.T) {
	o, _ := feigned(t, `exec runc "$@"`)
	d, ws := driver(t, o), workspace(t)
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	if got := sandboxtest.Command(t, d, c, shell("true", ws)); got.Error == nil || !strings.Contains(got.Error.Error(), "this is not gVisor's kernel") {
		t.Errorf("%v", got)
	}
}

// A process of somebody else that is called like what a container leaves is not ended, and
// not waited for.
func TestShimsOfOthers(t *testing.T) {
	need.Root(t)
	const id = "4f1d5c0d3c7ef1e1b7c0a3d2c5b4a39281706f5e4d3c2b1a0f9e8d7c6b5a4938"
	dir := t.TempDir()
	o := Options{Host: "unix://" + filepath.Join(dir, "socket")}
	if err := os.WriteFile(filepath.Join(dir, "socket"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	called := func(uid uint32, name, about string) *exec.Cmd {
		c := exec.Command("/bin/sh", "-c", "read x", about)
		c.Args[0], c.SysProcAttr = name, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close() })
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c // with its own arguments: Start returns when it has them
	}
	others := []*exec.Cmd{called(7777, "containerd-shim-runsc-v1", id), called(7777, "runsc-sandbox", "/run/"+id+"/x")}
	found, err := shims(id, 7777)
	if err != nil || len(found) != 2 {
		t.Fatalf("with their user's engine: %v %v", found, err)
	}
	began := time.Now()
	if err := New(o).endShims(id); err != nil || time.Since(began) > endWithin/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	for _, c := range others {
		if err := c.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%q: %v", c.Args, err)
		}
	}
}
