package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// A running is a container whose first process waits.
type running struct {
	driver  *Driver
	engine  *client.Client
	id      string
	name    string
	user    string // of what waits in it, and of supervisors
	owner   string // of what commands leave in it
	leave   bool
	held    client.HijackedResponse // its first process ends with it
	dead    chan struct{}           // closed when that has ended
	unended atomic.Bool             // it was to be killed, and the engine did not say that it was
	hangs   atomic.Bool             // the engine has not answered while a command ran
	spent   atomic.Bool             // a command had as many processes as it may: of the next nobody would see it
}

// owner is who commands are.
func (p *plan) owner() string { return fmt.Sprintf("%d:%d", p.UID, p.GID) }

// create makes the container of a plan, with a way out where there is one.
func (p *plan) create(ctx context.Context, out *way) (*running, error) {
	config, host := *p.config, *p.host
	if out != nil {
		config.Hostname, config.NetworkDisabled = "", false // both are the sidecar's
		host.NetworkMode = container.NetworkMode("container:" + out.beside.id)
		host.Mounts = slices.Concat(host.Mounts, out.shown)
	}
	name, labels := p.identity()
	config.Labels = labels
	c, err := p.driver.run(ctx, name, &config, &host, func(from io.Reader) {
		var b [1]byte
		from.Read(b[:]) // it says nothing: this is its end
	})
	if err == nil {
		c.owner = p.owner()
		go c.beat()
	}
	return c, err
}

// beat has its first process know that the daemon is there.
func (c *running) beat() {
	c.driver.beat(c.dead, func(beat []byte) error {
		_, err := c.held.Conn.Write(beat)
		return err
	})
}

// run makes a container, and starts what waits in it. What that says is read until it ends.
// On error nothing is left.
func (d *Driver) run(ctx context.Context, name string, config *container.Config, host *container.HostConfig, read func(io.Reader)) (*running, error) {
	engine, err := d.talk()
	if err != nil {
		return nil, err
	}
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	made, err := d.made(ctx, engine, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: name})
	if err != nil {
		return nil, err
	}
	c := &running{driver: d, engine: engine, id: made, name: name, user: config.User, leave: !host.AutoRemove, dead: make(chan struct{})}
	held, err := answered(ctx, d.answers, func(ctx context.Context) (client.ContainerAttachResult, error) {
		return engine.ContainerAttach(ctx, made, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: config.AttachStderr})
	})
	if err == nil {
		c.held = held.HijackedResponse
		_, err = engine.ContainerStart(ctx, made, client.ContainerStartOptions{})
	}
	if err != nil {
		close(c.dead)
		return nil, errors.Join(d.failed(doingStart, err), c.end(), d.endShims(c.id))
	}
	go func() {
		defer close(c.dead)
		read(c.held.Reader)
	}()
	return c, nil
}

// made makes a container. An engine makes it also for a caller who has gone meanwhile, so
// nobody goes before it has said which one it is.
func (d *Driver) made(ctx context.Context, engine *client.Client, o client.ContainerCreateOptions) (string, error) {
	d.here.Store(o.Name, nil)
	made, err := engine.ContainerCreate(context.WithoutCancel(ctx), o)
	if err != nil {
		d.here.Delete(o.Name) // should it come all the same, it is nobody's
		return "", d.failed("make a container", err)
	}
	return made.ID, nil
}

func (c *running) gone() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// end ends the container and all that runs in it.
func (c *running) end() error {
	if c.held.Conn != nil {
		c.held.Close()
	}
	if !c.leave { // what stays on the disk goes when the next daemon begins
		defer c.driver.here.Delete(c.name)
	}
	within := endWithin
	if c.hangs.Load() {
		within = askWithin
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if !c.leave {
		return remove(ctx, c.engine, c.id)
	}
	_, err := c.engine.ContainerKill(ctx, c.id, client.ContainerKillOptions{Signal: "KILL"})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // it has ended
		return nil
	}
	return err
}

// remove removes a container, whatever runs in it.
func remove(ctx context.Context, engine *client.Client, id string) (err error) {
	for range endTries {
		_, err = engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // it has gone, or somebody else is at it
			return nil
		}
		if hangs(err) {
			return err
		}
		select { // Podman fails at one that ends by itself at that moment
		case <-ctx.Done():
			return err
		case <-time.After(endAgain):
		}
	}
	return err
}
