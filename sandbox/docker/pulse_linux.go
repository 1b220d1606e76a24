package docker

import (
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A beat is a word of the daemon to what waits in a container: a byte, for how many ticks
// the next one may be awaited. It is there because an engine that is killed leaves the
// streams of its containers open: nobody inside would see that there is nobody outside.
const (
	tick      = 500 * time.Millisecond
	beatEvery = 5 * time.Second
	silence   = 20 * time.Second // four beats: a daemon that is merely busy says one of them
)

// beat says so until somebody has gone.
func (d *Driver) beat(gone <-chan struct{}, say func(beat []byte) error) {
	every := time.NewTicker(d.beatEvery)
	defer every.Stop()
	for say([]byte{byte(d.silence / tick)}) == nil {
		select {
		case <-gone:
			return
		case <-every.C:
		}
	}
}

// A pulse is how long the daemon may still be silent. It counts ticks that this process
// lived through, and not the clock: a container that was paused has missed no beat, they
// are there to be read when it goes on.
type pulse struct{ left atomic.Int32 }

// watch calls lost when the daemon was silent for too long. Until the first beat that is
// as long as it usually is.
func (p *pulse) watch(lost func()) {
	p.left.Store(int32(silence / tick))
	go func() {
		for p.left.Add(-1) >= 0 {
			time.Sleep(tick)
		}
		lost()
	}()
}

// heard takes up a beat, or several that came together.
func (p *pulse) heard(beats []byte) {
	if n := len(beats); n > 0 {
		p.left.Store(int32(beats[n-1]))
	}
}

// attend listens to nothing but beats, and returns when the daemon has let go. Where it is
// not heard any more this process ends, and a container with its first one.
func (p *pulse) attend(from io.Reader) {
	var b [64]byte
	for {
		n, err := from.Read(b[:])
		p.heard(b[:n])
		if err != nil {
			return
		}
	}
}

// leave ends this process.
func leave() { unix.Exit(1) }
