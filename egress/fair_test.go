package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// echo is a server that says back what it hears.
func echo(t *testing.T) net.Addr {
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
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr()
}

// holds opens a connection that stays open; nil where it was refused.
func (w *way) holds() net.Conn {
	c, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	c.Write([]byte{1})
	if n, _ := c.Read(make([]byte, 1)); n == 0 {
		c.Close()
		return nil
	}
	return c
}

// A run that opens ten thousand connections gets as many as it may, and its neighbour all
// that it wants, meanwhile.
func TestTenThousandConnections(t *testing.T) {
	at := echo(t)
	b := New(Options{Resolver: names{}})
	greedy, modest := b.way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite)), b.way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite))
	var opened, tried atomic.Int64
	var all sync.WaitGroup
	end := make(chan struct{})
	for range 100 {
		all.Go(func() {
			var mine []net.Conn
			for range 100 {
				if c := greedy.holds(); c != nil {
					mine = append(mine, c)
					opened.Add(1)
				}
				tried.Add(1)
			}
			<-end
			for _, c := range mine {
				c.Close()
			}
		})
	}
	slowest, during := time.Duration(0), 0
	for tried.Load() < 10_000 {
		began := time.Now()
		c := modest.holds()
		if c == nil {
			t.Fatal("its neighbour was refused")
		}
		c.Close()
		slowest, during = max(slowest, time.Since(began)), during+1
	}
	close(end)
	all.Wait()
	t.Logf("%d of 10,000 were let through; the neighbour had %d, the slowest in %v", opened.Load(), during, slowest)
	if n := opened.Load(); n != 256 || during < 10 || slowest > 5*time.Second {
		t.Errorf("%d were let through; the neighbour had %d, the slowest in %v", n, during, slowest)
	}
}

// Runs that take all that there is leave room for those that have little.
func TestRoomForTheModest(t *testing.T) {
	at := echo(t)
	b := New(Options{Resolver: names{}, Most: 256, Limits: Limits{Connections: 16}})
	open := 0
	for range 16 { // all that there is
		w := b.way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite))
		for range 16 {
			if c := w.holds(); c != nil {
				defer c.Close()
				open++
			}
		}
	}
	if want := 12*16 + 4*few; open != want {
		t.Errorf("%d were let through, want %d", open, want)
	}
	for range 4 {
		late := b.way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite))
		c := late.holds()
		if c == nil {
			t.Fatalf("%d are open, and whoever comes late has none", open)
		}
		defer c.Close()
	}
}

// What never says whole what it wants, and what never reads, ends; whoever else is served
// meanwhile.
func TestSlowly(t *testing.T) {
	at := echo(t)
	hello := helloFor(t, "good.test", 0)
	web := newWay(t, at, writ.ClassWrite, Limits{}, rule(t, at, writ.ClassWrite))
	for name, text := range map[string]string{
		"headers": "GET / HTTP/1.1\r\nHost: good.test\r\nX: " + fmt.Sprint(make([]byte, 100)), "a hello": string(hello),
		"half a record": string(hello[:20]), "the beginning of SSH": "SSH", "a request line": "GE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", web.mouth.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			go func() {
				for i := 0; i < len(text)-1; i++ { // all but the last
					if _, err := c.Write([]byte{text[i]}); err != nil {
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			}()
			c.SetReadDeadline(began.Add(2*beginWithin + 5*time.Second))
			_, err = io.Copy(io.Discard, c)
			if isTimeout(err) {
				t.Errorf("it was still open after %v", time.Since(began))
			}
			if d := time.Since(began); d < time.Second {
				t.Errorf("it ended after %v", d)
			}
		})
	}
	for range 20 {
		if c := web.holds(); c == nil {
			t.Error("somebody else is not served")
		} else {
			c.Close()
		}
	}
}

// A long upload during which the other side is silent is no idle connection.
func TestSlowUpload(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		in := bufio.NewReader(c)
		for n := 0; n < 10; {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			if line == "x\n" {
				n++
			}
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
		c.Close()
	}()
	w := newWay(t, l.Addr(), writ.ClassWrite, Limits{Idle: 300 * time.Millisecond}, rule(t, l.Addr(), writ.ClassWrite))
	c, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: good.test:%d\r\nContent-Length: 20\r\nConnection: close\r\n\r\n", netip.MustParseAddrPort(l.Addr().String()).Port())
	for range 10 {
		io.WriteString(c, "x\n")
		time.Sleep(100 * time.Millisecond)
	}
	if b, _ := io.ReadAll(c); len(b) < 4 || string(b[len(b)-4:]) != "done" {
		t.Errorf("%q", b)
	}
}
