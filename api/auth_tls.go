package api

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

// askClients has a TLS configuration ask for certificates that a CA signed, and gives
// that CA as it is now. One that shows none comes in all the same, and needs a token.
func askClients(path string, secure *tls.Config) (func() *x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	if secure == nil {
		return nil, errors.New("listen.client_ca: certificates are shown over TLS only; set listen.certificate and listen.key")
	}
	ca := &clientCA{path: path}
	if err := ca.load(); err != nil {
		return nil, fmt.Errorf("load listen.client_ca: %w; give a PEM file of certificates", err)
	}
	plain := secure.Clone()
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		asking := plain.Clone()
		asking.ClientAuth, asking.ClientCAs = tls.VerifyClientCertIfGiven, ca.get()
		return asking, nil
	}
	return ca.get, nil
}

// clientCA is a file of certificates that is taken up when it changes. What does not
// load leaves what was there before.
type clientCA struct {
	path string

	mu   sync.Mutex
	pool *x509.CertPool
	seen string // the file as it was when last looked at
}

func (c *clientCA) load() error {
	c.seen = stamp(c.path)
	pem, err := os.ReadFile(c.path)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New("there is no certificate in it")
	}
	c.pool = pool
	return nil
}

func (c *clientCA) get() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stamp(c.path) != c.seen {
		_ = c.load() // what does not load yet is looked at again when it changes
	}
	return c.pool
}

// certified is the agent of the certificate that a connection showed, or none. The
// certificate is verified anew for each request: connections outlive certificates, and
// the CA that signed one may not be trusted any more.
func (x *exchange) certified(from arrival) (engine.Caller, error) {
	if x.r.TLS == nil || len(x.r.TLS.PeerCertificates) == 0 {
		return engine.Caller{}, nil
	}
	if from.clients == nil {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "certificates are not taken here; send a token", nil)
	}
	leaf, between := x.r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, c := range x.r.TLS.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: from.clients(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "the certificate is not good any more; connect again with a new one", err)
	}
	agents := x.engine.Config().AgentsOf(leaf)
	switch {
	case len(agents) > 1:
		return engine.Caller{}, writ.Fail(writ.Denied, "the certificate is several agents': "+strings.Join(agents, ", ")+"; use one that names one agent", nil)
	case len(agents) == 1:
		sum := sha256.Sum256(leaf.Raw)
		return x.engine.Vouch(x.r.Context(), agents[0], "cert:"+hex.EncodeToString(sum[:8]))
	case len(x.r.Header.Values("Authorization")) == 0:
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "the certificate is no agent's; the operator lists certificates with agents.NAME.certificates", nil)
	}
	return engine.Caller{}, nil // it says nothing, and the token does
}
