package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/wire"
)

// idp is an issuer on this machine with one key.
type idp struct {
	url string
	key *ecdsa.PrivateKey
	mu  sync.Mutex
	bad bool // it answers nothing of use
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{}
	var err error
	p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	srv := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *idp) break_(bad bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = bad
}

func (p *idp) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	bad := p.bad
	p.mu.Unlock()
	point, _ := p.key.PublicKey.Bytes()
	enc := base64.RawURLEncoding.EncodeToString
	switch {
	case bad:
		w.WriteHeader(http.StatusBadGateway)
	case r.URL.Path == "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.url, p.url+"/keys")
	case r.URL.Path == "/keys":
		fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"k","use":"sig","x":%q,"y":%q}]}`, enc(point[1:33]), enc(point[33:]))
	default:
		http.NotFound(w, r)
	}
}

const resource = "https://writ.example/mcp"

// token signs one for a scope, with changes to its claims.
func (p *idp) token(t *testing.T, scope string, changes map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	c := map[string]any{"iss": p.url, "aud": resource, "sub": "service-7", "client_id": "ci", "iat": now, "exp": now + 300, "scope": scope}
	maps.Copy(c, changes)
	payload, err := json.Marshal(c)
	must(t, err)
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"k"}`)) + "." + enc(payload)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	must(t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + enc(signature)
}

func oauthWorld(t *testing.T) (*world, *idp) {
	t.Helper()
	p := newIDP(t)
	at := config.Listen{Address: "127.0.0.1:0", OAuth: &config.OAuth{
		Issuer: p.url, Audience: resource, Scopes: map[string]string{"writ:coder": "coder", "writ:other": "other"}, Subjects: map[string]string{"robot": "helper"},
	}}
	return newWorldAt(t, at), p
}

const metadataURL = "https://writ.example/.well-known/oauth-protected-resource/mcp"

// An access token does what a token of ours does: calls, sessions, tasks, delegations,
// streams; a stop and a revocation hold for it; what it did is recorded under an id that
// is not the token.
func TestAccessToken(t *testing.T) {
	w, p := oauthWorld(t)
	token := p.token(t, "openid writ:coder", nil)
	c, err := client.New(w.url, token, nil)
	must(t, err)
	call := func(c *client.Client) error {
		_, err := c.Call(t.Context(), client.CallRequest{Tool: "stat", Args: []byte(`{"path":"."}`)}, 0)
		return err
	}
	must(t, call(c))
	session := jsonOf[client.Session](t, w.ok(ask{agentDoor, token, "POST", "/v1/sessions", nil, `{"name":"a"}`}))
	next := p.token(t, "writ:coder", map[string]any{"jti": "next"}) // the same holder's next one finds the session
	w.ok(ask{agentDoor, next, "GET", "/v1/sessions/" + session.ID, nil, ""})
	w.ok(ask{agentDoor, token, "POST", "/v1/tasks", nil, `{"name":"fix","session":"` + session.ID + `"}`})
	child := jsonOf[client.Delegated](t, w.ok(ask{agentDoor, token, "POST", "/v1/delegations", nil, `{"name":"kid","lasts_seconds":60,"request":{}}`}))
	w.ok(ask{agentDoor, child.Token, "GET", "/v1/tools", nil, ""})
	w.ok(ask{operatorDoor, token, "GET", "/v1/tools", nil, ""}) // at the other door too
	if agent := jsonOf[client.Page[client.Agent]](t, w.ok(ask{agentDoor, p.token(t, "writ:other", nil), "GET", "/v1/agents", nil, ""})).Data[0].Name; agent != "other" {
		t.Errorf("the other scope is agent %s", agent)
	}
	if !strings.HasPrefix(session.Token, "oauth:") || strings.Contains(session.Token, ".") {
		t.Errorf("recorded as %q", session.Token)
	}
	if _, err := w.engine.Authenticate(session.Token); err == nil {
		t.Error("the id is a token")
	}
	must(t, w.operator.Stop(t.Context(), client.StopRequest{Agent: "coder", Reason: "test"}))
	if err := call(c); err == nil || err.Error() != "agent coder is stopped; a person lifts it with: writ stop --lift coder --as NAME" {
		t.Errorf("stopped: %v", err)
	}
	w.ok(ask{operatorDoor, "", "POST", "/v1/stops/coder/lift", nil, `{"by":` + by + `}`})
	must(t, call(c))
	w.ok(ask{operatorDoor, "", "DELETE", "/v1/tokens/" + session.Token, nil, ""})
	const revoked = "this proof of who you are was revoked; ask the operator"
	w.refused(ask{agentDoor, next, "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, revoked)
	w.refused(ask{agentDoor, child.Token, "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, "the token is unknown or revoked; 'writ agent token NAME' makes one")
	w.restart()
	w.refused(ask{agentDoor, token, "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, revoked)
	w.ok(ask{agentDoor, p.token(t, "writ:coder", map[string]any{"sub": "somebody else"}), "GET", "/v1/tools", nil, ""})
	for entry, err := range w.engine.Store().Entries(t.Context()) {
		must(t, err)
		if strings.Contains(string(entry.Body), token[:40]) {
			t.Errorf("the ledger has the token: %s", entry.Body)
		}
	}
	if strings.Contains(w.log.String(), token[:40]) || strings.Contains(w.log.String(), strings.Split(token, ".")[2]) {
		t.Error("the log has the token")
	}
}

// What is refused is refused with the way in, and nothing falls back to another proof.
func TestAccessTokenRefused(t *testing.T) {
	w, p := oauthWorld(t)
	good := p.token(t, "writ:coder", nil)
	w.ok(ask{agentDoor, good, "GET", "/v1/tools", nil, ""})
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	point, err := p.key.PublicKey.Bytes()
	must(t, err)
	hs := enc([]byte(`{"alg":"HS256","typ":"at+jwt","kid":"k"}`)) + "." + parts[1]
	mac := hmac.New(sha256.New, point)
	mac.Write([]byte(hs))
	say := func(why string) string {
		return "the access token is refused: " + why + "; get a new one from " + p.url
	}
	const invalid = `Bearer resource_metadata="` + metadataURL + `", error="invalid_token"`
	for name, row := range map[string]struct {
		token     string
		status    int
		kind      writ.Kind
		want      string
		challenge string
	}{
		"expired":         {p.token(t, "writ:coder", map[string]any{"exp": time.Now().Unix() - 90}), 401, writ.Unauthenticated, say("it has expired"), invalid},
		"other audience":  {p.token(t, "writ:coder", map[string]any{"aud": "https://other.example"}), 401, writ.Unauthenticated, say("it is meant for another audience"), invalid},
		"other issuer":    {p.token(t, "writ:coder", map[string]any{"iss": "https://other.example"}), 401, writ.Unauthenticated, say("another issuer made it"), invalid},
		"none":            {enc([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + ".", 401, writ.Unauthenticated, say("it is not a signed token that is taken here"), invalid},
		"HS256":           {hs + "." + enc(mac.Sum(nil)), 401, writ.Unauthenticated, say("it is not a signed token that is taken here"), invalid},
		"changed":         {parts[0] + "." + enc([]byte(`{}`)) + "." + parts[2], 401, writ.Unauthenticated, say("its signature is not the issuer's"), invalid},
		"a token of ours": {"writ_unknown", 401, writ.Unauthenticated, "the token is unknown or revoked; 'writ agent token NAME' makes one", invalid},
		"no agent": {p.token(t, "openid", nil), 403, writ.Denied, "the access token stands for no agent; ask the issuer for one with one of the scopes: writ:coder writ:other",
			`Bearer resource_metadata="` + metadataURL + `", error="insufficient_scope", scope="writ:coder writ:other"`},
		"two agents": {p.token(t, "writ:coder writ:other", nil), 403, writ.Denied, "the access token stands for several agents (coder, other); ask the issuer for one with the scope of one agent", ""},
		"nothing":    {"", 401, writ.Unauthenticated, sendToken, `Bearer resource_metadata="` + metadataURL + `"`},
	} {
		got := w.ask(ask{agentDoor, row.token, "GET", "/v1/tools", nil, ""})
		if got.status != row.status || got.problem.Kind != row.kind || got.problem.Detail != row.want || got.header.Get("WWW-Authenticate") != row.challenge {
			t.Errorf("%s: %d %s\n%s", name, got.status, got.header.Get("WWW-Authenticate"), got.body)
		}
	}
	w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""}) // and ours are as good as ever
	w.refused(ask{operatorDoor, good, "GET", "/v1/config", nil, ""}, 403, writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out")
}

// Without an issuer a JWT is a token that nobody made, and nothing points to one: a bearer is wanted, and that is all.
func TestNoIssuer(t *testing.T) {
	w, p := newWorld(t), newIDP(t)
	got := w.ask(ask{agentDoor, p.token(t, "writ:coder", nil), "GET", "/v1/tools", nil, ""})
	if got.status != 401 || got.header.Get("WWW-Authenticate") != "Bearer" || got.problem.Detail != "the token is unknown or revoked; 'writ agent token NAME' makes one" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}

// An issuer that does not answer refuses, and the log says so once.
func TestIssuerDown(t *testing.T) {
	w, p := oauthWorld(t)
	p.break_(true)
	down := "access tokens cannot be verified now, because the keys of " + p.url + " could not be had; try again in half a minute"
	for range 3 {
		w.refused(ask{agentDoor, p.token(t, "writ:coder", nil), "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, down)
	}
	if n := strings.Count(w.log.String(), "access tokens cannot be verified"); n != 1 || !strings.Contains(w.log.String(), "openid-configuration answers 502") {
		t.Errorf("told %d times: %s", n, w.log)
	}
	w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""})
	p.break_(false)
	w.restart() // the next try is half a minute away
	w.ok(ask{agentDoor, p.token(t, "writ:coder", nil), "GET", "/v1/tools", nil, ""})
}

// A stream ends when the token that opened it does.
func TestStreamEndsWithToken(t *testing.T) {
	p := newIDP(t)
	at := config.Listen{Address: "127.0.0.1:0", OAuth: &config.OAuth{Issuer: p.url, Audience: resource, Scopes: map[string]string{"writ:coder": "coder"}}}
	w := newWorldAt(t, at, func(l *limits) { l.heartbeat = 20 * time.Millisecond })
	c, err := client.New(w.url, p.token(t, "writ:coder", map[string]any{"exp": time.Now().Unix() - 58}), nil) // the leeway is a minute
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, err = range c.Events(ctx, 0) {
	}
	if ctx.Err() != nil {
		t.Errorf("it goes on: %v", err)
	}
}

// The metadata is what RFC 9728 asks for, where an issuer is configured.
func TestResourceMetadata(t *testing.T) {
	issuer, err := newIssuer(&config.OAuth{Issuer: "https://idp.example", Audience: resource, Scopes: map[string]string{"b": "coder", "a": "other"}}, newWorld(t).engine.Reach)
	must(t, err)
	with := &proofs{oauth: issuer}
	show := func(p *proofs) (any, error) {
		at := arrival{&net.TCPAddr{}, p, network, 0}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at), "GET", resourcePath, nil)
		return showResource(&exchange{r: r})
	}
	v, err := show(with)
	must(t, err)
	got, err := wire.Plain(v)
	must(t, err)
	want := `{"resource":"https://writ.example/mcp","authorization_servers":["https://idp.example"],"scopes_supported":["a","b"],"bearer_methods_supported":["header"]}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
	if _, err := show(&proofs{}); writ.KindOf(err) != writ.NotFound {
		t.Errorf("without an issuer: %v", err)
	}
	for resource, want := range map[string]string{
		"https://a.example": "https://a.example/.well-known/oauth-protected-resource", "https://a.example/": "https://a.example/.well-known/oauth-protected-resource",
		"http://127.0.0.1:1/x/mcp": "http://127.0.0.1:1/.well-known/oauth-protected-resource/x/mcp",
	} {
		if got := wellKnown(resource); got != want {
			t.Errorf("%s: %s", resource, got)
		}
	}
}

// FuzzBearer: no header makes an agent of somebody who has none.
func FuzzBearer(f *testing.F) {
	for _, h := range []string{"", "Bearer", "Bearer a.b.c", "bearer  eyJhbGciOiJub25lIn0.e30.", "Basic Og==", "Bearer writ_x", "Bearer .", "Bearer a b"} {
		f.Add(h)
	}
	p := &idp{}
	var err error
	p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(f, err)
	srv := httptest.NewServer(http.HandlerFunc(p.serve))
	f.Cleanup(srv.Close)
	p.url = srv.URL
	w := newWorld(f)
	issuer, err := newIssuer(&config.OAuth{Issuer: p.url, Audience: resource, Scopes: map[string]string{"writ:coder": "coder"}}, w.engine.Reach)
	must(f, err)
	with := &proofs{oauth: issuer}
	s := &Server{engine: w.engine, log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, header string) {
		at := arrival{&net.TCPAddr{}, with, network, 0}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at), "GET", "/v1/tools", nil)
		x := &exchange{Server: s, r: r, w: httptest.NewRecorder()}
		if who, err := x.caller([]string{header}); err == nil {
			t.Errorf("%q is %+v", header, who)
		}
	})
}
