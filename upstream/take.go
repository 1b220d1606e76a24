package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// take is one message of the server's, which came on the stream of a call, or on one
// that all calls share. An error means that the stream is of no use any more.
func (c *Conn) take(raw []byte, of *call) error {
	raw = c.o.Hide(raw)
	m, err := parse(raw)
	if err != nil {
		return err
	}
	if m.method == "" {
		c.answered(m, raw, of)
		return nil
	}
	c.mu.Lock()
	ok, err := c.flood.admit(time.Now(), len(raw))
	if !ok {
		c.stats.Dropped++
	}
	c.mu.Unlock()
	switch {
	case err != nil || !ok:
		return err
	case m.id != nil && (m.method == "initialize" || m.method == "server/discover"):
		return errEcho
	case m.id == nil:
		c.notified(m, of)
	default:
		c.requested(m, of)
	}
	return nil
}

// errEcho is what a program does that passes its input on. Nothing that serves asks for
// these.
var errEcho = errors.New("it repeats what it is sent, so it is not an MCP server; see that the command is the server's own")

func (c *Conn) notified(m message, of *call) {
	if m.loose != nil {
		return
	}
	list, changed := strings.CutSuffix(m.method, "/list_changed")
	switch {
	case m.method == "notifications/progress":
		if k := c.ours(field(m.params, "progressToken")); k != nil && (of == nil || k == of) {
			k.queue(event{params: bytes.Clone(m.params)})
		}
	case m.method == "notifications/message":
		if k := c.asker(of); k != nil {
			k.queue(event{log: true, params: bytes.Clone(m.params)})
			return
		}
		c.o.Notice(m.method, bytes.Clone(m.params))
	case m.method == "notifications/cancelled":
		c.mu.Lock()
		if stop := c.asks[string(field(m.params, "requestId"))]; stop != nil {
			stop()
		}
		c.mu.Unlock()
	case changed:
		if list, known := strings.CutPrefix(list, "notifications/"); known && (list == "tools" || list == "resources" || list == "prompts") {
			c.o.Changed(list)
		}
	default:
		c.o.Notice(m.method, bytes.Clone(m.params))
	}
}

// queue drops what its caller is too slow for.
func (k *call) queue(e event) {
	if k.peer == nil {
		return
	}
	select {
	case k.events <- e:
	default:
	}
}

// asker is the call on behalf of which a server speaks: the one whose stream it
// speaks on, or, where all share one, the only one under way. With two of them it
// would be a guess, and one caller could be shown what is another's.
func (c *Conn) asker(of *call) *call {
	if of != nil {
		if of.peer == nil || !of.asked {
			return nil
		}
		return of
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var one *call
	for _, k := range c.calls {
		if !k.asked {
			continue
		}
		if one != nil {
			return nil
		}
		one = k
	}
	if one == nil || one.peer == nil {
		return nil
	}
	return one
}

// requested answers what a server asks of us.
func (c *Conn) requested(m message, of *call) {
	id := bytes.Clone(m.id)
	if len(id) > 256 || id[0] == '{' || id[0] == '[' {
		return // it could not be told apart, and is not repeated
	}
	relayed := map[string]bool{"sampling/createMessage": c.o.Sampling, "elicitation/create": c.o.Elicitation}
	operator, known := relayed[m.method]
	switch {
	case m.method == "ping":
		c.link.say(answer(id, []byte("{}")))
	case m.method == "roots/list":
		c.link.say(refusal(id, codeMethod, "roots are not offered"))
	case !known:
		c.link.say(refusal(id, codeMethod, "the client has no such method"))
	case !operator:
		c.link.say(refusal(id, codeMethod, m.method+" is refused: it is not relayed here"))
	case m.loose != nil:
		c.link.say(refusal(id, codeRequest, "the request can be read in two ways"))
	default:
		if why := c.relay(id, m, of); why != "" {
			c.link.say(refusal(id, codeRequest, m.method+" is refused: "+why))
		}
	}
}

// mostQuestions of a server in the course of one call.
const mostQuestions = 16

// relay asks the peer of the call that a request belongs to; or says why not.
func (c *Conn) relay(id []byte, m message, of *call) string {
	k := c.asker(of)
	if k == nil {
		return "it cannot be told on behalf of which call it is"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.ctx.Err() != nil || c.calls[k.id] != k:
		return "the call is over"
	case k.asking > 0:
		return "another question of this call is open"
	case k.questions >= mostQuestions:
		return "this call has asked enough"
	case c.asks[string(id)] != nil:
		return "a request with this id is open"
	}
	k.asking++
	k.questions++
	ctx, stop := context.WithCancel(k.ctx)
	c.asks[string(id)] = stop
	method, params := m.method, json.RawMessage(bytes.Clone(m.params))
	k.asks.Go(func() {
		defer stop()
		reply := ask(ctx, k.peer, id, method, params)
		c.mu.Lock()
		k.asking--
		delete(c.asks, string(id))
		c.mu.Unlock()
		c.link.say(reply)
	})
	return ""
}

func ask(ctx context.Context, p Peer, id []byte, method string, params json.RawMessage) (reply []byte) {
	defer func() {
		if recover() != nil {
			reply = refusal(id, codeInternal, method+" failed")
		}
	}()
	result, err := p.Ask(ctx, method, params)
	var said *ServerError
	switch {
	case errors.As(err, &said):
		return refusal(id, said.Code, said.Message)
	case err != nil:
		return refusal(id, codeRequest, method+" is refused")
	case !json.Valid(result):
		return refusal(id, codeInternal, method+" failed")
	}
	return answer(id, result)
}

// What a server may send without being asked. Beyond the rate it is dropped; a
// server that goes on far beyond it has its connection ended, because reading what
// is dropped costs too.
const (
	floodRate  = 100 // messages a second
	floodBurst = 200
	floodCount = 20_000    // messages in one second
	floodBytes = 256 << 20 // in one second
)

// flood counts unasked messages.
type flood struct {
	tokens       float64
	last         time.Time
	second       time.Time
	count, bytes int
}

func (f *flood) admit(now time.Time, size int) (bool, error) {
	if f.last.IsZero() {
		f.tokens, f.second = floodBurst, now
	}
	f.tokens = min(floodBurst, f.tokens+now.Sub(f.last).Seconds()*floodRate)
	f.last = now
	if now.Sub(f.second) >= time.Second {
		f.second, f.count, f.bytes = now, 0, 0
	}
	f.count++
	f.bytes += size
	if f.count > floodCount || f.bytes > floodBytes {
		return false, fmt.Errorf("the server floods: %d messages and %d bytes within a second that nobody asked for", f.count, f.bytes)
	}
	if f.tokens < 1 {
		return false, nil
	}
	f.tokens--
	return true, nil
}
