package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
)

// sockets are where engines usually listen: Docker's, Podman's, and those of a user's own.
func sockets() []string {
	out := []string{"/var/run/docker.sock", "/run/podman/podman.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		out = append(out, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman/podman.sock"))
	}
	return out
}

// Host is the engine that is meant: the one that is named, DOCKER_HOST, or the first usual
// socket that there is.
func Host(named string) string {
	for _, host := range []string{named, os.Getenv("DOCKER_HOST")} {
		if host != "" {
			return host
		}
	}
	for _, path := range sockets() {
		if _, err := os.Stat(path); err == nil {
			return "unix://" + path
		}
	}
	return "unix://" + sockets()[0]
}

// talk is the client, which finds out by itself what the engine understands.
func (d *Driver) talk() (*client.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine != nil {
		return d.engine, nil
	}
	host := Host(d.opts.Host)
	if !strings.HasPrefix(host, "unix://") {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver docker reaches its engine by a socket of this machine, since boxes are shown directories of it, and not at "+host+"; name one as unix:///path", nil)
	}
	bounded := &http.Client{CheckRedirect: client.CheckRedirect, Transport: &http.Transport{ResponseHeaderTimeout: d.answers, MaxIdleConns: 6, IdleConnTimeout: 30 * time.Second}}
	c, err := client.New(client.WithHTTPClient(bounded), client.WithHost(host), client.WithScheme("http"))
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+host+" cannot be used as the engine of driver docker; name a socket as unix:///path", err)
	}
	d.engine = c
	return c, nil
}

// oldest is the first version of the interface that has all that boxes need.
const oldest = "1.41"

// reachable says whether there is an engine, and one that will do.
func (d *Driver) reachable(ctx context.Context) error {
	c, err := d.talk()
	if err != nil {
		return err
	}
	is, err := answered(ctx, d.silence, func(ctx context.Context) (client.PingResult, error) {
		return c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	})
	if err != nil {
		return d.failed("ask the engine", err)
	}
	if is.OSType != "" && is.OSType != "linux" {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the engine has containers of "+is.OSType+", not of Linux", nil)
	}
	if older(is.APIVersion, oldest) {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the engine speaks version "+is.APIVersion+" of its interface and "+oldest+" is needed; install Docker 20.10 or later", nil)
	}
	about, err := c.Info(ctx, client.InfoOptions{})
	if err != nil {
		return d.failed("tell about itself", err)
	}
	version, err := c.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return d.failed("tell about itself", err)
	}
	d.mu.Lock()
	d.podman = slices.ContainsFunc(version.Components, func(c system.ComponentVersion) bool { return strings.Contains(c.Name, "Podman") })
	d.root, d.apparmor = about.Info.DockerRootDir, slices.ContainsFunc(about.Info.SecurityOptions, func(o string) bool { return strings.Contains(o, "apparmor") })
	d.mu.Unlock()
	return nil
}

func older(a, b string) bool {
	var x, y [2]int
	fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return x[0] < y[0] || x[0] == y[0] && x[1] < y[1]
}

// failed turns an error of the engine into one with something to do.
func (d *Driver) failed(doing string, err error) error {
	var known *writ.Error
	host := Host(d.opts.Host)
	say := func(msg string) error { return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+msg, err) }
	switch {
	case errors.As(err, &known):
		return err
	case hangs(err):
		return say("the engine at " + host + " is there and does not answer; restart it (systemctl restart docker), or ask its log what it waits for (journalctl -u docker)")
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	case client.IsErrConnectionFailed(err) && errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "permission denied while trying to connect"):
		return say("this user may not use the engine at " + host + "; add it to the group of that socket (usermod -aG docker USER), or run one of its own (rootless)")
	case client.IsErrConnectionFailed(err), undialled(err):
		return say("no engine of Docker or Podman answers at " + host + d.elsewhere() + "; install one (Debian: apt-get install docker.io) or start it (systemctl start docker), or say where it is: sandboxing.docker.host")
	case errdefs.IsNotFound(err) && doing == doingImage:
		return say("the engine has no image " + d.opts.Image + "; build one: writ image build sandbox, or name another: sandboxing.docker.image")
	case strings.Contains(err.Error(), "nknown runtime"), strings.Contains(err.Error(), "untime") && strings.Contains(err.Error(), "not found"):
		return say("the engine has no runtime " + d.opts.Runtime + "; install it and add it to the engine's settings (runtimes in /etc/docker/daemon.json), or leave sandboxing.docker.runtime out")
	case d.opts.Runtime == runsc && doing == doingStart:
		return say("the engine could not " + doing + " with runtime runsc: " + err.Error() + "; a build that is older than this kernel needs runtimeArgs --network=host and --ignore-cgroups in the engine's settings")
	}
	return say("the engine could not " + doing + ": " + err.Error())
}

// undialled reports whether an engine could not be connected to, as the client says it of
// a connection that it takes over.
func undialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// elsewhere says where an engine was looked for, where nobody named one.
func (d *Driver) elsewhere() string {
	if d.opts.Host != "" || os.Getenv("DOCKER_HOST") != "" {
		return ""
	}
	return ", and none is at " + strings.Join(sockets()[1:], ", ") + "; DOCKER_HOST is not set for the process that looked, and a daemon that a command started does not see the shell's"
}

const (
	doingImage = "look at the image"
	doingStart = "start a container"
)
