package docker

import (
	"context"
	"crypto/hmac"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// marker is a file in the driver's directory: there were containers, and there may be some.
const marker = "used"

// Reconcile removes the containers of this deployment that nobody here has: what a daemon
// before left, which an engine that was away still has, and what an engine made for one
// that was killed before it heard of it. What cannot be proved to be ours is spared. It does
// nothing where there never were any, and is done before the first box at the latest.
func (d *Driver) Reconcile(ctx context.Context) (removed int, err error) {
	if _, err := os.Stat(filepath.Join(d.opts.State, marker)); err != nil {
		return 0, nil
	}
	d.reconciling.Lock()
	defer d.reconciling.Unlock()
	c, err := d.talk()
	if err != nil {
		return 0, err
	}
	mine := client.Filters{}.Add("label", labelDeployment+"="+d.opts.Deployment)
	found, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: mine})
	if err != nil {
		return 0, d.failed("list containers", err)
	}
	var wg sync.WaitGroup
	failed := make([]error, len(found.Items))
	for i, box := range found.Items {
		if !d.leftBehind(box) {
			continue
		}
		removed++
		wg.Go(func() {
			failed[i] = remove(ctx, c, box.ID)
			if box.State == container.StateCreated {
				failed[i] = errors.Join(failed[i], d.endShims(box.ID))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return removed, d.failed("remove a container", err)
	}
	if d.reconciled {
		return removed, nil
	}
	if err := d.clearAside(); err != nil {
		return removed, err
	}
	d.reconciled = true
	return removed, nil
}

// leftBehind reports whether a container is of this deployment, which anybody can write on a
// label, but not what binds the container's own name; and of nobody who is here.
func (d *Driver) leftBehind(box container.Summary) bool {
	for _, name := range box.Names {
		name = strings.TrimPrefix(name, "/")
		if hmac.Equal([]byte(box.Labels[labelProof]), []byte(d.proof(name))) {
			_, here := d.here.Load(name)
			return !here
		}
	}
	return false
}

// begin is called before a container is made: what was left is gone then, and the next
// daemon knows that there may be something.
func (d *Driver) begin(ctx context.Context) error {
	d.reconciling.Lock()
	clean := d.reconciled
	d.reconciling.Unlock()
	if !clean {
		if _, err := d.Reconcile(ctx); err != nil {
			return err
		}
	}
	d.reconciling.Lock()
	defer d.reconciling.Unlock()
	if d.begun {
		return nil
	}
	if err := os.WriteFile(filepath.Join(d.opts.State, marker), nil, 0o600); err != nil {
		return err
	}
	d.reconciled, d.begun = true, true
	return nil
}
