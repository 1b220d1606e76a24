package egress

import (
	"bufio"
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

// Resolver finds the addresses of a name.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// Limits are what one run may use. A zero field is its default.
type Limits struct {
	Connections int           // at once; 256
	Bytes       int64         // both ways together; 1 GiB
	Idle        time.Duration // without a byte either way; 5 minutes; negative: as long as it likes, for what runs in this process
}

// Options make a Broker. A nil Resolver is the system's, and so are nil Roots, which say
// whose certificates count for requests that the broker makes itself.
type Options struct {
	Resolver Resolver
	Roots    *x509.CertPool
	Limits   Limits
	Most     int // connections at once of all runs together; 0: 4096
}

// Broker opens the way out for runs. It is safe for concurrent use.
type Broker struct {
	o       Options
	open    atomic.Int64
	readers sync.Pool // *bufio.Reader, for how connections begin
	buffers sync.Pool // *[little]byte, for what they go on with

	silentFor time.Duration // as the constant; a test has less time
}

// reader is one for the beginning of a connection, which done takes back.
func (b *Broker) reader(c net.Conn) *bufio.Reader {
	r, ok := b.readers.Get().(*bufio.Reader)
	if !ok {
		return bufio.NewReaderSize(c, 4096)
	}
	r.Reset(c)
	return r
}

func (b *Broker) done(r *bufio.Reader) {
	r.Reset(nil)
	b.readers.Put(r)
}

// New makes one.
func New(o Options) *Broker {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Most == 0 {
		o.Most = 4096
	}
	if o.Limits.Connections == 0 {
		o.Limits.Connections = 256
	}
	if o.Limits.Bytes == 0 {
		o.Limits.Bytes = 1 << 30
	}
	if o.Limits.Idle == 0 {
		o.Limits.Idle = 5 * time.Minute
	}
	return &Broker{o: o, silentFor: silentFor}
}

// Run says for whom a Pass is.
type Run struct {
	Call, Agent string
	Class       writ.Class   // of the call: what it may do where it may go
	Rules       Rules        // where it may go
	Said        func() Rules // what is said of hosts now; the first that names one counts. Nil: nothing
	Log         func(Event)  // told of everything, in any order; whoever tells waits for it

	// Opens is what somebody writes to let a host have an address that is not public; nil, or
	// empty: nothing is offered.
	Opens func(host.Endpoint, netip.Addr) string
}

// rule is what holds for an endpoint that may be reached.
func (r Run) rule(e host.Endpoint) (Rule, bool) {
	rule, ok := r.Rules.For(e)
	if !ok || r.Said == nil {
		return rule, ok
	}
	if said, about := r.Said().For(e); about {
		rule.Class, rule.IPv6, rule.Blind, rule.At = said.Class, said.IPv6, said.Blind, said.At
		rule.Ranges = append(rule.Ranges[:len(rule.Ranges):len(rule.Ranges)], said.Ranges...)
	}
	return rule, true
}
