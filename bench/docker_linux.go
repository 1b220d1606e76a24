package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/sandbox/protect"
)

// containers measures a small command in a container: by calls to the engine alone, and in
// boxes of ours, in turns within one run. $BENCH_IMAGE names the image, which has /bin/true
// and /bin/sleep.
func containers(program string) error {
	image := os.Getenv("BENCH_IMAGE")
	if image == "" {
		image = "writ-sandbox:latest"
	}
	engine, err := client.New(client.WithHost(docker.Host("")))
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx := context.Background()
	if _, err := engine.ImageInspect(ctx, image); err != nil {
		row("containers", "not measured", err.Error())
		return nil
	}
	ws, err := os.MkdirTemp("/srv", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(ws)
	state := ws + "-state"
	defer os.RemoveAll(state)
	if err := errors.Join(os.Mkdir(state, 0o700), os.Chmod(ws, 0o755), os.Chown(ws, 65534, 65534)); err != nil {
		return err
	}
	d := docker.New(docker.Options{
		Image: image, Program: whole(program), Memory: 512 << 20, CPU: 1, Pids: 64, Tmpfs: 64 << 20, Deployment: "writ-bench", State: filepath.Join(state, "docker"),
	})
	defer d.Close()
	d.Own([]byte(state))
	names, err := protect.New(protect.Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: 2 * time.Second})
	if err != nil {
		return err
	}
	defer names.Close()
	d.Protect(names)
	bare, err := bareContainer(ctx, engine, image)
	if err != nil {
		return err
	}
	defer engine.ContainerRemove(ctx, bare, client.ContainerRemoveOptions{Force: true})
	per := func(s sandbox.Strategy) one {
		b := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{Strategy: s, Idle: time.Minute})
		return one{"docker, " + string(s), func() error { return boxed(b, ws) }}
	}
	if err := inPairs(one{"bare exec (create, start, wait)", func() error { return bareExec(ctx, engine, bare) }}, per(sandbox.PerAgent), 60); err != nil {
		return err
	}
	if err := inPairs(one{"bare container (create, start, exec, remove)", func() error { return bareCall(ctx, engine, image) }}, per(sandbox.PerCall), 20); err != nil {
		return err
	}
	return warm(d, ws)
}

// inPairs does one after the other, in turns, and compares the middle of both.
func inPairs(bare, ours one, n int) error {
	var took [2][]time.Duration
	for i := range n + 2 {
		for j, w := range []one{bare, ours} {
			began := time.Now()
			if err := w.run(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if i >= 2 { // the first ones are not like the others
				took[j] = append(took[j], time.Since(began))
			}
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	a, b := took[0][n/2], took[1][n/2]
	row(ours.name+", p50", b.Round(100*time.Microsecond).String(), fmt.Sprintf("%.2f× %s at %v", float64(b)/float64(a), bare.name, a.Round(100*time.Microsecond)))
	return nil
}

func bareContainer(ctx context.Context, c *client.Client, image string) (string, error) {
	made, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: image, Entrypoint: []string{"/bin/sleep", "1000"}, User: "65534:65534"},
		HostConfig: &container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}},
	})
	if err == nil {
		_, err = c.ContainerStart(ctx, made.ID, client.ContainerStartOptions{})
	}
	return made.ID, err
}

func bareExec(ctx context.Context, c *client.Client, id string) error {
	made, err := c.ExecCreate(ctx, id, client.ExecCreateOptions{AttachStdout: true, AttachStderr: true, Cmd: []string{"/bin/true"}})
	if err != nil {
		return err
	}
	at, err := c.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer at.Close()
	if _, err := io.Copy(io.Discard, at.Reader); err != nil {
		return err
	}
	is, err := c.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err == nil && is.ExitCode != 0 {
		err = fmt.Errorf("exit %d", is.ExitCode)
	}
	return err
}

func bareCall(ctx context.Context, c *client.Client, image string) error {
	id, err := bareContainer(ctx, c, image)
	if err == nil {
		err = bareExec(ctx, c, id)
	}
	_, gone := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
	return errors.Join(err, gone)
}

// warm keeps fifty boxes, and counts what they cost this process.
func warm(d *docker.Driver, ws string) error {
	debug.FreeOSMemory()
	before := resident()
	end, err := keep(d, ws, 50)
	defer end()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	row("50 warm containers", fmt.Sprintf("%.1f MiB", float64(resident()-before)/(1<<20)), "of the daemon's memory")
	return nil
}

// resident is the memory of this process.
func resident() int64 {
	var size, pages int64
	b, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(string(b), &size, &pages)
	return pages * int64(os.Getpagesize())
}
