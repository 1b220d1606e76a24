package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
)

// certificate makes one for names and addresses, signed by itself.
func certificate(t *testing.T, names []string, addresses ...net.IP) (config.Listen, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: addresses,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	at := config.Listen{Address: "0.0.0.0:0", Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	must(t, os.WriteFile(at.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(at.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return at, &tls.Config{RootCAs: roots}
}

// elsewhere is an address of this machine that is not loopback, or loopback where
// there is no other.
func elsewhere(t *testing.T) net.IP {
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// A renewed certificate is taken up without a restart; half of a renewal is not.
func TestRenewedCertificate(t *testing.T) {
	at, _ := certificate(t, []string{"one.test"})
	next, _ := certificate(t, []string{"two.test"})
	_, leaf, err := secure(at)
	must(t, err)
	names := func() string { return strings.Join(leaf().DNSNames, " ") }
	if names() != "one.test" {
		t.Fatalf("it is for %s", names())
	}
	move := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, b, 0o600))
		must(t, os.Chtimes(to, time.Now(), time.Now().Add(time.Minute)))
	}
	move(next.Certificate, at.Certificate)
	if names() != "one.test" {
		t.Error("a certificate without its key was taken up")
	}
	move(next.Key, at.Key)
	if names() != "two.test" {
		t.Errorf("still for %s", names())
	}
}

func TestTLS(t *testing.T) {
	far := elsewhere(t)
	at, trust := certificate(t, []string{"writ.test"}, net.IPv4(127, 0, 0, 1), far)
	w := newWorldAt(t, at)
	port := w.url[strings.LastIndexByte(w.url, ':'):]
	w.url = "https://127.0.0.1" + port
	w.doors[agentDoor] = &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	resp, err := w.doors[agentDoor].Get(w.url + "/v1/health")
	must(t, err)
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.TLS.Version < tls.VersionTLS12 {
		t.Errorf("it speaks %s over TLS %x", resp.Proto, resp.TLS.Version)
	}
	c, err := client.New(w.url, w.token("coder"), trust)
	must(t, err)
	_, err = c.Call(t.Context(), client.CallRequest{Tool: "stat", Args: []byte(`{"path":"."}`)}, 0)
	must(t, err)
	for e, err := range c.Events(t.Context(), 0) { // streams work over HTTP/2 too
		must(t, err)
		if e.Kind == "call.finished" {
			break
		}
	}
	// The Host is one of the certificate's names; loopback alone is not enough.
	for host, ok := range map[string]bool{"writ.test" + port: true, "writ.test": true, "127.0.0.1": true, "localhost": false, "[::1]": false, "evil.test": false, "x.writ.test": false} {
		got := w.ask(ask{agentDoor, "coder", "GET", "/v1/tools", []string{"Host: " + host}, ""})
		if (got.status == 200) != ok || !ok && (got.status != 421 || got.problem.Kind != writ.Denied) {
			t.Errorf("Host %s: %d", host, got.status)
		}
	}
	for origin, ok := range map[string]bool{w.url: true, "http://127.0.0.1" + port: false, "https://writ.test": false} {
		if got := w.ask(ask{agentDoor, "coder", "GET", "/v1/tools", []string{"Origin: " + origin}, ""}); (got.status == 200) != ok {
			t.Errorf("Origin %s: %d", origin, got.status)
		}
	}
	if _, err := client.New("http://"+far.String()+port, "x", nil); err == nil && !far.IsLoopback() {
		t.Error("a token would be sent in the clear")
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust.RootCAs, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}}
	if _, err := old.Get(w.url + "/v1/health"); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	// From another machine the document takes a token; health does not.
	w.url = "https://" + far.String() + port
	if got := w.ask(ask{agentDoor, "", "GET", "/v1/openapi.json", nil, ""}); (got.status == 401) == far.IsLoopback() {
		t.Errorf("the document from %s: %d", far, got.status)
	}
	w.ok(ask{agentDoor, "coder", "GET", "/v1/openapi.json", nil, ""})
	w.ok(ask{agentDoor, "", "GET", "/v1/health", nil, ""})
}

// Without a certificate nothing but loopback is listened on, whatever asks for it.
func TestListen(t *testing.T) {
	state := t.TempDir()
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "10.1.2.3:0", "localhost:0", "", "127.0.0.1"} {
		_, err := Listen(config.Listen{Address: address}, state, nil)
		want := "listen on " + address + ": without a certificate only 127.0.0.1 or [::1] can be listened on; set listen.certificate and listen.key"
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, half := range []config.Listen{{Address: "0.0.0.0:0", Certificate: "x"}, {Address: "0.0.0.0:0", Key: "x"}} {
		if _, err := Listen(half, state, nil); err == nil || !strings.HasPrefix(err.Error(), "load listen.certificate and listen.key: ") {
			t.Errorf("%+v: %v", half, err)
		}
	}
	l, err := Listen(config.Listen{Address: "127.0.0.1:0"}, state, nil)
	must(t, err)
	info, err := os.Stat(client.SocketPath(state))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v", info.Mode())
	}
	must(t, l.Agents.Close())
	must(t, l.Operator.Close())
}
