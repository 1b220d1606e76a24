package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// provider is an issuer: metadata, keys, and tokens signed by another implementation of
// JOSE than the one under test.
type provider struct {
	t     testing.TB
	url   string
	asked atomic.Int64 // requests that it had
	mu    sync.Mutex
	doc   map[string]any
	keys  []jose.JSONWebKey
	over  map[string]http.HandlerFunc // instead of what it would answer, by path
}

type private struct {
	id  string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

func newProvider(t testing.TB, path string, start func(http.Handler) *httptest.Server) *provider {
	t.Helper()
	p := &provider{t: t, over: map[string]http.HandlerFunc{}}
	srv := start(http.HandlerFunc(p.serve))
	t.Cleanup(srv.Close)
	p.url = srv.URL + path
	p.doc = map[string]any{"issuer": p.url, "jwks_uri": srv.URL + "/keys"}
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch over := p.over[r.URL.Path]; {
	case over != nil:
		over(w, r)
	case r.URL.Path == strings.TrimPrefix(p.url[strings.LastIndex(p.url, ":"):], p.port())+"/.well-known/openid-configuration":
		json.NewEncoder(w).Encode(p.doc)
	case r.URL.Path == "/keys":
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
	default:
		http.NotFound(w, r)
	}
}

// port is the colon and number in its address.
func (p *provider) port() string {
	rest := p.url[strings.LastIndex(p.url, ":"):]
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i]
	}
	return rest
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// publish adds a key to the set.
func (p *provider) publish(k private) {
	p.set(func() {
		p.keys = append(p.keys, jose.JSONWebKey{Key: k.key.Public(), KeyID: k.id, Use: "sig"})
	})
}

func newKey(t testing.TB, id string, alg jose.SignatureAlgorithm) private {
	t.Helper()
	var k crypto.Signer
	var err error
	switch alg {
	case jose.RS256, jose.PS256:
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, k, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no key for %s", alg)
	}
	must(t, err)
	return private{id, alg, k}
}

// sign makes a token with claims; header has what goes into its header besides.
func (k private) sign(t testing.TB, claims map[string]any, header map[jose.HeaderKey]any) string {
	t.Helper()
	return signWith(t, k.alg, k.key, k.id, claims, header)
}

func signWith(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any, header map[jose.HeaderKey]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt")
	for name, v := range header {
		o = o.WithHeader(name, v)
	}
	if id != "" {
		o = o.WithHeader("kid", id)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	must(t, err)
	payload, err := json.Marshal(claims)
	must(t, err)
	return compact(t, s, payload)
}

func compact(t testing.TB, s jose.Signer, payload []byte) string {
	t.Helper()
	signed, err := s.Sign(payload)
	must(t, err)
	text, err := signed.CompactSerialize()
	must(t, err)
	return text
}

const audience = "https://writ.example/mcp"

// claims are those of a good token, with changes; nil takes one away.
func (p *provider) claims(changes map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{
		"iss": p.url, "aud": audience, "sub": "service-account-7", "client_id": "ci", "jti": fmt.Sprint(now),
		"exp": now + 300, "iat": now, "scope": "openid writ:coder",
	}
	for name, v := range changes {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

func (p *provider) verifier() *Verifier {
	return New(Options{
		Issuer: p.url, Audience: audience, Dial: (&net.Dialer{}).DialContext,
		Scopes: map[string]string{"writ:coder": "coder", "writ:code": "coder", "writ:other": "other"}, Subjects: map[string]string{"robot": "other"},
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
