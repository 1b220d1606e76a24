package oauth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/writ-run/writ"
)

const down = "access tokens cannot be verified now, because the keys of %s could not be had; try again in half a minute"

// clock is the verifier's time, which the test moves.
func clock(v *Verifier) func(time.Duration) {
	var ahead atomic.Int64
	v.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// A new key is found when a token has it, but whoever makes up key ids has the issuer
// asked once in half a minute.
func TestRotationAndStorm(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	old, next := newKey(t, "old", jose.ES256), newKey(t, "next", jose.ES256)
	p.publish(old)
	v := p.verifier()
	later := clock(v)
	long := p.claims(map[string]any{"exp": time.Now().Unix() + 1<<20})
	good := func(k private) error { _, err := v.Verify(t.Context(), k.sign(t, long, nil)); return err }
	if p.asked.Load() != 0 {
		t.Fatal("the issuer was asked before there was a token")
	}
	must(t, good(old))
	if p.asked.Load() != 2 {
		t.Errorf("%d requests for the metadata and the keys", p.asked.Load())
	}
	p.publish(next)
	if err := good(next); err == nil {
		t.Error("a key is known that was not got")
	}
	later(retry)
	must(t, good(next))
	var all sync.WaitGroup
	asked := p.asked.Load()
	later(retry)
	for i := range 200 {
		all.Go(func() {
			if _, err := v.Verify(t.Context(), signWith(t, jose.ES256, next.key, fmt.Sprint("made-up-", i), long, nil)); err == nil {
				t.Error("a made-up key id is taken")
			}
			must(t, good(old)) // and nobody else is held up
		})
	}
	all.Wait()
	if n := p.asked.Load() - asked; n != 2 {
		t.Errorf("made-up key ids cost %d requests", n)
	}
	p.set(func() { p.keys = p.keys[1:] })
	later(refresh)
	if err := good(old); err == nil || !strings.Contains(err.Error(), "it is signed with a key that the issuer does not have") {
		t.Errorf("a withdrawn key: %v", err)
	}
	must(t, good(next))
}

// While the issuer cannot be reached, known keys are good for an hour and no longer,
// and it is tried again in half a minute and no sooner.
func TestIssuerDown(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	k := newKey(t, "a", jose.EdDSA)
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	p.over["/keys"] = broken
	v := p.verifier()
	later := clock(v)
	token := k.sign(t, p.claims(map[string]any{"exp": time.Now().Unix() + 1<<20}), nil)
	verify := func(told bool) error {
		t.Helper()
		_, err := v.Verify(t.Context(), token)
		var cause *FetchError
		if errors.As(err, &cause) != told {
			t.Errorf("told %t: %v", told, err)
		}
		if _, said := writ.Public(err); err != nil && (said != fmt.Sprintf(down, p.url) || writ.KindOf(err) != writ.Unauthenticated) {
			t.Errorf("it says %v", err)
		}
		return err
	}
	if verify(true) == nil || verify(false) == nil {
		t.Error("a token is taken without keys")
	}
	p.publish(k)
	p.set(func() { delete(p.over, "/keys") })
	if verify(false) == nil {
		t.Error("it was tried again at once")
	}
	later(retry)
	must(t, verify(false))
	p.set(func() { p.over["/keys"] = broken })
	later(goodFor - time.Minute)
	must(t, verify(false))
	later(time.Minute)
	if verify(true) == nil {
		t.Error("keys are good for ever")
	}
}

// Metadata and keys that lead elsewhere, never end or are not what they should be.
func TestBadIssuers(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.Error("another host was asked") }))
	t.Cleanup(elsewhere.Close)
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/keys", http.StatusFound)
	}
	const discovery = "/.well-known/openid-configuration"
	for name, row := range map[string]struct {
		change func(*provider)
		want   string // a part of the cause
	}{
		"keys redirect":       {func(p *provider) { p.over["/keys"] = redirect }, "/keys answers 302"},
		"metadata redirects":  {func(p *provider) { p.over[discovery] = redirect }, "openid-configuration answers 302"},
		"keys elsewhere":      {func(p *provider) { p.doc["jwks_uri"] = elsewhere.URL + "/keys" }, "is not the issuer's; list it in listen.oauth.jwks_hosts if keys may come from there"},
		"keys in the clear":   {func(p *provider) { p.doc["jwks_uri"] = "http://169.254.169.254/keys" }, "is not https"},
		"keys in a file":      {func(p *provider) { p.doc["jwks_uri"] = "file:///etc/passwd" }, "does not start with http:// or https://"},
		"keys with a user":    {func(p *provider) { p.doc["jwks_uri"] = strings.Replace(p.url, "://", "://x@", 1) + "/keys" }, "has user information"},
		"no keys' address":    {func(p *provider) { delete(p.doc, "jwks_uri") }, "jwks_uri"},
		"another issuer":      {func(p *provider) { p.doc["issuer"] = "https://other.example" }, "issuer is not "},
		"issuer with a slash": {func(p *provider) { p.doc["issuer"] = p.url + "/" }, "issuer is not "},
		"metadata twice":      {func(p *provider) { p.over[discovery] = answer(`{"issuer":"a","issuer":"` + p.url + `"}`) }, "given twice"},
		"metadata is a page":  {func(p *provider) { p.over[discovery] = answer("<html>") }, "it is not a JSON object"},
		"huge keys":           {func(p *provider) { p.over["/keys"] = answer(strings.Repeat(" ", maxAnswer) + "{}") }, "answers more than 1048576 bytes"},
		"too many keys":       {func(p *provider) { p.over["/keys"] = answer(`{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`) }, "keys is not a list of at most 64"},
		"no keys":             {func(p *provider) { p.over["/keys"] = answer(`{"keys":[]}`) }, "none of its keys can be used"},
		"a secret as a key":   {func(p *provider) { p.over["/keys"] = answer(`{"keys":[{"kty":"oct","k":"AAAA","kid":"a"}]}`) }, "none of its keys can be used"},
		"a short RSA key": {func(p *provider) {
			p.over["/keys"] = answer(`{"keys":[{"kty":"RSA","n":"` + strings.Repeat("_", 170) + `","e":"AQAB","kid":"a"}]}`)
		}, "none of its keys can be used"},
		"a key for encryption": {func(p *provider) { p.keys[0].Use = "enc" }, "none of its keys can be used"},
		"a point off the curve": {func(p *provider) {
			p.over["/keys"] = answer(`{"keys":[{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `","kid":"a"}]}`)
		}, "none of its keys can be used"},
		"an answer that is late": {func(p *provider) {
			p.over["/keys"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, "", httptest.NewServer)
			k := newKey(t, "a", jose.ES256)
			p.publish(k)
			token := k.sign(t, p.claims(nil), nil)
			if _, err := p.verifier().Verify(t.Context(), token); err != nil {
				t.Fatalf("the control: %v", err)
			}
			row.change(p)
			_, err := p.verifier().Verify(t.Context(), token)
			if _, said := writ.Public(err); err == nil || said != fmt.Sprintf(down, p.url) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// Keys may come from another host that the operator listed; an issuer may have a path,
// and metadata of RFC 8414 alone.
func TestDiscovery(t *testing.T) {
	k := newKey(t, "a", jose.ES256)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.key.Public(), KeyID: "a"}}})
	}))
	t.Cleanup(keys.Close)
	p := newProvider(t, "/realms/one", httptest.NewServer)
	p.publish(k)
	token := k.sign(t, p.claims(nil), nil)
	if _, err := p.verifier().Verify(t.Context(), token); err != nil {
		t.Errorf("with a path: %v", err)
	}
	p.doc["jwks_uri"] = keys.URL
	v := p.verifier()
	v.o.KeyHosts = []string{strings.TrimPrefix(keys.URL, "http://")}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("of a listed host: %v", err)
	}
	p.over["/realms/one/.well-known/openid-configuration"] = http.NotFound
	p.over["/.well-known/oauth-authorization-server/realms/one"] = func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(p.doc) }
	v = p.verifier()
	v.o.KeyHosts = []string{strings.TrimPrefix(keys.URL, "http://")}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("by RFC 8414: %v", err)
	}
}

// Over TLS the issuer's certificate counts, and no proxy of the environment.
func TestTLS(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	var server *httptest.Server
	p := newProvider(t, "", func(h http.Handler) *httptest.Server {
		server = httptest.NewUnstartedServer(h)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		return server
	})
	k := newKey(t, "a", jose.EdDSA)
	p.publish(k)
	token := k.sign(t, p.claims(nil), nil)
	v := p.verifier()
	if _, err := v.Verify(t.Context(), token); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	v = p.verifier()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	v.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// The zero Options take nothing.
func TestZeroRefuses(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	k := newKey(t, "a", jose.EdDSA)
	p.publish(k)
	v := New(Options{})
	if _, err := v.Verify(t.Context(), k.sign(t, p.claims(map[string]any{"iss": "", "aud": ""}), nil)); err == nil {
		t.Error("taken")
	}
	if (claims{expires: time.Now().Add(time.Hour), subject: "a", audience: []string{""}}).wrong("", "", time.Now()) == "" {
		t.Error("an empty issuer is an issuer")
	}
}
