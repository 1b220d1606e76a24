package egress

import (
	"context"
	"sync/atomic"
)

// through connects to the address that was decided on, unless out is that already, and
// hands over both ways. Nothing of the connection is read afterwards.
func (r *Relay) through(c *peeked, e Event, said []byte, out *peeked) Event {
	defer r.pass.broker.done(c.first)
	if r.pass.take(int64(len(said))) < int64(len(said)) {
		e.Verdict = TooMuch
		refuse(c.Conn)
		return e
	}
	if out == nil {
		conn, err := r.dial(e.Address)
		if err != nil {
			return notConnected(c, e)
		}
		out = &peeked{Conn: conn}
	}
	defer out.Close()
	stop := context.AfterFunc(r.life, func() { out.Close() })
	defer stop()
	n, err := out.Write(said)
	e.Sent = int64(n)
	if err != nil {
		e.Verdict = NotConnected
		return e
	}
	last := &active{}
	last.now()
	both := make(chan struct{})
	var ended atomic.Bool // one way: with the other both are closed
	go func() {
		defer close(both)
		e.Got = r.pass.copy(c.Conn, out, last)
		if !ended.Swap(true) {
			r.pass.finish(c.Conn)
		}
	}()
	e.Sent += r.pass.copy(out.Conn, c, last)
	if !ended.Swap(true) {
		r.pass.finish(out.Conn)
	}
	<-both
	switch {
	case c.refused:
		e.Verdict, e.Detail = Malformed, "it began as something else than it went on as"
	case r.pass.usedUp():
		e.Verdict = TooMuch
	}
	return e
}

func notConnected(c *peeked, e Event) Event {
	e.Verdict, e.Detail = NotConnected, "the other side did not answer"
	refuse(c.Conn)
	return e
}
