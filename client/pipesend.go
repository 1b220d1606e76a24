package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// carry takes one message to the daemon and brings back what it says.
func (p *Pipe) carry(ctx context.Context, m head, line []byte, out io.Writer) {
	if m.Method == "notifications/cancelled" && p.cancelled(m.Params.Request) {
		return
	}
	err := p.exchange(ctx, m, line, out)
	if err == nil || !m.awaited() || p.wasCancelled(m.ID) {
		return
	}
	var unanswered *unanswered
	if errors.As(context.Cause(ctx), &unanswered) {
		err = unanswered
	}
	if ctx.Err() != nil {
		p.mu.Lock()
		p.abandoned = true
		p.mu.Unlock()
	}
	if ctx.Err() == nil || unanswered != nil {
		p.say(out, failure(m.answerID(), err))
	}
}

func (p *Pipe) exchange(ctx context.Context, m head, line []byte, out io.Writer) error {
	resp, err := p.send(ctx, m, line)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if m.Method != "initialize" || resp.StatusCode != http.StatusOK {
		return p.answer(resp, m, out)
	}
	p.began(resp, line)
	var told bytes.Buffer
	err = p.answer(resp, m, io.MultiWriter(out, &told))
	p.promised(told.Bytes())
	return err
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

func (p *Pipe) post(ctx context.Context, m head, line []byte) (*http.Response, error) {
	req, err := p.request(ctx, http.MethodPost, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Writ-Lost", "tell") // what to answer should the daemon be gone before it does
	if v := m.Params.Meta.Version; v != "" {
		req.Header.Set("Mcp-Protocol-Version", v)
		req.Header.Set("Mcp-Method", m.Method)
		for _, name := range []string{m.Params.Name, m.Params.URI, m.Params.Task} {
			if name != "" {
				req.Header.Set("Mcp-Name", headerValue(name))
				break
			}
		}
		return p.Client.http.Do(req)
	}
	p.inSession(req, m.Method)
	return p.Client.http.Do(req)
}

// headerValue is a name as a header of ASCII can carry it, as the protocol has it.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	if plain && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
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
