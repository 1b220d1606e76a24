package egress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// serve has a server of this machine's loopback take connections.
func serve(t *testing.T, with func(*net.TCPConn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { with(c.(*net.TCPConn)); c.Close() }()
		}
	}()
	return l.Addr()
}

// noise is bytes that begin as neither TLS nor HTTP.
func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	b[0] = 1
	return b
}

// What goes through is what was sent, and counted, whichever way it is handed over; also
// where others use the same buffers at the same time.
func TestHandedOver(t *testing.T) {
	server := serve(t, func(c *net.TCPConn) { io.Copy(c, c) })
	for _, size := range []int{1, little - 1, little, little + 1, piece - 1, piece, piece + 1, piece + little, 2*mostPiece + 17} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWay(t, server, writ.ClassWrite, Limits{}, rule(t, server, writ.ClassWrite))
			const at = 4
			var wg sync.WaitGroup
			for i := range at {
				wg.Go(func() {
					want := noise(uint64(i), size)
					c, err := net.Dial("tcp", w.mouth.String())
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					c.SetDeadline(time.Now().Add(20 * time.Second))
					go func() { c.Write(want); c.(*net.TCPConn).CloseWrite() }()
					if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%d bytes came back of %d, %v", len(got), len(want), err)
					}
				})
			}
			wg.Wait()
			w.logged()
			for _, e := range w.events {
				if e.Verdict != Allowed || e.Sent != int64(size) || e.Got != int64(size) {
					t.Errorf("%+v", e)
				}
			}
			if len(w.events) != at {
				t.Errorf("%d events", len(w.events))
			}
		})
	}
}

// One side that has said all it will goes on listening.
func TestHalfClosed(t *testing.T) {
	heard := make(chan int64, 1)
	server := serve(t, func(c *net.TCPConn) {
		c.Write([]byte("all"))
		c.CloseWrite()
		n, _ := io.Copy(io.Discard, c)
		heard <- n
	})
	w := newWay(t, server, writ.ClassWrite, Limits{}, rule(t, server, writ.ClassWrite))
	c, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	c.Write([]byte{1})
	if b, err := io.ReadAll(c); string(b) != "all" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if n, err := c.Write(noise(1, piece+1)); n != piece+1 || err != nil {
		t.Errorf("%d bytes were taken after that, %v", n, err)
	}
	c.Close()
	select {
	case n := <-heard:
		if n != 1+piece+1 {
			t.Errorf("%d bytes came", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("the end did not come")
	}
}
