package cgroup

import (
	"os"
	"syscall"
	"testing"
)

// Signals interrupt the kernel while it changes a limit, and the change is made all the
// same: the runtime of this program sends itself some all the time.
func TestSignals(t *testing.T) {
	g := made(t, opened(t, "memory"))
	stop := make(chan struct{})
	defer close(stop)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					syscall.Kill(os.Getpid(), syscall.SIGURG)
				}
			}
		}()
	}
	for i := range 3000 {
		if err := g.Limit(Limits{Memory: int64(64+i%2) << 20}); err != nil {
			t.Fatal(err)
		}
	}
}
