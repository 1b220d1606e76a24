package docker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// askWithin bounds how long an engine is asked what became of a container.
const askWithin = 5 * time.Second

// lost finds out why a supervisor is gone without a word. A container that does not run any
// more has taken everything with it, which is an end like others. Of an engine that does not
// answer nobody knows that; but what runs ends when it has not heard of the daemon for long,
// and until then it can write, so that is waited for.
func (c *running) lost(exit sandbox.Exit, silent error) (sandbox.Exit, error) {
	until, gone := time.Now().Add(askWithin), error(nil)
	for time.Now().Before(until) {
		is, err := c.asked()
		switch {
		case errdefs.IsNotFound(err) || err == nil && !is.Container.State.Running:
			exit.Code, exit.Signal = -1, "killed"
			exit.Limit = cmp.Or(exit.Limit, sandbox.ContainerEnded)
			return exit, nil
		case err != nil && gone == nil:
			gone, until = err, time.Now().Add(c.driver.silence+4*tick)
		case err == nil && gone != nil: // it came back
			c.end()
		}
		time.Sleep(endAgain) // an engine takes a moment to notice
	}
	if gone == nil {
		return exit, silent
	}
	exit.Code = -1
	return exit, writ.Fail(writ.Internal, fmt.Sprintf("the engine at %s was lost while the command ran, and how it ended is not known; what still ran of it has ended by itself since; start the engine again (systemctl restart docker), and look at what the command has done before it is tried again", Host(c.driver.opts.Host)), fmt.Errorf("%w: %w", silent, gone))
}

// asked is what the engine knows of the container.
func (c *running) asked() (client.ContainerInspectResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	return c.engine.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
}

// bounds are the limits of a container that a command can meet, as they are told.
func (p *plan) bounds() map[string]string {
	o, key := p.driver.opts, "sandboxing.docker."
	out := map[string]string{
		"memory":  fmt.Sprintf("%d MiB, %smemory_limit", o.Memory>>20, key),
		"tmpfs":   fmt.Sprintf("%d MiB, %stmpfs_size", o.Tmpfs>>20, key),
		"timeout": key + "timeout_seconds",
	}
	if p.Limits.Pids == 0 || p.Limits.Pids > uint64(o.Pids) {
		out["pids"] = fmt.Sprintf("%d, %spids_limit", o.Pids, key)
	}
	return out
}
