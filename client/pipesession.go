package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

func (p *Pipe) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
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
	if err != nil {
		return err
	}
	done.Body.Close()
	select {
	case p.renewed <- struct{}{}:
	default:
	}
	return nil
}

// began remembers the session that an initialize made.
func (p *Pipe) began(resp *http.Response, first []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.first = resp.Header.Get("Mcp-Session-Id"), first
}

// promised remembers which lists the client was told to hear of when they change.
func (p *Pipe) promised(told []byte) {
	var m struct {
		Result struct {
			Capabilities map[string]struct {
				ListChanged bool `json:"listChanged"`
			} `json:"capabilities"`
		} `json:"result"`
	}
	if json.Unmarshal(told, &m) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = nil
	for _, list := range []string{"tools", "resources", "prompts"} {
		if m.Result.Capabilities[list].ListChanged {
			p.lists = append(p.lists, list)
		}
	}
}

func (p *Pipe) inSession(req *http.Request, method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != "" && method != "initialize" {
		req.Header.Set("Mcp-Session-Id", p.id)
	}
}

// leave ends the session, and everything in it.
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
