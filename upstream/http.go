package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTP connects to a server that speaks streamable HTTP at endpoint. The client says
// how it is reached and with which credentials; redirects are not followed, because
// they would take those elsewhere, and a client's overall Timeout is not used, because
// it would cut streams.
func HTTP(ctx context.Context, endpoint string, client *http.Client, o Options) (*Conn, error) {
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: give the http or https address of the server", endpoint)
	}
	if client == nil || client.Transport == nil { // the default one goes anywhere
		return nil, errors.New("there is no HTTP transport to reach the server with")
	}
	c := newConn(o)
	w := &web{c: c, endpoint: endpoint, saying: make(chan struct{}, 16)}
	w.client = &http.Client{
		Transport:     &limited{next: client.Transport, most: c.o.MaxMessage},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.link = w
	if err := c.negotiate(ctx, w.transport); err != nil {
		c.Close()
		return nil, err
	}
	if c.session.ID() != "" && !c.modern() {
		w.id = c.session.ID()
	}
	c.spawn(w.listen)
	return c, nil
}

// web is the link of a server that is reached by HTTP.
type web struct {
	c        *Conn
	endpoint string
	client   *http.Client
	id       string        // of the session, where there is one
	saying   chan struct{} // a place for each message that is being sent on the side
}

func (w *web) transport() mcp.Transport {
	return &mcp.StreamableClientTransport{
		Endpoint: w.endpoint, HTTPClient: w.client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: w.c.o.MaxMessage,
	}
}

func (w *web) close()                      { w.client.CloseIdleConnections() }
func (w *web) foreign(id, raw []byte) bool { return false }

func (w *web) request(ctx context.Context, verb string, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, verb, w.endpoint, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	} else {
		req.Header.Set("Accept", "text/event-stream")
	}
	req.Header.Set("Mcp-Protocol-Version", w.c.Version())
	if w.id != "" {
		req.Header.Set("Mcp-Session-Id", w.id)
	}
	return req, nil
}

func (w *web) exchange(ctx context.Context, k *call, method string, params []byte) (json.RawMessage, error) {
	req, err := w.request(ctx, http.MethodPost, request(k.id, method, params))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if w.c.modern() {
		w.describe(req.Header, method, params)
	}
	resp, err := w.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		var result json.RawMessage
		if result, err = w.outcome(k, resp); err == nil {
			return result, nil
		}
	}
	var said *ServerError
	switch {
	case errors.As(err, &said) || errors.Is(err, ErrNotSent):
		return nil, err
	case ctx.Err() != nil && w.c.Err() == nil:
		if !w.c.modern() { // in newer versions hanging up is cancelling
			w.say(request("", "notifications/cancelled", []byte(`{"requestId":`+strconv.Quote(k.id)+`,"reason":"the caller does not wait any more"}`)))
		}
		return nil, ctx.Err()
	case neverDialled(err):
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	case errors.Is(err, ErrLost):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrLost, err)
}

// neverDialled reports whether a request failed before there was a connection.
func neverDialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// say sends a message on the side. More of them than there are places for are
// dropped: a server that does not take them shall not pile them up here.
func (w *web) say(msg []byte) {
	select {
	case w.saying <- struct{}{}:
	default:
		return
	}
	begun := w.c.spawn(func() {
		defer func() { <-w.saying }()
		ctx, cancel := context.WithTimeout(w.c.life, 5*time.Second)
		defer cancel()
		req, err := w.request(ctx, http.MethodPost, msg)
		if err != nil {
			return
		}
		resp, err := w.client.Do(req)
		if err != nil {
			w.c.o.Log.Debug("a message to an MCP server was not taken", "err", err)
			return
		}
		resp.Body.Close()
	})
	if !begun {
		<-w.saying
	}
}

func mediaType(resp *http.Response) string {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return media
}
