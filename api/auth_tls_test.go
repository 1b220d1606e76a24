package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/need"
)

// authority signs client certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{t, cert, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue signs a certificate of an agent, good for a while.
func (a *authority) issue(good time.Duration, change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(good), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func dns(names ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = names }
}

// mtls is a world that asks for certificates of an authority.
type mtls struct {
	*world
	ca    *authority
	path  string // of the authority's file
	trust *tls.Config
	pin   tls.Certificate // whose fingerprint is agent helper's
}

func newMTLS(t *testing.T) *mtls {
	t.Helper()
	at, trust := certificate(t, []string{"writ.test"}, net.IPv4(127, 0, 0, 1))
	m := &mtls{ca: newAuthority(t, "agents"), path: filepath.Join(t.TempDir(), "ca.pem"), trust: trust}
	must(t, os.WriteFile(m.path, m.ca.pem(), 0o600))
	at.Address, at.ClientCA = "127.0.0.1:0", m.path
	m.pin = m.ca.issue(time.Hour, dns("pinned.internal"))
	m.world = newWorldAt(t, at)
	m.doors[agentDoor] = m.with(nil)
	sum := sha256.Sum256(m.pin.Certificate[0])
	m.write("writ.yaml", fmt.Sprintf(`version: 1
listen: {address: "127.0.0.1:0", certificate: %[2]s, key: %[3]s, client_ca: %[4]s}
store: {path: %[1]s/state}
workspaces: {main: {path: %[1]s/ws}}
agents:
  coder: {workspace: main, person: alice, certificates: ["spiffe://example/coder", coder.internal]}
  helper: {workspace: main, parent: coder, level: sandboxed, certificates: ["sha256:%[5]s"]}
  other: {workspace: main, level: sandboxed, certificates: [other.internal]}
`, m.dir, at.Certificate, at.Key, m.path, hex.EncodeToString(sum[:])))
	m.restart()
	m.doors[agentDoor] = m.with(nil)
	return m
}

// with is a client that shows a certificate, on connections of its own.
func (m *mtls) with(cert *tls.Certificate) *http.Client {
	conf := m.trust.Clone()
	if cert != nil {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil } // whoever was asked for
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}}
}

// as is whom the daemon takes a client with a certificate for.
func (m *mtls) as(c *http.Client, token string) (agent string, got answer) {
	m.t.Helper()
	m.doors[agentDoor] = c
	got = m.ask(ask{agentDoor, token, "GET", "/v1/agents?limit=1", nil, ""})
	if got.status == 200 {
		agent = jsonOf[client.Page[client.Agent]](m.t, got).Data[0].Name
	}
	return agent, got
}

func TestClientCertificates(t *testing.T) {
	m := newMTLS(t)
	uri, err := url.Parse("spiffe://example/coder")
	must(t, err)
	for name, row := range map[string]struct {
		change func(*x509.Certificate)
		token  string
		agent  string
		status int
		want   string
	}{
		"by URI":              {func(c *x509.Certificate) { c.URIs = []*url.URL{uri} }, "", "coder", 200, ""},
		"by DNS name":         {dns("other.internal"), "", "other", 200, ""},
		"two names of one":    {func(c *x509.Certificate) { c.URIs, c.DNSNames = []*url.URL{uri}, []string{"coder.internal"} }, "", "coder", 200, ""},
		"and its own token":   {dns("other.internal"), "other", "other", 200, ""},
		"nobody's, and token": {dns("nobody.internal"), "other", "other", 200, ""},
		"nobody's":            {dns("nobody.internal"), "", "", 401, "the certificate is no agent's; the operator lists certificates with agents.NAME.certificates"},
		"by its common name":  {func(c *x509.Certificate) { c.Subject.CommonName = "coder.internal" }, "", "", 401, "the certificate is no agent's; the operator lists certificates with agents.NAME.certificates"},
		"a pattern":           {dns("*.internal"), "", "", 401, "the certificate is no agent's; the operator lists certificates with agents.NAME.certificates"},
		"two agents'":         {dns("coder.internal", "other.internal"), "", "", 403, "the certificate is several agents': coder, other; use one that names one agent"},
		"two agents', token":  {dns("coder.internal", "other.internal"), "coder", "", 403, "the certificate is several agents': coder, other; use one that names one agent"},
		"another's token":     {dns("other.internal"), "coder", "", 403, "the certificate and the token are different agents'; show those of one"},
		"a bad token":         {dns("other.internal"), "writ_bad", "", 401, "the token is unknown or revoked; 'writ agent token NAME' makes one"},
	} {
		cert := m.ca.issue(time.Hour, row.change)
		agent, got := m.as(m.with(&cert), row.token)
		if agent != row.agent || got.status != row.status || got.problem.Detail != row.want {
			t.Errorf("%s: %q %d %s", name, agent, got.status, got.body)
		}
	}
	if agent, got := m.as(m.with(&m.pin), ""); agent != "helper" {
		t.Errorf("by fingerprint: %s", got.body)
	}
	if agent, got := m.as(m.with(nil), "other"); agent != "other" {
		t.Errorf("without a certificate: %s", got.body)
	}
	if _, got := m.as(m.with(nil), ""); got.status != 401 || got.problem.Detail != sendToken {
		t.Errorf("with nothing: %s", got.body)
	}
	// What no CA of ours signed, or signed for something else, or is over, does not connect.
	stranger, server, over := newAuthority(t, "agents").issue(time.Hour, dns("coder.internal")), m.ca.issue(time.Hour, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"coder.internal"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}), m.ca.issue(-time.Minute, dns("coder.internal"))
	for name, cert := range map[string]tls.Certificate{"a stranger's": stranger, "a server's": server, "an expired one": over} {
		if resp, err := m.with(&cert).Get(m.url + "/v1/health"); err == nil {
			resp.Body.Close()
			t.Errorf("%s connects", name)
		}
	}
}

// A certificate's calls are recorded under its fingerprint, and can be revoked.
func TestCertificateIsRecorded(t *testing.T) {
	m := newMTLS(t)
	cert := m.ca.issue(time.Hour, dns("coder.internal"))
	m.doors[agentDoor] = m.with(&cert)
	m.ok(ask{agentDoor, "", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})
	s := jsonOf[client.Session](t, m.ok(ask{agentDoor, "", "POST", "/v1/sessions", nil, `{"name":"a"}`}))
	sum := sha256.Sum256(cert.Certificate[0])
	if want := "cert:" + hex.EncodeToString(sum[:8]); s.Token != want {
		t.Errorf("recorded as %q, want %q", s.Token, want)
	}
	m.ok(ask{operatorDoor, "", "DELETE", "/v1/tokens/" + s.Token, nil, ""})
	m.refused(ask{agentDoor, "", "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, "this proof of who you are was revoked; ask the operator")
	next := m.ca.issue(time.Hour, dns("coder.internal"))
	m.doors[agentDoor] = m.with(&next)
	m.ok(ask{agentDoor, "", "GET", "/v1/tools", nil, ""})
}

// A connection outlives what it was opened with: each request is held to what is good
// then. The authority's file and the agents' names are taken up as they change.
func TestCertificateGoesBad(t *testing.T) {
	m := newMTLS(t)
	brief, long := m.ca.issue(4*time.Second, dns("coder.internal")), m.ca.issue(time.Hour, dns("other.internal"))
	first, second := m.with(&brief), m.with(&long)
	end := time.Now().Add(30 * time.Second)
	agent, got := m.as(first, "")
	for ; agent == "coder" && time.Now().Before(end); agent, got = m.as(first, "") {
	}
	if got.status != 401 || got.problem.Detail != "the certificate is not good any more; connect again with a new one" {
		t.Errorf("expired on an open connection: %d %s", got.status, got.body)
	}
	if agent, got = m.as(second, ""); agent != "other" {
		t.Fatalf("the control: %s", got.body)
	}
	// The operator takes the name away.
	text, err := os.ReadFile(filepath.Join(m.dir, "writ.yaml"))
	must(t, err)
	m.write("writ.yaml", strings.Replace(string(text), "[other.internal]", "[another.internal]", 1))
	m.ok(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""})
	if _, got = m.as(second, ""); got.status != 401 {
		t.Errorf("a name that was taken away: %d %s", got.status, got.body)
	}
	m.write("writ.yaml", string(text))
	m.ok(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""})
	if agent, _ = m.as(second, ""); agent != "other" {
		t.Error("a name that was given back is not taken")
	}
	// Another authority is trusted, and not this one any more; a half-written file is not taken up.
	later := time.Now()
	replace := func(text []byte) {
		t.Helper()
		later = later.Add(time.Minute)
		must(t, os.WriteFile(m.path, text, 0o600))
		must(t, os.Chtimes(m.path, later, later))
	}
	replace([]byte("-----BEGIN"))
	if agent, _ = m.as(second, ""); agent != "other" {
		t.Error("a broken file was taken up")
	}
	next := newAuthority(t, "next")
	replace(next.pem())
	if _, got = m.as(second, ""); got.status != 401 {
		t.Errorf("of an authority that is not trusted any more: %d %s", got.status, got.body)
	}
	renewed := next.issue(time.Hour, dns("other.internal"))
	if agent, got = m.as(m.with(&renewed), ""); agent != "other" {
		t.Errorf("of the new authority: %s", got.body)
	}
}

// Beyond loopback nothing answers without TLS, and with it nothing but what is for
// anyone answers somebody who shows nothing.
func TestBeyondLoopback(t *testing.T) {
	far := elsewhere(t)
	if far.IsLoopback() {
		need.Lacking(t, "this machine has no address but loopback")
	}
	at, trust := certificate(t, []string{"writ.test"}, far, net.IPv4(127, 0, 0, 1))
	w := newWorldAt(t, at)
	w.url = "https://" + far.String() + w.url[strings.LastIndexByte(w.url, ':'):]
	w.doors[agentDoor] = &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	for _, r := range routes() {
		if r.doors&agentDoor == 0 || r.who == anyone {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), r.method, w.url+strings.NewReplacer("{", "", "}", "").Replace(r.path), nil)
		must(t, err)
		resp, err := w.doors[agentDoor].Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: %d", r.method, r.path, resp.StatusCode)
		}
	}
	if resp, err := http.Get("http" + strings.TrimPrefix(w.url, "https") + "/v1/health"); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest { // net/http says that this speaks HTTPS
			t.Errorf("in the clear: %d", resp.StatusCode)
		}
	}
}
