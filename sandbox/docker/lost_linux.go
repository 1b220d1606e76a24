package docker

import (
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
// more has taken everything with it, which is an end like others; of an engine that does not
// answer nobody knows that, and what runs ends when it has not heard of the daemon for long.
func (c *running) lost(exit sandbox.Exit, silent error) (sandbox.Exit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	for {
		is, err := c.engine.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
		switch {
		case errdefs.IsNotFound(err) || err == nil && !is.Container.State.Running:
			exit.Code, exit.Signal, exit.Limit = -1, "killed", sandbox.ContainerEnded
			return exit, nil
		case err != nil:
			return exit, writ.Fail(writ.Internal, fmt.Sprintf("the engine at %s was lost while the command ran, and how it ended is not known; what still runs of it ends by itself within %s; start the engine (systemctl start docker), and look at what the command has done before it is tried again", Host(c.driver.opts.Host), c.driver.silence), fmt.Errorf("%w: %w", silent, err))
		}
		select { // an engine takes a moment to notice
		case <-ctx.Done():
			return exit, silent
		case <-time.After(endAgain):
		}
	}
}

// bounds are the limits of a container that a command can meet, as they are told.
func (p *plan) bounds() map[string]string {
	o, key := p.driver.opts, "sandboxing.docker."
	out := map[string]string{"memory": fmt.Sprintf("%d MiB, %smemory_limit", o.Memory>>20, key)}
	if p.Limits.Pids == 0 || p.Limits.Pids > uint64(o.Pids) {
		out["pids"] = fmt.Sprintf("%d, %spids_limit", o.Pids, key)
	}
	return out
}
