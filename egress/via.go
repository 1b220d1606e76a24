package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/writ-run/writ"
)

// Via speaks to a host in place of a box, with what a box does not have: box is the
// connection that the box made, and out the one to the address that was decided on. It
// ends when either does, and closes neither. What it returns is for the log, and says
// nothing that is secret.
type Via func(ctx context.Context, box, out net.Conn) error

// Over makes the requests of a box to a host with what a box does not have; next is the
// way to the address that was decided on. It decides about each of them by itself, and
// what it returns says nothing that is secret: the box reads it, errors too.
type Over func(next http.RoundTripper) http.RoundTripper

// ErrRefused is what a Via or an Over wraps when it did not do what the box wanted of it.
var ErrRefused = errors.New("it was refused")

// via counts, like what nobody sees into, as what is said of the host.
func (r *Relay) via(c *peeked, e Event, to candidate) Event {
	if r.pass.run.Class != writ.ClassWrite && to.rule.Class != writ.ClassReadOnly {
		e.Verdict = NotSeen
		refuse(c.Conn)
		return e
	}
	conn, err := r.dial(e.Address)
	if err != nil {
		return notConnected(c, e)
	}
	var sent, got atomic.Int64
	out := &counted{Conn: conn, pass: r.pass, sent: &sent, got: &got, stop: context.AfterFunc(r.life, func() { conn.Close() })}
	defer out.Close()
	e.Verdict = Allowed
	if err := to.rule.Via(r.life, c, out); err != nil {
		e.Detail = err.Error()
		if errors.Is(err, ErrRefused) {
			e.Verdict = MethodRefused
		}
	}
	if r.pass.usedUp() {
		e.Verdict = TooMuch
	}
	e.Sent, e.Got = sent.Load(), got.Load()
	return e
}
