package sandbox

import (
	"fmt"
	"sync"
)

// Tail is a writer that keeps the last bytes written to it and counts all of
// them, so that a command that floods its output costs a bounded amount of
// memory and the end, where the error usually is, is not lost. It never fails
// and never blocks. It is safe for concurrent use; the zero Tail keeps nothing.
type Tail struct {
	max int

	mu    sync.Mutex
	buf   []byte // a ring once it has grown to max
	next  int    // where the ring continues
	total int64
}

// NewTail makes a Tail that keeps at most max bytes.
func NewTail(max int64) *Tail { return &Tail{max: int(max)} }

// Write keeps the end of p.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.total += int64(n)
	if n >= t.max {
		t.buf, t.next = append(t.buf[:0], p[n-max(t.max, 0):]...), 0
		return n, nil
	}
	if room := t.max - len(t.buf); room > 0 {
		k := min(room, len(p))
		t.buf, p = append(t.buf, p[:k]...), p[k:]
	}
	for len(p) > 0 {
		k := copy(t.buf[t.next:], p)
		t.next, p = (t.next+k)%t.max, p[k:]
	}
	return n, nil
}

// String is what was kept, in the order it was written.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[t.next:]) + string(t.buf[:t.next])
}

// Total is how many bytes were written.
func (t *Tail) Total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Cut says how much is missing at the front, for people; empty when nothing is.
func (t *Tail) Cut() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total == int64(len(t.buf)) {
		return ""
	}
	return fmt.Sprintf("the last %d of %d bytes", len(t.buf), t.total)
}
