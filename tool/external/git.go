package external

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/policy"
)

// Covers says whether a connection is for the repository at a path of a host.
func (c *Connection) Covers(host, path string) (prefix int, ok bool) {
	base, err := url.Parse(c.Base)
	if err != nil || c.Type != Git || c.Host != host {
		return 0, false
	}
	rest, ok := strings.CutPrefix(strings.TrimRight(path, "/"), base.EscapedPath())
	if !ok {
		return 0, false
	}
	decoded, err := checkPath(rest) // which begins with a slash, so that a name is not covered by the beginning of it
	if err != nil || !slices.ContainsFunc(c.Paths, func(glob string) bool { return policy.Match(glob, decoded) }) {
		return 0, false
	}
	return len(base.EscapedPath()), true
}

// A Repository is one that a call was decided for, as a server is asked for it by HTTP.
type Repository struct {
	Path string
	Push bool // it is changed; otherwise it is read
}

// asks says whether a request is one of the two by which git speaks of the repository.
func (r Repository) asks(req *http.Request) bool {
	service := "git-upload-pack"
	if r.Push {
		service = "git-receive-pack"
	}
	path := strings.TrimSuffix(r.Path, "/")
	switch req.URL.EscapedPath() {
	case path + "/info/refs":
		return req.Method == http.MethodGet && req.URL.RawQuery == "service="+service
	case path + "/" + service:
		return req.Method == http.MethodPost && req.URL.RawQuery == ""
	}
	return false
}

// Lend is the egress.Over of a box in which git asks for a repository: its requests, and
// no others, get the credentials of a connection where they leave.
func (t *Client) Lend(c Connection, r Repository) egress.Over {
	return func(next http.RoundTripper) http.RoundTripper { return lender{t, c, r, next} }
}

type lender struct {
	client *Client
	over   Connection
	repo   Repository
	next   http.RoundTripper
}

// notLent is what the box is told of a request that was not made.
type notLent struct{ why string }

func (e notLent) Error() string        { return e.why }
func (e notLent) Is(target error) bool { return target == egress.ErrRefused }

func (l lender) RoundTrip(req *http.Request) (*http.Response, error) {
	if !l.repo.asks(req) {
		return nil, notLent{"the credentials of connection " + l.over.Name + " are for git and the repository of the call, and this request is for something else"}
	}
	if wait := l.client.rates.take(l.over.Name, l.over.Rate, time.Now()); wait > 0 {
		return nil, notLent{fmt.Sprintf("the rate limit of connection %s is reached (%d requests a minute); retry_after: %d", l.over.Name, l.over.Rate, int(math.Ceil(wait.Seconds())))}
	}
	proved, cancel := context.WithTimeout(req.Context(), within)
	p, err := l.client.prove(proved, l.over)
	cancel()
	if err != nil { // what is wrong with a secret is not for agents
		return nil, notLent{fmt.Sprintf("the credentials of connection %s cannot be had; an operator finds out why with: writ connection test %s", l.over.Name, l.over.Name)}
	}
	res, err := l.next.RoundTrip(l.signed(req, p))
	if err != nil {
		return nil, err
	}
	return l.answer(res, p.hide), nil
}

// signed is a request with the connection's credentials instead of any that the box put
// on. It has another context, since a server's first words (1xx) would reach the box by the
// old one, unread.
func (l lender) signed(req *http.Request, p proof) *http.Request {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(req.Context(), cancel)
	out := req.WithContext(ctx)
	out.Header = http.Header{}
	for name, values := range req.Header {
		if !l.over.credential(egress.Folded(name)) {
			out.Header[name] = values
		}
	}
	maps.Copy(out.Header, p.header)
	out.Header.Set("Accept-Encoding", "identity") // what is compressed cannot be looked at
	return out
}

// answer is what the box gets of a server's. It is another value than the transport's,
// which would add trailers to its own.
func (l lender) answer(res *http.Response, hide redactor) *http.Response {
	out := &http.Response{
		Status: res.Status, StatusCode: res.StatusCode, Proto: res.Proto, ProtoMajor: res.ProtoMajor, ProtoMinor: res.ProtoMinor,
		Header: http.Header{}, Body: res.Body, ContentLength: -1, Request: res.Request,
	}
	kind := res.Header.Get("Content-Type")
	for _, name := range []string{"Content-Type", "Cache-Control", "Location", "Retry-After"} { // all that git reads, and nothing that keeps a session
		if v := res.Header.Get(name); v != "" {
			out.Header.Set(name, hide.line(v))
		}
	}
	encoding := res.Header.Get("Content-Encoding")
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		l.client.tokens.drop(l.over)
		instead(out, http.StatusForbidden, fmt.Sprintf("writ: the server does not take the credentials of connection %s; an operator looks with: writ connection test %s", l.over.Name, l.over.Name))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		instead(out, http.StatusBadGateway, "writ: the server's answer is compressed though that was not asked for, so it cannot be looked at for credentials")
	case res.StatusCode == http.StatusOK && strings.HasPrefix(kind, "application/x-git-"):
		out.Body = &masked{from: res.Body, hide: hide.plain()}
	default:
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxPage+beyond))
		if !utf8.Valid(text) {
			text = nil
		}
		instead(out, res.StatusCode, hide.clean(string(text), maxPage))
		out.Header.Set("Content-Type", hide.line(kind))
	}
	return out
}

// maxPage is how much of an answer that is not git's is handed on: git shows it when it is
// a line or two of plain text.
const maxPage = 64 << 10

// instead replaces what an answer says.
func instead(res *http.Response, status int, text string) {
	res.Body.Close()
	res.StatusCode, res.Status = status, http.StatusText(status)
	res.Header.Set("Content-Type", "text/plain; charset=utf-8")
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
}
