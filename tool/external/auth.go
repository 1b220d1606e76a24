package external

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/secret"
)

// Auth is how a connection proves itself. The zero value does not.
type Auth struct {
	Type     string                // none, bearer, api_key, basic, oauth2_client or headers
	Secret   secret.Ref            // of all but none and headers
	Header   string                // of api_key
	User     string                // of basic
	TokenURL string                // of oauth2_client
	ClientID string                // of oauth2_client
	Scopes   []string              // of oauth2_client
	Headers  map[string]secret.Ref // of headers
}

// AuthTypes are the ways there are.
var AuthTypes = []string{"none", "bearer", "api_key", "basic", "oauth2_client", "headers"}

// String says how, by reference, never with a value.
func (a Auth) String() string {
	switch a.Type {
	case "bearer":
		return "bearer token " + a.Secret.String()
	case "api_key":
		return fmt.Sprintf("header %s from %s", a.Header, a.Secret)
	case "basic":
		return fmt.Sprintf("user %s with password %s", a.User, a.Secret)
	case "oauth2_client":
		return fmt.Sprintf("OAuth 2 client %s with %s at %s", a.ClientID, a.Secret, a.TokenURL)
	case "headers":
		var parts []string
		for _, name := range a.headerNames() {
			parts = append(parts, fmt.Sprintf("header %s from %s", name, a.Headers[name]))
		}
		return strings.Join(parts, ", ")
	}
	return "none"
}

func (a Auth) headerNames() []string {
	var names []string
	for name := range a.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// headers are those that the credentials are in, folded.
func (a Auth) headers() []string {
	out := []string{"authorization"}
	if a.Header != "" {
		out = append(out, egress.Folded(a.Header))
	}
	for name := range a.Headers {
		out = append(out, egress.Folded(name))
	}
	return out
}

// Refs are the secrets that it takes.
func (a Auth) Refs() []secret.Ref {
	var out []secret.Ref
	if a.Secret != (secret.Ref{}) {
		out = append(out, a.Secret)
	}
	for _, name := range a.headerNames() {
		out = append(out, a.Headers[name])
	}
	return out
}

// proof is the credentials of one request, and what has to be taken out of its answer.
type proof struct {
	header http.Header
	hide   redactor
}

// prove looks the secrets of a connection up and makes headers of them.
func (t *Client) prove(ctx context.Context, c Connection) (proof, error) {
	p, values := proof{header: http.Header{}}, []string{}
	take := func(r secret.Ref) (string, error) {
		v, err := t.src.Secrets().Resolve(ctx, r)
		if err != nil {
			return "", err
		}
		if why := unfit(v.Reveal()); why != "" {
			return "", writ.Fail(writ.Invalid, fmt.Sprintf("secret %s: %s", r, why), nil)
		}
		values = append(values, v.Reveal())
		return v.Reveal(), nil
	}
	var value string
	var err error
	if c.Auth.Secret != (secret.Ref{}) {
		if value, err = take(c.Auth.Secret); err != nil {
			return proof{}, err
		}
	}
	switch c.Auth.Type {
	case "bearer":
		p.header.Set("Authorization", "Bearer "+value)
	case "api_key":
		p.header.Set(c.Auth.Header, value)
	case "basic":
		pair := base64.StdEncoding.EncodeToString([]byte(c.Auth.User + ":" + value))
		values = append(values, pair, strings.TrimRight(pair, "="))
		p.header.Set("Authorization", "Basic "+pair)
	case "headers":
		for _, name := range c.Auth.headerNames() {
			if value, err = take(c.Auth.Headers[name]); err != nil {
				return proof{}, err
			}
			p.header.Set(name, value)
		}
	case "oauth2_client":
		if value, err = t.tokens.get(ctx, c, value, t.src); err != nil {
			return proof{}, err
		}
		values = append(values, value)
		p.header.Set("Authorization", "Bearer "+value)
	}
	p.hide = newRedactor(values...)
	return p, nil
}

// Prove gives what proves a connection to its server: headers, and what takes the
// credentials in them out of what the server says. Whoever sends requests of another kind
// than this package's uses it, such as those to an MCP server.
func (t *Client) Prove(ctx context.Context, c Connection) (http.Header, Redactor, error) {
	p, err := t.prove(ctx, c)
	return p.header, Redactor{p.hide}, err
}

// Refused forgets what the server did not take, so that it is asked for anew.
func (t *Client) Refused(c Connection) { t.tokens.drop(c) }

// unfit is why a value cannot be sent, or not be kept out of answers: what is too short
// is found everywhere, and what is not plain text could be written in ways that nobody
// looks for.
func unfit(v string) string {
	switch {
	case len(v) < secret.MinBytes:
		return "it has fewer than 8 characters, too few to be kept out of answers; use a longer one"
	case len(v) > 8<<10:
		return "it has more than 8 KiB, more than goes into a header; name another"
	case strings.TrimSpace(v) != v || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }):
		return "it has a line break, white space at an end, or what is not ASCII; a credential of HTTP has none"
	}
	return ""
}

// tokens keeps access tokens until they end, by the digest of their connection.
type tokens struct {
	mu   sync.Mutex
	held map[writ.Digest]accessToken
}

type accessToken struct {
	value secret.Value
	until time.Time
}

func (t *tokens) get(ctx context.Context, c Connection, password string, src Source) (string, error) {
	t.mu.Lock()
	got, ok := t.held[c.Digest]
	t.mu.Unlock()
	if ok && time.Now().Before(got.until) {
		return got.value.Reveal(), nil
	}
	got, err := fetchToken(ctx, c, password, src)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil || len(t.held) > 256 { // of connections that are not there any more
		t.held = map[writ.Digest]accessToken{}
	}
	t.held[c.Digest] = got
	return got.value.Reveal(), nil
}

// drop forgets a token that the other side did not take.
func (t *tokens) drop(c Connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, c.Digest)
}

// fetchToken asks for one as RFC 6749, 4.4 says. Nothing of an answer goes into an error.
func fetchToken(ctx context.Context, c Connection, password string, src Source) (accessToken, error) {
	fail := func(why string, cause error) (accessToken, error) {
		return accessToken{}, writ.Fail(writ.NotFound, fmt.Sprintf("connection %s: %s; see auth.token_url, client_id, secret and scopes", c.Name, why), cause)
	}
	way, err := src.Own("connection "+c.Name, c.Auth.TokenURL)
	if err != nil {
		return fail("the token endpoint cannot be reached", err)
	}
	defer way.Close()
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.Auth.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Auth.Scopes, " "))
	}
	req, err := http.NewRequestWithContext(ctx, "POST", c.Auth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fail("the token endpoint cannot be read", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(c.Auth.ClientID), url.QueryEscape(password)) // RFC 6749, 2.3.1
	res, err := way.RoundTrip(req)
	if err != nil {
		return fail("the token endpoint does not answer", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || res.StatusCode != http.StatusOK {
		return fail(fmt.Sprintf("the token endpoint answers %d and gives no token", res.StatusCode), err)
	}
	var answer struct {
		Token string  `json:"access_token"`
		Type  string  `json:"token_type"`
		For   float64 `json:"expires_in"`
	}
	if json.Unmarshal(text, &answer) != nil || !strings.EqualFold(answer.Type, "bearer") || unfit(answer.Token) != "" {
		return fail("the token endpoint gives nothing that is a bearer token", errors.New("its answer does not read as one"))
	}
	return accessToken{secret.New(answer.Token), time.Now().Add(lasts(answer.For))}, nil
}

// lasts is how long a token is used: until shortly before its end, and where none is
// said for a few minutes.
func lasts(seconds float64) time.Duration {
	if seconds <= 0 || seconds > 86400 {
		return 5 * time.Minute
	}
	return max(0, time.Duration(seconds)*time.Second-30*time.Second)
}
