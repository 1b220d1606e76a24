package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// direct speaks plain HTTP with servers of this machine, in the goroutine that asks. The
// transport of net/http hands each request to two others and back, which after a commit,
// when nothing else runs, costs as much again as the exchange.
type direct struct {
	dial Dial

	mu   sync.Mutex
	idle map[string][]*directConn // by address, the latest last
}

// How many connections lie unused, and how long one may.
const (
	idleConns = 64
	idleFor   = 90 * time.Second
)

// What may come before the body of an answer: net/http's transport bounds both too, and
// its ReadResponse, which is used here, neither.
const (
	mostHead    = 1 << 20 // bytes
	mostInterim = 5       // answers that announce another
)

type directConn struct {
	net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
	head int // bytes that may still be read before the body; below zero: any number
	used time.Time
}

var errLongHead = fmt.Errorf("the server's answer has more than %d bytes before its body", mostHead)

// Read is what r reads by.
func (c *directConn) Read(p []byte) (int, error) {
	if c.head == 0 {
		return 0, errLongHead
	}
	if c.head > 0 && len(p) > c.head {
		p = p[:c.head]
	}
	n, err := c.Conn.Read(p)
	if c.head > 0 {
		c.head -= n
	}
	return n, err
}

// RoundTrip implements http.RoundTripper for http addresses. A request that was written is
// not sent again, whatever comes of it: only the caller knows whether that may be.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	c, err := d.take(req.Context(), address(req))
	if err != nil {
		return nil, because(req.Context(), err)
	}
	stop := context.AfterFunc(req.Context(), func() { c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.exchange(req)
	if err != nil {
		stop()
		c.Close()
		return nil, because(req.Context(), err)
	}
	resp.Body = &directBody{ReadCloser: resp.Body, d: d, c: c, stop: stop, to: address(req), req: req, keep: !resp.Close && !req.Close}
	return resp, nil
}

// because is why the one who asked gave up, where that is what an error is of.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func address(req *http.Request) string {
	if req.URL.Port() != "" {
		return req.URL.Host
	}
	return net.JoinHostPort(req.URL.Hostname(), "80")
}

func (c *directConn) exchange(req *http.Request) (*http.Response, error) {
	if err := errors.Join(req.Write(c.w), c.w.Flush()); err != nil {
		return nil, err
	}
	c.head = mostHead
	defer func() { c.head = -1 }()
	for range mostInterim + 1 {
		resp, err := http.ReadResponse(c.r, req)
		if err != nil && c.head == 0 { // a header that was cut reads as another fault
			err = errLongHead
		}
		if err != nil || resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
	return nil, fmt.Errorf("the server announced an answer %d times and gave none", mostInterim+1)
}

// take is a connection that nobody uses and that is still there, or a new one.
func (d *direct) take(ctx context.Context, to string) (*directConn, error) {
	for {
		d.mu.Lock()
		list := d.idle[to]
		if len(list) == 0 {
			d.mu.Unlock()
			break
		}
		c := list[len(list)-1]
		d.idle[to] = list[:len(list)-1]
		d.mu.Unlock()
		if time.Since(c.used) < idleFor && c.there() {
			return c, nil
		}
		c.Close()
	}
	conn, err := d.dial(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: conn, w: bufio.NewWriter(conn), head: -1}
	c.r = bufio.NewReader(c)
	return c, nil
}

// there reports whether the other side has neither closed nor said anything: what comes
// before a request is no answer to it.
func (c *directConn) there() bool {
	return c.r.Buffered() == 0 && quiet(c.Conn)
}

func (d *direct) put(to string, c *directConn) {
	c.used = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle == nil {
		d.idle = map[string][]*directConn{}
	}
	list := d.idle[to]
	for len(list) > 0 && (len(list) >= idleConns || time.Since(list[0].used) >= idleFor) {
		list[0].Close()
		list = list[1:]
	}
	d.idle[to] = append(list, c)
}

// CloseIdleConnections lets go of what nobody uses.
func (d *direct) CloseIdleConnections() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.idle {
		for _, c := range list {
			c.Close()
		}
	}
	d.idle = nil
}

// directBody gives its connection back when it was read to its end.
type directBody struct {
	io.ReadCloser
	d    *direct
	c    *directConn
	stop func() bool
	to   string
	req  *http.Request
	keep bool
	done bool // its end was seen
	shut bool
}

func (b *directBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.done = true
	} else if err != nil {
		err = because(b.req.Context(), err)
	}
	return n, err
}

// Close is by whoever reads.
func (b *directBody) Close() error {
	if b.shut {
		return nil
	}
	b.shut = true
	if !b.done { // an answer without a body ends before anybody reads
		_, err := b.ReadCloser.Read(nil)
		b.done = err == io.EOF
	}
	if b.stop() && b.keep && b.done {
		b.d.put(b.to, b.c)
		return nil
	}
	return b.c.Close()
}
