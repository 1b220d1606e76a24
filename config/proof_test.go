package config

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// certified is whom a URI and a DNS name in certificates stand for.
func certified(t testing.TB, c *Config) string {
	t.Helper()
	u, err := url.Parse("spiffe://example/bot")
	must(t, err)
	return fmt.Sprintf("uri %v, dns %v", c.AgentsOf(&x509.Certificate{URIs: []*url.URL{u}}), c.AgentsOf(&x509.Certificate{DNSNames: []string{"BOT.internal"}}))
}

// A certificate is known by what its CA vouches for, compared whole.
func TestAgentsOf(t *testing.T) {
	p := newPlace(t)
	fingerprint := sha256.Sum256([]byte("der"))
	c := p.mustLoad(t, withTLS+"client_ca: $DIR/tls/cert.pem}\n"+oneAgent[11:]+`agents:
  uri: {workspace: main, certificates: ["spiffe://example/a"]}
  dns: {workspace: main, certificates: [a.internal, b.internal]}
  sum: {workspace: main, certificates: ["sha256:`+strings.ToUpper(hex.EncodeToString(fingerprint[:]))+`"]}
`)
	uris := func(texts ...string) (out []*url.URL) {
		for _, s := range texts {
			u, err := url.Parse(s)
			must(t, err)
			out = append(out, u)
		}
		return out
	}
	for name, row := range map[string]struct {
		leaf x509.Certificate
		want []string
	}{
		"uri":             {x509.Certificate{URIs: uris("spiffe://example/a")}, []string{"uri"}},
		"uri below":       {x509.Certificate{URIs: uris("spiffe://example/a/b", "spiffe://example/A", "SPIFFE://example/")}, nil},
		"dns":             {x509.Certificate{DNSNames: []string{"A.Internal", "b.internal"}}, []string{"dns"}},
		"wildcard":        {x509.Certificate{DNSNames: []string{"*.internal", "x.a.internal", "internal"}}, nil},
		"common name":     {x509.Certificate{Subject: pkix.Name{CommonName: "a.internal"}}, nil},
		"mail":            {x509.Certificate{EmailAddresses: []string{"a.internal"}}, nil},
		"uri as dns":      {x509.Certificate{DNSNames: []string{"spiffe://example/a"}}, nil},
		"fingerprint":     {x509.Certificate{Raw: []byte("der")}, []string{"sum"}},
		"two agents":      {x509.Certificate{Raw: []byte("der"), DNSNames: []string{"a.internal"}}, []string{"dns", "sum"}},
		"another's bytes": {x509.Certificate{Raw: []byte("other")}, nil},
	} {
		if got := c.AgentsOf(&row.leaf); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// What nobody but the daemon may reach or change is hidden from boxes and kept out of
// workspaces.
func TestOwnProofs(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, withTLS+"client_ca: $DIR/tls/cert.pem, socket: $DIR/run/agents.sock}\n")
	for _, path := range []string{"tls/key.pem", "tls/cert.pem", "run"} {
		if !slices.Contains(c.Own(), filepath.Join(string(p), path)) {
			t.Errorf("%s is not hidden: %v", path, c.Own())
		}
	}
	for _, text := range []string{withTLS + "client_ca: $DIR/tls/cert.pem}\nworkspaces: {main: {path: $DIR/tls}}\n", "version: 1\nlisten: {socket: $DIR/run/agents.sock}\nworkspaces: {main: {path: $DIR/run}}\n"} {
		if _, err := p.load(t, text, 0o600); err == nil || !strings.Contains(err.Error(), "lies inside it, where agents write; move one of them") {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// A directory that another writ's socket was left in can be used again; one with
// anything else in it cannot.
func TestSocketDirectory(t *testing.T) {
	p := newPlace(t)
	const text = "version: 1\nlisten: {socket: $DIR/run/agents.sock}\n"
	p.mustLoad(t, text)
	must(t, os.WriteFile(filepath.Join(string(p), "run", "agents.sock"), nil, 0o600))
	_, err := p.load(t, text, 0o600)
	if want := "writ.yaml:2: listen.socket: $DIR/run holds more than the socket, and is hidden from boxes whole; name a directory of its own"; err == nil || strings.ReplaceAll(err.Error(), string(p), "$DIR") != want {
		t.Errorf("%v", err)
	}
}

// Listen is the same when it says the same, so that a reload with an issuer is none of listen.
func TestSame(t *testing.T) {
	p := newPlace(t)
	text := strings.ReplaceAll(withOAuth, "$X", "https://a.example")
	one, again := p.mustLoad(t, text), p.mustLoad(t, text)
	other := p.mustLoad(t, strings.ReplaceAll(text, "{s: bot}", "{s: bot, z: bot}"))
	if !one.File.Listen.Same(again.File.Listen) || one.Digest != again.Digest {
		t.Error("the same text is not the same")
	}
	if one.File.Listen.Same(other.File.Listen) || one.Digest == other.Digest {
		t.Error("another scope is the same")
	}
}
