package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (p *pipes) view() mcp.Transport {
	if old := p.sdk.Load(); old != nil {
		old.Close()
	}
	p.n++
	v := &view{p: p, prefix: "s" + strconv.Itoa(p.n) + ".", in: make(chan jsonrpc.Message, 16), gone: make(chan struct{}), waiting: map[string]jsonrpc.ID{}}
	p.sdk.Store(v)
	return v
}

func (p *pipes) foreign(id, raw []byte) bool {
	v := p.sdk.Load()
	return v != nil && v.give(text(id), raw)
}

// A view is the SDK's end of the pipes during one attempt to negotiate: it sends its
// requests and gets their answers, and nothing else. Its ids are made its own, so
// that a late answer to one attempt is none to the next.
type view struct {
	p      *pipes
	prefix string
	in     chan jsonrpc.Message
	gone   chan struct{}
	once   sync.Once

	mu      sync.Mutex
	waiting map[string]jsonrpc.ID // the SDK's ids, by ours
}

func (v *view) Connect(context.Context) (mcp.Connection, error) { return v, nil }
func (v *view) SessionID() string                               { return "" }

func (v *view) Close() error {
	v.once.Do(func() { close(v.gone) })
	return nil
}

func (v *view) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-v.in:
		return m, nil
	case <-v.gone:
		return nil, io.EOF
	case <-v.p.c.life.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (v *view) Write(ctx context.Context, m jsonrpc.Message) error {
	req, ok := m.(*jsonrpc.Request)
	if !ok || req.Method == "notifications/cancelled" {
		return nil
	}
	sent := *req
	if req.IsCall() {
		id := v.prefix + fmt.Sprint(req.ID.Raw())
		var err error
		if sent.ID, err = jsonrpc.MakeID(id); err != nil {
			return err
		}
		v.mu.Lock()
		v.waiting[id] = req.ID
		v.mu.Unlock()
	}
	b, err := jsonrpc.EncodeMessage(&sent)
	if err != nil {
		return err
	}
	select {
	case v.p.out <- oneLine(b):
		return nil
	case <-v.gone:
		return io.ErrClosedPipe
	case <-v.p.c.life.Done():
		return v.p.c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give hands the SDK an answer that it waits for.
func (v *view) give(id string, raw []byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	own, ok := v.waiting[id]
	if !ok {
		return false
	}
	delete(v.waiting, id)
	m, err := jsonrpc.DecodeMessage(bytes.Clone(raw))
	if err != nil {
		return false
	}
	if answer, ok := m.(*jsonrpc.Response); ok {
		answer.ID = own
		select {
		case v.in <- answer:
		default:
		}
	}
	return true
}
