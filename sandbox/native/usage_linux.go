package native

import (
	"time"

	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/usage"
)

// lookEvery is how often what a command has used is looked at.
const lookEvery = 250 * time.Millisecond

// meter ends the box when its processes have used more than they may, of what the kernel
// limits for none of them together. It is called until the command is over.
func (b *box) meter(l reach.Limits) {
	select {
	case <-b.over:
		return
	default:
	}
	// The launcher of a box that is used again has those of earlier commands on its account.
	count := usage.Of
	if b.runner.again {
		count = usage.Below
	}
	used, err := count(b.runner.cell.pid)
	switch {
	case err != nil:
		b.stop("unmeasured", 'k') // what it uses cannot be known
	case l.Disk > 0 && used.Written > l.Disk:
		b.stop("disk", 'k')
	case l.CPU > 0 && used.CPU > l.CPU:
		b.stop("cpu", 'k')
	default:
		time.AfterFunc(lookEvery, func() { b.meter(l) })
	}
}
