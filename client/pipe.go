package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Pipe carries MCP between a client on standard input and output and the daemon: one
// message a line on this side, streamable HTTP on the other. It understands as much
// of a message as the headers need, and decides nothing.
type Pipe struct {
	Client  *Client
	Agent   string        // whom to be, where no token says so: only over the operator socket
	Session string        // the name of the session; the same name finds it again
	Wait    time.Duration // how long calls may wait for a person; zero: the daemon's own patience
	// Revive brings a daemon back that is gone.
	Revive func(context.Context) error

	out       sync.Mutex // one message at a time
	beginning sync.Mutex // one session at a time; never taken with mu held

	mu    sync.Mutex
	id    string          // of the MCP session; empty: none
	first json.RawMessage // the client's initialize, to begin again with a daemon that was restarted
	under map[string]context.CancelFunc
}

// pipeLine bounds one message.
const pipeLine = 17 << 20

// Run carries messages until in ends.
func (p *Pipe) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	p.under = map[string]context.CancelFunc{}
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	defer p.leave()
	slots := make(chan struct{}, 64)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		if len(line) > 0 {
			m := headOf(line)
			if m.inOrder() {
				p.carry(ctx, &busy, m, line, out)
			} else {
				slots <- struct{}{}
				one, done := p.begin(ctx, m)
				busy.Go(func() {
					defer func() { done(); <-slots }()
					p.carry(one, &busy, m, line, out)
				})
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
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

// head is what the pipe has to know of a message.
type head struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name    string          `json:"name"`
		URI     string          `json:"uri"`
		Task    string          `json:"taskId"`
		Request json.RawMessage `json:"requestId"`
		Meta    struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

func headOf(line []byte) head {
	var m head
	_ = json.Unmarshal(line, &m) // the daemon says what is wrong with it
	return m
}

// inOrder reports whether a message must be through before the next is read.
func (m *head) inOrder() bool { return m.Method == "initialize" || m.ID == nil || m.Method == "" }

// begin lets a request be cancelled by its id.
func (p *Pipe) begin(ctx context.Context, m head) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	key := string(m.ID)
	p.mu.Lock()
	p.under[key] = cancel
	p.mu.Unlock()
	return ctx, func() {
		p.mu.Lock()
		delete(p.under, key)
		p.mu.Unlock()
		cancel()
	}
}

// carry takes one message to the daemon and brings back what it says.
func (p *Pipe) carry(ctx context.Context, busy *sync.WaitGroup, m head, line []byte, out io.Writer) {
	if m.Method == "notifications/cancelled" && p.session() == "" { // where there is no session, going away cancels
		p.mu.Lock()
		if cancel := p.under[string(m.Params.Request)]; cancel != nil {
			cancel()
		}
		p.mu.Unlock()
		return
	}
	resp, err := p.send(ctx, m, line)
	if err == nil {
		defer resp.Body.Close()
		if m.Method == "initialize" && resp.StatusCode == http.StatusOK {
			p.began(resp, line)
		}
		err = p.answer(resp, m, out)
	}
	if err != nil && ctx.Err() == nil && m.ID != nil && m.Method != "" {
		p.say(out, failure(m.ID, err))
	}
	if m.Method == "notifications/initialized" && err == nil {
		busy.Go(func() { p.listen(ctx, out) })
	}
}

func (p *Pipe) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// send posts a message. What a daemon that was restarted does not know is made known
// to it again; what did not reach it is sent again, and nothing else is.
func (p *Pipe) send(ctx context.Context, m head, line []byte) (*http.Response, error) {
	was := p.session()
	resp, err := p.post(ctx, m, line)
	if IsDown(err) && p.Revive != nil {
		if err := p.Revive(ctx); err != nil {
			return nil, err
		}
		resp, err = p.post(ctx, m, line)
	}
	if err != nil || resp.StatusCode != http.StatusNotFound || was == "" || m.Params.Meta.Version != "" || m.Method == "initialize" {
		return resp, err
	}
	resp.Body.Close()
	if err := p.again(ctx, was); err != nil {
		return nil, err
	}
	return p.post(ctx, m, line)
}

// again begins the session anew, as the client began it, unless somebody has.
func (p *Pipe) again(ctx context.Context, was string) error {
	p.beginning.Lock()
	defer p.beginning.Unlock()
	p.mu.Lock()
	first, now := p.first, p.id
	p.mu.Unlock()
	if now != was {
		return nil
	}
	resp, err := p.post(ctx, head{Method: "initialize"}, first)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the daemon was restarted and does not take the session up again (%s)", resp.Status)
	}
	if p.began(resp, first); p.session() == "" {
		return errors.New("the daemon was restarted and does not take the session up again")
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxReply)); err != nil {
		return err
	}
	done, err := p.post(ctx, head{Method: "notifications/initialized"}, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err == nil {
		done.Body.Close()
	}
	return err
}

// began remembers the session that an initialize made.
func (p *Pipe) began(resp *http.Response, first []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.first = resp.Header.Get("Mcp-Session-Id"), first
}

func (p *Pipe) post(ctx context.Context, m head, line []byte) (*http.Response, error) {
	req, err := p.request(ctx, http.MethodPost, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if v := m.Params.Meta.Version; v != "" {
		req.Header.Set("Mcp-Protocol-Version", v)
		req.Header.Set("Mcp-Method", m.Method)
		for _, name := range []string{m.Params.Name, m.Params.URI, m.Params.Task} {
			if name != "" {
				req.Header.Set("Mcp-Name", name)
				break
			}
		}
		return p.Client.http.Do(req)
	}
	p.inSession(req, m.Method)
	return p.Client.http.Do(req)
}

func (p *Pipe) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.Client.base+"/mcp", body)
	if err != nil {
		return nil, err
	}
	if p.Client.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.Client.Token)
	} else {
		req.Header.Set("Writ-Agent", p.Agent)
	}
	if p.Session != "" {
		req.Header.Set("Writ-Session", p.Session)
	}
	if p.Wait > 0 {
		req.Header.Set("Writ-Wait", strconv.Itoa(int(p.Wait/time.Second)))
	}
	return req, nil
}

func (p *Pipe) inSession(req *http.Request, method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != "" && method != "initialize" {
		req.Header.Set("Mcp-Session-Id", p.id)
	}
}

// leave ends the session.
func (p *Pipe) leave() {
	if p.session() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := p.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	p.inSession(req, "")
	if resp, err := p.Client.http.Do(req); err == nil {
		resp.Body.Close()
	}
}
