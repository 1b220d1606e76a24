package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// Stdio connects to a server over its output and its input, a message a line. Both
// are closed with the connection, also when connecting fails; closing them must end
// a Read or Write that is under way, as it does for pipes. The server's process is
// its starter's to end.
func Stdio(ctx context.Context, from io.ReadCloser, to io.WriteCloser, o Options) (*Conn, error) {
	c := newConn(o)
	p := &pipes{c: c, from: from, to: to, out: make(chan []byte, 16)}
	c.link = p
	c.work.Go(p.read)
	c.work.Go(p.write)
	if err := c.negotiate(ctx, p.view); err != nil {
		c.Close()
		return nil, err
	}
	c.spawn(p.listen)
	return c, nil
}

// pipes is the link of a server that is a process.
type pipes struct {
	c    *Conn
	from io.ReadCloser
	to   io.WriteCloser
	out  chan []byte
	sdk  atomic.Pointer[view]
	n    int // views made, all by negotiate
}

func (p *pipes) close() {
	p.from.Close()
	p.to.Close()
}

var errStuck = errors.New("the server does not read what it is sent")

// write is the one writer. A server that does not read holds up this goroutine and no
// caller, and then loses its connection.
func (p *pipes) write() {
	for {
		select {
		case <-p.c.life.Done():
			return
		case line := <-p.out:
			stuck := time.AfterFunc(p.c.o.WriteTimeout, func() { p.c.fail(errStuck) })
			_, err := p.to.Write(line)
			stuck.Stop()
			if err != nil {
				p.c.fail(fmt.Errorf("writing to the server: %w", err))
				return
			}
		}
	}
}

// read is the one reader.
func (p *pipes) read() {
	lines := lineReader{r: bufio.NewReaderSize(p.from, 64<<10), most: p.c.o.MaxMessage}
	for {
		line, err := lines.next()
		if err == nil {
			err = p.spoken(line)
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed its output")
		}
		p.c.fail(fmt.Errorf("reading from the server: %w", err))
		return
	}
}

// spoken takes a line of the server's. What is no message is shown as it is: mostly it says
// itself what it does there.
func (p *pipes) spoken(line []byte) error {
	err := p.c.take(line, nil)
	if err == nil {
		return nil
	}
	line = p.c.o.Hide(line)
	if _, wrong := parse(line); wrong == nil {
		return err
	}
	return fmt.Errorf("it wrote the line %q on its standard output, which is for messages of the protocol alone (%w); what it has to say to people belongs on standard error", cut(string(line), mostLine), err)
}

// mostLine is how much is shown of a line that is no message.
const mostLine = 160

func (p *pipes) exchange(ctx context.Context, k *call, method string, params []byte) (json.RawMessage, error) {
	select {
	case p.out <- oneLine(request(k.id, method, params)):
	case <-ctx.Done():
		if err := p.c.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
	result, err := p.c.wait(k)
	if ctx.Err() != nil && p.c.Err() == nil && err != nil {
		p.say(request("", "notifications/cancelled", []byte(`{"requestId":`+strconv.Quote(k.id)+`,"reason":"the caller does not wait any more"}`)))
	}
	return result, err
}

func (p *pipes) say(msg []byte) {
	select {
	case p.out <- oneLine(msg):
	default: // the server does not read; write is about to notice
	}
}

// listen asks for changes where the version wants that; older servers just tell.
func (p *pipes) listen() {
	want := p.c.tells()
	if want == nil || !p.c.modern() {
		return
	}
	p.c.relisten(func() bool {
		_, err := p.c.Call(p.c.life, "subscriptions/listen", want, nil)
		var refused *ServerError
		return !errors.As(err, &refused)
	})
}
