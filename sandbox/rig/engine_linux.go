package rig

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

//go:embed keeper.sh
var keeper string

// start gives the engine of a directory, which this process then uses as long as it
// lives. Nobody else gets it before unlock is called.
func start(t testing.TB, dir string, idle int) (e Engine, unlock func()) {
	t.Helper()
	socket := filepath.Join(dir, "docker.sock")
	if len(socket) > 100 {
		t.Fatalf("%s is too long for a socket; set WRIT_TEST_CACHE to a shorter path", socket)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := held(t, filepath.Join(dir, "lock"), syscall.LOCK_EX)
	held(t, filepath.Join(dir, "users"), syscall.LOCK_SH) // to the end of this process, however it ends
	e = Engine{Host: "unix://" + socket}
	fresh := !answers(t, e)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if !kept(t, dir) {
			keep(t, dir, idle)
			continue
		}
		if answers(t, e) {
			break
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("dockerd does not answer on %s; it said:\n%s", socket, said[max(0, len(said)-4000):])
		}
	}
	if fresh {
		sweep(t, e)
	}
	return e, func() { syscall.Close(lock) }
}

// held locks a file. It is a bare descriptor: a file that nobody refers to is closed.
func held(t testing.TB, path string, how int) int {
	t.Helper()
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for {
		err := syscall.Flock(fd, how)
		if err == nil {
			return fd
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}

// kept tells whether there is a keeper.
func kept(t testing.TB, dir string) bool {
	t.Helper()
	fd, err := syscall.Open(filepath.Join(dir, "keeper"), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	return syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// keep starts a keeper, and waits until it is one. It writes to a file: on a terminal or
// a pipe of this process, 'go test' would wait for it.
func keep(t testing.TB, dir string, idle int) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args := []string{"bash", "-c", keeper, "keeper", dir, strconv.Itoa(idle)}
	if inLab() {
		args = append([]string{"nsenter", "--target", strconv.Itoa(os.Getppid()), "--net", "--mount", "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait() // so that it is no zombie when it ends first
	for range 50 {
		if kept(t, dir) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inLab tells whether this test runs in a network of its own (package lab), which the
// engine would keep and others would get. Who waits for it is outside.
func inLab() bool {
	mine, err := os.Readlink("/proc/self/ns/net")
	outer, err1 := os.Readlink("/proc/" + strconv.Itoa(os.Getppid()) + "/ns/net")
	return err == nil && err1 == nil && mine != outer
}

func dial(t testing.TB, e Engine) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answers(t testing.TB, e Engine) bool {
	c := dial(t, e)
	defer c.Close()
	_, err := c.Ping(context.WithoutCancel(t.Context()), client.PingOptions{}) // also when a test cleans up
	return err == nil
}

// sweep removes the containers of tests that were killed.
func sweep(t testing.TB, e Engine) {
	t.Helper()
	c := dial(t, e)
	defer c.Close()
	left, err := c.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range left.Items {
		for tries := 20; ; tries-- { // Podman fails at one that ends by itself at that moment
			_, err := c.ContainerRemove(context.WithoutCancel(t.Context()), container.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
				break
			}
			if tries == 0 {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// end stops the engine of a directory, and waits until its keeper has gone too.
func end(t testing.TB, dir string) {
	if text, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	for range 600 {
		if !kept(t, dir) {
			syscall.Unmount(filepath.Join(dir, "data"), syscall.MNT_DETACH) // one that was killed leaves it mounted on itself
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("the engine of %s does not end", dir)
}
