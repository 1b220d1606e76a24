package rig

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"
)

// Own gives a test an engine of its own, without an image, that ends with the test: for
// what would be in the way of other tests.
func Own(t testing.TB) Engine {
	t.Helper()
	needs(t)
	dir := t.TempDir()
	e, unlock := start(t, dir, 2)
	unlock()
	t.Cleanup(func() { end(t, dir) })
	return e
}

// Small gives an engine an image with sh, bash and sleep alone, of this machine's files: the
// one that tests share takes minutes to make.
func Small(t testing.TB, e Engine) Engine {
	t.Helper()
	cmd := exec.Command("bash", "-c", `set -o pipefail; cd / && tar -ch bin/sh usr/bin/bash usr/bin/sleep $(ldd bin/sh usr/bin/bash usr/bin/sleep | grep -oE '/lib[^ ]+' | sort -u | cut -c 2-)`)
	files, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, e)
	defer c.Close()
	e.Image = "writ-small:test"
	said, err := c.ImageImport(t.Context(), client.ImageImportSource{Source: files, SourceName: "-"}, e.Image, client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return e
}

// Kill ends an engine that is the test's own as a machine in need of memory would: both of
// its programs at once, and what runs in its containers goes on. When the test ends
// another one takes over what is left, and removes it.
func Kill(t testing.TB, e Engine) {
	t.Helper()
	t.Cleanup(func() {
		_, unlock := start(t, home(e), 2)
		unlock()
	})
	signal(t, e, syscall.SIGKILL)
}

// Hang stops an engine that is the test's own: it takes connections and answers nobody,
// until the function that is returned has it go on, or the test ends.
func Hang(t testing.TB, e Engine) (goOn func()) {
	t.Helper()
	goOn = func() { signal(t, e, syscall.SIGCONT) }
	t.Cleanup(goOn)
	signal(t, e, syscall.SIGSTOP)
	return goOn
}

func home(e Engine) string { return filepath.Dir(strings.TrimPrefix(e.Host, "unix://")) }

// signal sends one to both programs of an engine.
func signal(t testing.TB, e Engine, s syscall.Signal) {
	t.Helper()
	var pids []int
	for _, file := range []string{"pid", "exec/containerd/containerd.pid"} {
		text, err := os.ReadFile(filepath.Join(home(e), file))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil || !strings.Contains(string(line), home(e)+"/") {
			t.Fatalf("process %d, of %s, is not this engine's: %q %v", pid, file, line, err)
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids { // the second may end with the first
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
