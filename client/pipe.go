package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Pipe carries MCP between a client on standard input and output and the daemon: one
// message a line on this side, streamable HTTP on the other. It understands as much
// of a message as the headers need, and decides nothing. It is used once.
type Pipe struct {
	Client  *Client
	Agent   string        // whom to be, where no token says so: only over the operator socket
	Session string        // the name of the session; the same name finds it again
	Wait    time.Duration // how long calls may wait for a person; zero: the daemon's own patience
	// Revive brings a daemon back that is gone.
	Revive func(context.Context) error

	out       sync.Mutex // one message at a time
	beginning sync.Mutex // one session at a time; never taken with mu held

	requests sync.WaitGroup // each of which has an answer
	streams  sync.WaitGroup // which have no end of their own

	mu        sync.Mutex
	id        string          // of the MCP session; empty: none
	first     json.RawMessage // the client's initialize, to begin again with a daemon that was restarted
	lists     []string        // of which the client was promised to hear when they change
	renewed   chan struct{}   // has one where the session was begun again
	under     map[string]*request
	abandoned bool // something was given up before it was answered
}

// request is one that is under way.
type request struct {
	cancel    context.CancelFunc
	cancelled bool // its client does not want an answer any more
}

// Bounds of what is carried.
const (
	pipeLine     = 17 << 20 // bytes of one message
	pipeRequests = 64       // at once
)

// How long answers are waited for once the input has ended.
const (
	daemonWait = 45 * time.Second // a call's for a person, where nobody says otherwise
	late       = 15 * time.Second // after that
)

func (p *Pipe) patience() time.Duration {
	if p.Wait > 0 {
		return p.Wait + late
	}
	return daemonWait + late
}

// Run carries messages until in ends, and then waits for the answers to them: Wait, or
// 45 seconds, and 15 more. A context that ends does not wait. Either way nothing is
// taken back from the daemon: what waits for a person goes on waiting.
func (p *Pipe) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	p.under, p.renewed = map[string]*request{}, make(chan struct{}, 1)
	answers, giveUp := context.WithCancelCause(ctx)
	streams, hangUp := context.WithCancel(ctx)
	err := p.take(answers, streams, in, out)
	hangUp()
	timer := time.AfterFunc(p.patience(), func() { giveUp(p.tooLate()) })
	p.requests.Wait()
	timer.Stop()
	giveUp(nil)
	p.streams.Wait()
	if !p.abandoned {
		p.leave()
	}
	return err
}

// unanswered is why a request got no answer in time.
type unanswered struct{ after time.Duration }

func (p *Pipe) tooLate() error { return &unanswered{p.patience()} }

func (e *unanswered) Error() string {
	return fmt.Sprintf("there was no answer within %s of the end of the input; what became of the call is in: writ invocation list", e.after)
}

// take carries what it reads, until in or ctx ends.
func (p *Pipe) take(ctx, streams context.Context, in io.Reader, out io.Writer) error {
	lines := readLines(in)
	slots := make(chan struct{}, pipeRequests)
	for {
		var next read
		select {
		case next = <-lines:
		case <-ctx.Done():
			return nil
		}
		if m := headOf(next.line); len(next.line) > 0 && m.inOrder() {
			p.carry(ctx, m, next.line, out)
			if m.Method == "notifications/initialized" {
				p.streams.Go(func() { p.listen(streams, out) })
			}
		} else if len(next.line) > 0 {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			group, ctx := &p.requests, ctx
			if m.Method == "subscriptions/listen" {
				group, ctx = &p.streams, streams
			}
			one, done := p.begin(ctx, m)
			group.Go(func() {
				defer func() { done(); <-slots }()
				p.carry(one, m, next.line, out)
			})
		}
		if errors.Is(next.err, io.EOF) {
			return nil
		}
		if next.err != nil {
			return next.err
		}
	}
}

// read is a line, or the end, or both.
type read struct {
	line []byte
	err  error
}

// readLines reads until an error, which comes last. Reading cannot be called off: where
// nobody takes the lines any more, it ends with the program.
func readLines(in io.Reader) <-chan read {
	lines := make(chan read)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(r)
			lines <- read{line, err}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// readLine is the next line, without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > pipeLine {
			return nil, fmt.Errorf("a message is larger than %d bytes", pipeLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// begin lets a request be cancelled by its id.
func (p *Pipe) begin(ctx context.Context, m head) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	key, r := string(m.ID), &request{cancel: cancel}
	p.mu.Lock()
	p.under[key] = r
	p.mu.Unlock()
	return ctx, func() {
		p.mu.Lock()
		if p.under[key] == r {
			delete(p.under, key)
		}
		p.mu.Unlock()
		cancel()
	}
}

// cancelled notes that a client does not want an answer any more. Where there is no
// session, going away is how the daemon is told.
func (p *Pipe) cancelled(id json.RawMessage) (told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.under[string(id)]
	if r != nil {
		r.cancelled = true
	}
	if p.id == "" && r != nil {
		r.cancel()
	}
	return p.id == ""
}

func (p *Pipe) wasCancelled(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.under[string(id)]
	return r != nil && r.cancelled
}
