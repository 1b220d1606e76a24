package docker

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// lastWithin bounds how long a sidecar stays for its last word where nobody waits for it;
// who does never waits that long.
const lastWithin = 65 * time.Second

// A word is what a sidecar said, and its last line, which comes when its command has ended.
// Whoever closes it waits for that no more.
type word struct {
	of     *sidecar
	rest   []byte // of what has been taken up and not been read
	lines  int    // that have been taken up
	bad    int
	closed chan struct{}
	gone   chan struct{} // closed when the way out has been ended
	once   sync.Once
}

// last has the sidecar say its last line, and ends the way out when that has come, or is
// not waited for any more.
func (w *way) last() io.ReadCloser {
	s := w.beside
	said := &word{of: s, closed: make(chan struct{}), gone: make(chan struct{})}
	s.held.CloseWrite()
	go func() {
		defer close(said.gone)
		select {
		case <-s.over:
		case <-s.dead:
		case <-said.closed:
		case <-time.After(lastWithin):
		}
		w.end() // what the engine keeps all the same is found by Reconcile
	}()
	return said
}

// Read implements io.Reader: what has come is there at once, then the last line is awaited.
func (w *word) Read(b []byte) (int, error) {
	if len(w.rest) == 0 && !w.take() {
		select {
		case <-w.of.over:
		case <-w.of.dead:
		case <-w.closed:
			return 0, os.ErrClosed
		}
		if !w.take() {
			return 0, io.EOF
		}
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// take takes up the lines that have come since, and whether there were any. One that was
// none is an empty list here, which is no object either.
func (w *word) take() bool {
	said := w.of.said.so()
	for _, line := range said.Lines[w.lines:] {
		w.rest = append(append(w.rest, line...), '\n')
	}
	bad := said.Skipped + said.Dropped
	w.rest = append(w.rest, bytes.Repeat([]byte("[]\n"), bad-w.bad)...)
	w.lines, w.bad = len(said.Lines), bad
	return len(w.rest) > 0
}

// Close implements io.Closer, and returns when the sidecar is gone.
func (w *word) Close() error {
	w.once.Do(func() { close(w.closed) })
	<-w.gone
	return nil
}
