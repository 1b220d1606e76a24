package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/writ-run/writ/display"
)

// limited bounds the body of every answer that is not a stream of events; those are
// bounded event by event. The SDK reads bodies whole. It also bounds how long a server
// may take over the end of a session, which Close waits for.
type limited struct {
	next http.RoundTripper
	most int
}

func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel() // of the answer only the status counts
		req = req.WithContext(ctx)
	}
	resp, err := l.next.RoundTrip(req)
	if err == nil && mediaType(resp) != "text/event-stream" {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: l.most, most: l.most}
	}
	return resp, err
}

// CloseIdleConnections implements what http.Client asks for.
func (l *limited) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	left, most int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n + b.left, fmt.Errorf("the server's answer has more than %d bytes", b.most)
	}
	return n, err
}

// listen keeps the stream open on which a server tells of changes.
func (w *web) listen() {
	want := w.c.tells()
	if want == nil {
		return
	}
	if w.c.modern() {
		w.c.relisten(func() bool {
			_, err := w.c.Call(w.c.life, "subscriptions/listen", want, nil)
			var refused *ServerError
			return !errors.As(err, &refused)
		})
		return
	}
	w.c.relisten(w.standing)
}

// standing reads the stream that belongs to no call, until it ends; false when the
// server has none.
func (w *web) standing() bool {
	req, err := w.request(w.c.life, http.MethodGet, nil)
	if err != nil {
		return false
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && w.id != "" {
		w.c.fail(ErrSession)
		return false
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return true
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		return false
	}
	events := newEventReader(resp.Body, w.c.o.MaxMessage)
	for {
		data, err := events.next()
		if err == nil && len(data) > 0 {
			err = w.c.take(data, nil)
		}
		if err != nil {
			return true
		}
	}
}

// named is which member of a method's parameters says what it is about.
var named = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

// describe says in headers what the body says, as newer versions want it, for those
// in between who route by them.
func (w *web) describe(h http.Header, method string, params []byte) {
	h.Set("Mcp-Method", method)
	if member := named[method]; member != "" {
		h.Set("Mcp-Name", nameValue(text(field(params, member))))
	}
	if method == "tools/call" {
		if about := w.c.params.Load(); about != nil {
			for _, p := range (*about)[text(field(params, "name"))] {
				if v, ok := p.value(field(params, "arguments")); ok {
					h.Set("Mcp-Param-"+p.header, v)
				}
			}
		}
	}
}

// nameValue is a name as servers compare it: as it is, unless no header can carry it.
func nameValue(s string) string {
	if s == strings.TrimSpace(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7F }) < 0 {
		return s
	}
	return headerValue(s)
}

// headerValue is s as a header of ASCII can carry it.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for i := 0; i < len(s); i++ {
		plain = plain && ' ' <= s[i] && s[i] <= '~'
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// headerParam is an argument that a tool wants in a header too.
type headerParam struct {
	path   []string
	header string
}

func (p headerParam) value(args json.RawMessage) (string, bool) {
	for _, name := range p.path {
		args = field(args, name)
	}
	switch {
	case len(args) == 0 || args[0] == '{' || args[0] == '[' || string(args) == "null":
		return "", false
	case args[0] == '"':
		return headerValue(text(args)), true
	}
	return string(args), true
}

// headerParams finds x-mcp-header in a parameter schema, below properties alone.
func headerParams(schema json.RawMessage, below []string) []headerParam {
	var out []headerParam
	props := field(schema, "properties")
	if len(below) > 8 || len(props) == 0 {
		return nil
	}
	members(props, func(key, sub []byte) {
		if len(sub) == 0 || sub[0] != '{' {
			return
		}
		path := append(below[:len(below):len(below)], string(key))
		if name := text(field(sub, "x-mcp-header")); headerName(name) {
			out = append(out, headerParam{path: path, header: name})
		}
		out = append(out, headerParams(sub, path)...)
	})
	return out
}

func headerName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// short is a server's word in a message of ours.
func short(s string) string { return display.Preview(s, 80) }
