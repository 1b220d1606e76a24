package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// answer brings back what the daemon said to one message.
func (p *Pipe) answer(resp *http.Response, m head, out io.Writer) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		return nil
	case media == "text/event-stream":
		return p.events(resp.Body, m, out)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return errGone
	}
	var said struct {
		Version string `json:"jsonrpc"`
		ID      json.RawMessage
		Error   json.RawMessage
	}
	if json.Unmarshal(body, &said) == nil && said.Version == "2.0" {
		if said.ID == nil || string(said.ID) == "null" {
			if m.awaited() {
				p.say(out, []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.answerID(), said.Error)))
			}
			return nil
		}
		p.say(out, body)
		return nil
	}
	var problem Problem
	if json.Unmarshal(body, &problem) == nil && problem.Kind != "" {
		return &problem
	}
	return fmt.Errorf("the daemon answered %s", resp.Status)
}

var errGone = errors.New("the daemon went away before it answered; whether the call ran is in: writ invocation list")

// events brings back the messages of a stream, each a line, until it ends. A stream
// that ends before the answer to its request lost it; what the daemon has left for that
// is the answer then.
func (p *Pipe) events(body io.Reader, m head, out io.Writer) error {
	r, answered := bufio.NewReaderSize(body, 64<<10), false
	var data, lost []byte
	for {
		line, err := readLine(r)
		switch {
		case bytes.HasPrefix(line, []byte(": lost ")):
			lost = bytes.Clone(line[len(": lost "):])
		case bytes.HasPrefix(line, []byte("data:")):
			data = append(data, bytes.TrimPrefix(line[5:], []byte(" "))...)
		case len(line) == 0 && len(data) > 0:
			if h := headOf(data); h.Method == "" && string(h.ID) == string(m.ID) {
				answered = true
			}
			p.say(out, data)
			data = nil
		}
		if err != nil {
			switch {
			case m.ID == nil || answered:
			case lost != nil:
				p.say(out, lost)
			default:
				return errGone
			}
			return nil
		}
	}
}

// say writes one message.
func (p *Pipe) say(out io.Writer, msg []byte) {
	if bytes.ContainsAny(msg, "\r\n") {
		var b bytes.Buffer
		if json.Compact(&b, msg) != nil {
			return
		}
		msg = b.Bytes()
	}
	p.out.Lock()
	defer p.out.Unlock()
	out.Write(append(append(make([]byte, 0, len(msg)+1), msg...), '\n'))
}

// failure is the answer to a request that got none.
func failure(id json.RawMessage, err error) []byte {
	text, _ := json.Marshal(err.Error())
	return []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`, id, text))
}

// listen brings what the daemon says by itself, as long as the session lasts. What it
// said while nobody listened, as in a restart, is lost: so whenever the stream is
// opened again, the client is told to look at its lists again.
func (p *Pipe) listen(ctx context.Context, out io.Writer) {
	opened := false
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		was := p.session()
		resp, err := p.news(ctx)
		if err == nil && resp.StatusCode == http.StatusOK {
			wait = time.Second
			if opened {
				p.changed(out)
			}
			opened = true
			_ = p.events(resp.Body, head{}, out) // it is opened again
		}
		if err == nil {
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode == http.StatusNotFound {
			_ = p.again(ctx, was) // what fails is tried again
		}
		select {
		case <-ctx.Done():
		case <-p.renewed:
		case <-time.After(wait):
		}
	}
}

// news opens the stream of what the daemon says by itself.
func (p *Pipe) news(ctx context.Context) (*http.Response, error) {
	req, err := p.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	p.inSession(req, "")
	return p.Client.http.Do(req)
}

// changed tells the client that its lists may not be what they were.
func (p *Pipe) changed(out io.Writer) {
	p.mu.Lock()
	lists := p.lists
	p.mu.Unlock()
	for _, list := range lists {
		p.say(out, []byte(`{"jsonrpc":"2.0","method":"notifications/`+list+`/list_changed"}`))
	}
}
