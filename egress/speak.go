package egress

import (
	"slices"
	"time"
)

// speaks takes a connection by what is spoken on it. A client that says nothing at first
// listens, or is late; where it may listen, the server is given the chance to speak.
func (r *Relay) speaks(in *peeked, e Event, may []candidate) Event {
	if may[0].rule.Via != nil {
		return r.via(in, e, may[0])
	}
	verdict, _ := r.unseen(e, may)
	if verdict != Allowed || isWeb(e) || onlyTLS(may) {
		return r.begun(in, e, may, in.kind(beginWithin))
	}
	kind := in.kind(r.pass.broker.silentFor)
	if kind == isSilent {
		return r.listens(in, e, may)
	}
	return r.begun(in, e, may, kind)
}

// begun takes one whose client has said something, or too long nothing.
func (r *Relay) begun(in *peeked, e Event, may []candidate, kind kind) Event {
	switch {
	case kind == isTLS:
		return r.tls(in, e, may)
	case onlyTLS(may):
		e.Verdict, e.Detail = NotSeen, "nothing but TLS goes there"
		refuse(in.Conn)
		return e
	case kind == isHTTP:
		return r.http(in, e, may)
	case kind == isOther, kind == isSilent && !isWeb(e):
		return r.opaque(in, e, may, nil)
	}
	e.Verdict, e.Detail = Malformed, "it does not begin as what this port is for"
	refuse(in.Conn)
	return e
}

// isWeb says whether what is spoken at a port can be seen, so that clients speak first.
func isWeb(e Event) bool { return e.Address.Port() == 80 || e.Address.Port() == 443 }

func onlyTLS(may []candidate) bool {
	return slices.ContainsFunc(may, func(m candidate) bool { return m.rule.Over != nil })
}

// listens takes one whose client is silent, where what nobody can see into may go. The
// server is connected to, and told nothing. If the client speaks before it, it was late:
// what it says is decided as if it had not been, and what a server says into that is
// dropped. One that is TLS or HTTP must not go on by the connection that is there, which
// nobody looks into.
func (r *Relay) listens(in *peeked, e Event, may []candidate) Event {
	conn, err := r.dial(e.Address)
	if err != nil {
		return notConnected(in, e)
	}
	defer conn.Close()
	out := &peeked{Conn: conn, first: r.pass.broker.reader(conn)}
	defer r.pass.broker.done(out.first)
	eitherSpeaks(in, out, r.pass.broker.o.Limits.Idle)
	if in.first.Buffered() > 0 {
		if kind := in.kind(beginWithin); kind != isOther {
			conn.Close()
			return r.begun(in, e, may, kind)
		}
	}
	return r.opaque(in, e, may, out)
}

// eitherSpeaks waits until one of two says something or ends.
func eitherSpeaks(a, b *peeked, within time.Duration) {
	done := make(chan struct{}, 2)
	both := func(deadline time.Time) { a.SetReadDeadline(deadline); b.SetReadDeadline(deadline) }
	both(time.Now().Add(within))
	for _, p := range []*peeked{a, b} {
		go func() { p.first.Peek(1); done <- struct{}{} }()
	}
	<-done
	both(time.Unix(1, 0)) // nobody waits any longer for the other
	<-done
	both(time.Time{})
}

// unseen says whether what nobody can see into may go to a host, whichever of those at
// its address it is, and whether nothing of it is to be looked at.
func (r *Relay) unseen(e Event, may []candidate) (v Verdict, blind bool) {
	v = Allowed
	for _, m := range may {
		blind = blind || m.rule.Blind
		if !r.pass.blindly(m) {
			v = NotSeen
		}
	}
	if !blind && isWeb(e) { // what is spoken there can be seen, and this is not that
		v = NotSeen
	}
	return v, blind
}

// opaque lets through what nobody can see into, where that counts as no more than the
// call may. out is the connection on if there is one already.
func (r *Relay) opaque(c *peeked, e Event, may []candidate, out *peeked) Event {
	verdict, blind := r.unseen(e, may)
	if e.Verdict = verdict; verdict != Allowed {
		refuse(c.Conn)
		return e
	}
	if len(may) > 1 {
		e.Detail = "or another host at this address"
	}
	c.late = !blind
	return r.through(c, e, nil, out)
}
