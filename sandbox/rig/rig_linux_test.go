package rig

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/writ-run/writ/egress/lab"
)

// The image runs a command and has what tests use.
func TestStart(t *testing.T) {
	e := Start(t)
	c := dial(t, e)
	defer c.Close()
	made, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     &container.Config{Image: e.Image, Cmd: []string{"bash", "-c", "python3 -V && node -v && git --version && rg --version && jq --version && ps --version && curl --version"}},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(t.Context(), made.ID, client.ContainerRemoveOptions{Force: true})
	if _, err := c.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	wait := c.ContainerWait(t.Context(), made.ID, client.ContainerWaitOptions{})
	select {
	case err := <-wait.Error:
		t.Fatal(err)
	case end := <-wait.Result:
		if end.StatusCode != 0 {
			t.Errorf("a program is missing: exit %d", end.StatusCode)
		}
	}
}

const userOf = "WRIT_TEST_RIG_USER"

// TestUser is what TestShared runs in processes of their own.
func TestUser(t *testing.T) {
	dir := os.Getenv(userOf)
	if dir == "" {
		return
	}
	e, unlock := start(t, dir, 2)
	unlock()
	c := dial(t, e)
	info, err := c.Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("engine " + info.Info.ID + " " + strings.TrimSpace(string(text)) + "\n")
	select {} // until it is killed
}

// Two processes at once have one engine. It stays when one is killed, also when the
// keeper is and another comes, and ends when the last has gone.
func TestShared(t *testing.T) {
	needs(t)
	dir := t.TempDir()
	t.Cleanup(func() { end(t, dir) })
	one, two := user(t, dir), user(t, dir)
	first, second := one.engine(t), two.engine(t)
	if first != second || first == "" {
		t.Fatalf("two processes have the engines %q and %q", first, second)
	}
	pid, err := strconv.Atoi(first[strings.LastIndex(first, " ")+1:])
	if err != nil {
		t.Fatal(err)
	}
	one.kill()
	time.Sleep(4 * time.Second) // longer than an engine that nobody uses is kept
	if !runs(pid) {
		t.Fatal("the engine ended while a process used it")
	}
	text, err := os.ReadFile(filepath.Join(dir, "keeper"))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(keeper, syscall.SIGKILL)
	time.Sleep(2 * time.Second) // what it waited with holds its lock for a moment
	three := user(t, dir)
	if third := three.engine(t); third != first {
		t.Fatalf("a third process has the engine %q, not %q", third, first)
	}
	two.kill()
	three.kill()
	for range 300 {
		if !runs(pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the engine did not end after its last user")
}

type process struct {
	cmd  *exec.Cmd
	says *bufio.Scanner
}

func user(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestUser$")
	cmd.Env = append(os.Environ(), userOf+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) engine(t *testing.T) string {
	t.Helper()
	for p.says.Scan() {
		if rest, ok := strings.CutPrefix(p.says.Text(), "engine "); ok {
			return rest
		}
		t.Log(p.says.Text())
	}
	t.Fatal("a process has no engine")
	return ""
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// runs tells whether a process runs that is a dockerd.
func runs(pid int) bool {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return err == nil && strings.TrimSpace(string(name)) == "dockerd"
}

// An engine that a test in a lab starts is not in that lab: others use it too.
func TestFromLab(t *testing.T) {
	needs(t)
	if !lab.Run(t) {
		return
	}
	dir := t.TempDir()
	t.Cleanup(func() { end(t, dir) })
	_, unlock := start(t, dir, 2)
	unlock()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(pid, ns string) string {
		t.Helper()
		link, err := os.Readlink("/proc/" + pid + "/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	for _, ns := range []string{"net", "mnt"} {
		engine := of(strings.TrimSpace(string(text)), ns)
		if engine == of("self", ns) || engine != of(strconv.Itoa(os.Getppid()), ns) {
			t.Errorf("the engine has the lab's %s: %s", ns, engine)
		}
	}
}
