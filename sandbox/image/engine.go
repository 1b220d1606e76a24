package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ"
)

// Engine makes and keeps images: Docker, or Podman by the same API.
type Engine struct {
	Host string
	api  *client.Client
}

// Open finds an engine that answers: the one at host, else of $DOCKER_HOST, else the first
// of the sockets where Docker and Podman listen.
func Open(ctx context.Context, host string) (*Engine, error) {
	if host == "" {
		host = os.Getenv(client.EnvOverrideHost)
	}
	if host != "" {
		e, err := dial(ctx, host)
		if err != nil {
			return nil, writ.Fail(writ.SandboxUnavailable, fmt.Sprintf("no container engine answers at %s (%v); start it there, or name another with --host unix:///path/to/its.sock", host, err), nil)
		}
		return e, nil
	}
	var tried []string
	for _, path := range sockets() {
		if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
			tried = append(tried, path+": not there")
			continue
		}
		e, err := dial(ctx, "unix://"+path)
		if err == nil {
			return e, nil
		}
		if errors.Is(err, os.ErrPermission) {
			err = errors.New("you may not use it; its group may, or root")
		}
		tried = append(tried, fmt.Sprintf("%s: %v", path, err))
	}
	return nil, writ.Fail(writ.SandboxUnavailable, "no container engine answers ("+strings.Join(tried, "; ")+"); install one (on Debian: apt install docker.io) and start it, or say where it listens with --host or DOCKER_HOST", nil)
}

// sockets are where engines listen, in the order in which they are tried.
func sockets() []string {
	out := []string{"/var/run/docker.sock", "/run/podman/podman.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		out = append(out, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman/podman.sock"))
	}
	return out
}

func dial(ctx context.Context, host string) (*Engine, error) {
	api, err := client.New(client.FromEnv, client.WithHost(host)) // certificates come from the environment
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := api.Ping(soon, client.PingOptions{}); err != nil {
		api.Close()
		return nil, err
	}
	return &Engine{Host: host, api: api}, nil
}

// Close lets go of the engine.
func (e *Engine) Close() error { return e.api.Close() }
