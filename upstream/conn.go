package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are how a connection behaves. The zero value relays nothing and has the
// default bounds.
type Options struct {
	Version      string        // of this program, as servers are told
	MaxMessage   int           // bytes of one message; default 16 MiB
	WriteTimeout time.Duration // of one message to a server that does not read; default 10 s

	Older bool // have a session, also with a server that can do without

	// Sampling and Elicitation say that the operator relays such requests: servers
	// are told that they may ask, and the Peer of a call is asked.
	Sampling, Elicitation bool

	// Changed is told that one of the lists "tools", "resources" or "prompts" is not
	// what it was. Notice gets every other notification that belongs to no call.
	// Neither may block: the connection waits for them.
	Changed func(list string)
	Notice  func(method string, params json.RawMessage)

	// Hide takes what nobody is to see, such as the credentials that were sent, out of a
	// message before anything of it is used. What it changed is JSON still, or is refused.
	Hide func([]byte) []byte

	Log *slog.Logger // nil: nothing is logged
}

const defaultMessage = 16 << 20

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "0")
	o.MaxMessage = cmp.Or(o.MaxMessage, defaultMessage)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.Notice == nil {
		o.Notice = func(string, json.RawMessage) {}
	}
	if o.Hide == nil {
		o.Hide = func(b []byte) []byte { return b }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Peer is who made a call, as far as the server may speak to it while the call is
// under way. Progress and Log are called one at a time and hold the call up while
// they run; Ask runs beside them, once at a time, and returns soon after ctx ends. What
// they are given is theirs to keep.
type Peer interface {
	Progress(params json.RawMessage) // of notifications/progress; the token in it is the connection's own
	Log(params json.RawMessage)      // of notifications/message
	// Ask is sampling/createMessage or elicitation/create. An error refuses; its text
	// goes to the server where it is a *ServerError, and not otherwise.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// What came of a call that brought no answer. After ErrNotSent nothing happened;
// after ErrLost, and after a call whose context ended, nobody knows (I10).
var (
	ErrNotSent = errors.New("the request was not taken by the server")
	ErrLost    = errors.New("the connection was lost while the call was under way")
	ErrClosed  = errors.New("the connection was closed")

	// ErrSession is the cause of ErrNotSent where the server has forgotten the session.
	ErrSession = errors.New("the server does not know the session any more")
)

// mostCalls may be under way on one connection.
const mostCalls = 1024

// A Conn is one connection with one server, negotiated and ready. It ends for good
// when anything about it fails; a Server makes a new one. Safe for concurrent use.
type Conn struct {
	o       Options
	link    link
	session *mcp.ClientSession
	about   *mcp.InitializeResult
	meta    []metaMember // of every request, where the version asks for it

	params atomic.Pointer[map[string][]headerParam] // of the server's tools, by their names

	life   context.Context // ends with the connection
	end    context.CancelCauseFunc
	work   sync.WaitGroup // every goroutine of the connection
	unwind sync.Once

	mu    sync.Mutex
	calls map[string]*call
	asks  map[string]context.CancelFunc // requests of the server under way, by id
	last  uint64
	flood flood
	stats Stats
}

// Stats count what a connection threw away.
type Stats struct {
	Dropped uint64 // notifications and requests beyond the rate
	Strays  uint64 // answers that nobody waits for
}

// A link carries messages.
type link interface {
	// exchange sends a call's request and waits for what comes of it.
	exchange(ctx context.Context, k *call, method string, params []byte) (json.RawMessage, error)
	// say sends a message that wants no answer, if that does not take long. It does not block.
	say(msg []byte)
	// foreign is shown an answer that is to none of our calls.
	foreign(id, raw []byte) bool
	// listen stays for as long as the server tells of changes by itself.
	listen()
	close()
}

func newConn(o Options) *Conn {
	c := &Conn{o: o.withDefaults(), calls: map[string]*call{}, asks: map[string]context.CancelFunc{}}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// Version is the protocol version that was negotiated.
func (c *Conn) Version() string { return c.about.ProtocolVersion }

// Logs reports whether the server says that it sends what it would log.
func (c *Conn) Logs() bool {
	return c.about.Capabilities.Logging != nil //lint:ignore SA1019 servers of the protocols before 2026-07-28 say it so
}

// Done is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.life.Done() }

// Err is why the connection ended; nil while it has not.
func (c *Conn) Err() error { return context.Cause(c.life) }

// Stats is what was thrown away until now.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the connection and everything that runs for it.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	if c.session != nil {
		c.session.Close()
	}
	c.work.Wait()
	return nil
}

// fail ends the connection; the first reason stays.
func (c *Conn) fail(why error) {
	c.unwind.Do(func() {
		c.mu.Lock()
		c.end(hiding(why, c.o.Hide))
		c.mu.Unlock()
		c.link.close()
	})
}

// spawn runs work for the connection, unless that has ended.
func (c *Conn) spawn(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.work.Go(work)
	return true
}

// Call sends one request and returns the result's bytes exactly as they came, of
// whatever type: complete, asking for input, or a task. An error of the server's is
// a *ServerError. When ctx ends, the server is told and Call returns at once.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage, peer Peer) (json.RawMessage, error) {
	k, err := c.begin(ctx, method, peer)
	if err != nil {
		return nil, err
	}
	defer c.finish(k)
	meta := c.meta
	if peer != nil {
		token := metaMember{key: "progressToken", value: []byte(strconv.Quote(k.id))}
		meta = append(meta[:len(meta):len(meta)], token)
	}
	dressed, err := withMeta(params, meta...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	result, err := c.link.exchange(k.ctx, k, method, dressed)
	var said *ServerError
	if err != nil && ctx.Err() != nil && !errors.As(err, &said) && !errors.Is(err, ErrNotSent) {
		return nil, ctx.Err()
	}
	return result, err
}
