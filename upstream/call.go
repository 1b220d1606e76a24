package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
)

// call is one request under way.
type call struct {
	id     string
	peer   Peer
	asked  bool            // the server may ask something on behalf of it
	ctx    context.Context // ends with the call, the caller's or the connection
	cancel context.CancelFunc
	unlink func() bool // from the connection's life
	answer chan outcome
	events chan event
	asks   sync.WaitGroup

	asking, questions int // guarded by Conn.mu
}

type outcome struct {
	result json.RawMessage
	err    error
}

type event struct {
	log    bool
	params json.RawMessage
}

// forwarded are the methods that a server works for somebody in.
var forwarded = map[string]bool{"tools/call": true, "resources/read": true, "prompts/get": true, "completion/complete": true}

func (c *Conn) begin(ctx context.Context, method string, peer Peer) (*call, error) {
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	k := &call{peer: peer, asked: forwarded[method], answer: make(chan outcome, 1)}
	if peer != nil {
		k.events = make(chan event, 64)
	}
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.unlink = context.AfterFunc(c.life, k.cancel)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) >= mostCalls {
		k.unlink()
		k.cancel()
		return nil, fmt.Errorf("%w: %d calls are under way on this connection", ErrNotSent, mostCalls)
	}
	c.last++
	k.id = "w" + strconv.FormatUint(c.last, 10)
	c.calls[k.id] = k
	return k, nil
}

func (c *Conn) finish(k *call) {
	c.mu.Lock()
	delete(c.calls, k.id)
	c.mu.Unlock()
	k.unlink()
	k.cancel()
	k.asks.Wait()
}

// ours is the call that a JSON id or progress token names.
func (c *Conn) ours(id []byte) *call {
	if len(id) < 3 || id[0] != '"' {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[string(id[1:len(id)-1])]
}

// answered gives an answer to the call it is for, once.
func (c *Conn) answered(m message, raw []byte, of *call) {
	k := c.ours(m.id)
	if k == nil || of != nil && k != of {
		if of != nil || !c.link.foreign(m.id, raw) {
			c.mu.Lock()
			c.stats.Strays++
			c.mu.Unlock()
		}
		return
	}
	c.mu.Lock()
	waiting := c.calls[k.id] == k
	delete(c.calls, k.id)
	c.mu.Unlock()
	if waiting {
		k.answer <- k.outcome(m)
	}
}

func (k *call) outcome(m message) outcome {
	switch {
	case m.loose != nil:
		return outcome{err: fmt.Errorf("%w: its answer can be read in two ways: %w", ErrLost, m.loose)}
	case m.fail != nil:
		return outcome{err: serverError(m.fail)}
	}
	return outcome{result: bytes.Clone(m.result)}
}

// wait is for links whose answers arrive elsewhere.
func (c *Conn) wait(k *call) (json.RawMessage, error) {
	for {
		select {
		case e := <-k.events:
			k.tell(e)
		case out := <-k.answer:
			k.drain()
			return out.result, out.err
		case <-k.ctx.Done():
			select {
			case out := <-k.answer: // it came with the connection's end
				return out.result, out.err
			default:
			}
			if err := c.Err(); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrLost, err)
			}
			return nil, k.ctx.Err()
		}
	}
}

func (k *call) tell(e event) {
	if e.log {
		k.peer.Log(e.params)
	} else {
		k.peer.Progress(e.params)
	}
}

// drain tells what the server said before its answer.
func (k *call) drain() {
	for {
		select {
		case e := <-k.events:
			k.tell(e)
		default:
			return
		}
	}
}
