package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/tool"
)

// Args are the arguments of a call.
type Args struct {
	Connection string            `json:"connection"`
	Method     string            `json:"method"`
	Path       string            `json:"path"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// ParseArgs reads arguments that the schema has taken.
func ParseArgs(canonical string) (Args, error) {
	a := Args{Method: "GET"}
	err := json.Unmarshal([]byte(canonical), &a)
	return a, err
}

// Request makes a request of arguments, without credentials, and names the headers that
// it dropped. It is asked before a person is, and again before anything is sent; an error
// is a *tool.Impossible.
func (c *Connection) Request(a Args) (*http.Request, []string, error) {
	if !slices.Contains(c.Methods, a.Method) {
		return nil, nil, &tool.Impossible{Argument: "method", Why: fmt.Sprintf("connection %s does not take %s; it takes %s", c.Name, a.Method, strings.Join(c.Methods, ", "))}
	}
	u, err := c.address(a.Path)
	if err != nil {
		return nil, nil, &tool.Impossible{Argument: "path", Why: err.Error()}
	}
	header, dropped, err := c.headers(a.Headers)
	if err != nil {
		return nil, nil, &tool.Impossible{Argument: "headers", Why: err.Error()}
	}
	if a.Body != "" && slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, a.Method) {
		return nil, nil, &tool.Impossible{Argument: "body", Why: a.Method + " has none; put what you ask for into the path"}
	}
	req := &http.Request{Method: a.Method, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if a.Body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(a.Body)), int64(len(a.Body))
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", contentType(a.Body))
		}
	}
	header.Set("Accept-Encoding", "identity") // what is compressed cannot be looked at
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "writ")
	}
	return req, dropped, nil
}

func contentType(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

func failed(format string, args ...any) writ.Result {
	return writ.Result{Content: fmt.Sprintf(format, args...), IsError: true}
}

func (t *Client) run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	c, err := t.src.Connection(w)
	if err != nil {
		return writ.Result{}, err
	}
	a, err := ParseArgs(w.Call().Args)
	if err != nil {
		return writ.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p, req, dropped, refused, err := t.ready(ctx, c, a)
	if err != nil {
		return writ.Result{}, err
	}
	if refused != nil {
		return *refused, nil
	}
	way, err := t.src.Reach(w)
	if err != nil {
		return writ.Result{}, err
	}
	defer way.Close()
	res, err := t.sent(req, way, c, p)
	if err != nil {
		return unreached(c, err, p.hide), nil
	}
	defer res.Body.Close()
	return answer(res, c, p.hide, dropped)
}

// ready makes a request, counts it, and gets the credentials for it. A result is why it
// is not made, in words that a model can act on.
func (t *Client) ready(ctx context.Context, c Connection, a Args) (p proof, req *http.Request, dropped []string, refused *writ.Result, err error) {
	req, dropped, err = c.Request(a)
	if err != nil {
		return p, nil, nil, new(failed("%v", err)), nil
	}
	if wait := t.rates.take(c.Name, c.Rate, time.Now()); wait > 0 {
		after := int(math.Ceil(wait.Seconds()))
		res := failed("the rate limit of connection %s is reached (%d requests a minute); retry_after: %d", c.Name, c.Rate, after)
		res.Metadata = map[string]any{"retry_after": after}
		return p, nil, nil, &res, nil
	}
	if p, err = t.prove(ctx, c); err != nil { // what is wrong with a secret is not for agents
		err = writ.Fail(writ.Internal, fmt.Sprintf("the credentials of connection %s cannot be had; an operator finds out why with: writ connection test %s", c.Name, c.Name), err)
		return p, nil, nil, nil, err
	}
	return p, req.WithContext(ctx), dropped, nil, nil
}

// sent puts the credentials on where the request leaves.
func (t *Client) sent(req *http.Request, way Way, c Connection, p proof) (*http.Response, error) {
	maps.Copy(req.Header, p.header)
	res, err := way.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		t.tokens.drop(c)
	}
	return res, err
}

// unreached is the result where there was no answer. What a transport says may quote what
// was sent, so of it only the broker's own words are told.
func unreached(c Connection, err error, hide redactor) writ.Result {
	var refusal *egress.Refusal
	if why := egress.Untrusted(err); why != "" {
		return failed("%s was not reached: %s; nothing was sent. If the server is meant, have the authority that signed it trusted on the machine of the daemon", c.Base, hide.line(why))
	}
	if !errors.As(err, &refusal) {
		return failed("%s did not answer as HTTP, or broke off; whether the request had an effect there is not known", c.Base)
	}
	hint := ""
	if refusal.Verdict == egress.AddressNotOpen {
		hint = "; an operator who means that address says its range: egress.hosts.HOST.ranges"
	}
	return failed("%s was not reached: %s%s", c.Base, hide.line(refusal.Error()), hint)
}

const (
	maxBody = 1 << 20
	beyond  = 128 << 10 // read past it, so that a credential across the end is known for one
)

func answer(res *http.Response, c Connection, hide redactor, dropped []string) (writ.Result, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+beyond))
	if err != nil {
		return failed("%s broke off in the middle of its answer (status %d)", c.Base, res.StatusCode), nil
	}
	text := whole(string(body))
	encoding := res.Header.Get("Content-Encoding")
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", res.StatusCode, http.StatusText(res.StatusCode))
	for _, name := range slices.Sorted(maps.Keys(res.Header)) {
		// A cookie is a credential that the other side made of ours, and how long an answer was
		// before ours was taken out says how long ours is.
		if slices.Contains([]string{"set-cookie", "content-length", "content-range"}, egress.Folded(name)) {
			continue
		}
		for _, v := range res.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", hide.line(name), hide.line(v))
		}
	}
	b.WriteByte('\n')
	shown := ""
	switch {
	case res.StatusCode == http.StatusPartialContent || strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "multipart/byteranges"):
		b.WriteString("[the answer is a part, which cannot be looked at for credentials, and is not shown; ask for the whole]\n")
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		b.WriteString("[the answer is compressed though that was not asked for, so it cannot be looked at for credentials and is not shown]\n")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		b.WriteString("[the answer is not text and is not shown]\n")
	default:
		shown = whole(hide.clean(text, maxBody))
		b.WriteString(shown)
		if len(body) > maxBody {
			b.WriteString("\n[cut off after 1 MiB; ask for less, by a page or a filter]")
		}
	}
	if len(dropped) > 0 {
		fmt.Fprintf(&b, "\n[not sent, because credentials are the connection's: %s]", strings.Join(dropped, ", "))
	}
	return writ.Result{Content: b.String(), IsError: res.StatusCode >= 400, Metadata: map[string]any{
		"connection": c.Name, "status": res.StatusCode, "bytes": len(shown), "truncated": len(body) > maxBody,
	}}, nil
}

// whole is a text without the beginning of a character at its end, where it was cut.
func whole(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRuneInString(end) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}
