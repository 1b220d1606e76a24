package lab

import (
	"net"
	"sync"
	"testing"
)

// Witness hears everything that comes to addresses and ports, by TCP and UDP, and says
// nothing.
type Witness struct {
	mu    sync.Mutex
	heard []string
}

// Watch starts one.
func Watch(t testing.TB, at ...string) *Witness {
	t.Helper()
	w := &Witness{}
	for _, a := range at {
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		p, err := net.ListenPacket("udp", a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(); p.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.hear("tcp " + a)
				c.Close()
			}
		}()
		go func() {
			b := make([]byte, 1500)
			for {
				if _, _, err := p.ReadFrom(b); err != nil {
					return
				}
				w.hear("udp " + a)
			}
		}()
	}
	return w
}

func (w *Witness) hear(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, what)
}

// Heard is what came since the last time.
func (w *Witness) Heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.heard
	w.heard = nil
	return out
}
