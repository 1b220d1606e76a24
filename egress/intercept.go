package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"time"
)

// intercept ends the TLS of a box here, so that the requests in it can be held to what may
// be asked there, and begins another to the host, whose certificate is checked here.
func (r *Relay) intercept(c *peeked, e Event, to candidate, said []byte) Event {
	own := r.pass.authority
	if own == nil {
		e.Verdict, e.Detail = NotSeen, "nobody can look into it"
		refuse(c.Conn)
		return e
	}
	in := newEnding(&again{peeked: c, first: io.MultiReader(bytes.NewReader(said), c)})
	inner := tls.Server(in, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.of(to.endpoint.Host) },
	})
	ctx, cancel := context.WithTimeout(r.life, beginWithin)
	err := inner.HandshakeContext(ctx)
	cancel()
	if err != nil {
		e.Verdict, e.Detail = NotSeen, "the program does not trust this sandbox's authority"
		if errors.Is(err, context.DeadlineExceeded) {
			e.Verdict, e.Detail = Malformed, "it did not go on"
		}
		refuse(c.Conn)
		return e
	}
	return r.requests(inner, in, e, []candidate{to}, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: to.endpoint.Host.String(), RootCAs: r.pass.broker.o.Roots})
}

// again is a connection whose beginning is read once more.
type again struct {
	*peeked
	first io.Reader
}

func (c *again) Read(b []byte) (int, error) { return c.first.Read(b) }

// seenWithin bounds how long a host may take for its own part of TLS.
const seenWithin = 10 * time.Second
