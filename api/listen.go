package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
)

// Listeners are where a server listens.
type Listeners struct {
	Agents   net.Listener // loopback TCP, or any address with TLS
	Operator net.Listener // Unix socket
	Socket   net.Listener // Unix socket of agents of other users; nil: there is none
	TLS      *tls.Config  // of Agents; nil: in the clear
	leaf     func() *x509.Certificate
}

// URL is where agents come in.
func (l Listeners) URL() string {
	if l.TLS != nil {
		return "https://" + l.Agents.Addr().String()
	}
	return "http://" + l.Agents.Addr().String()
}

// Listen opens all of them. Without a certificate it takes loopback only, whatever the
// configuration said: a token must not cross a network in the clear. Issuers of tokens are
// reached by reach.
func Listen(at config.Listen, state string, reach Reach) (Listeners, error) {
	var l Listeners
	var err error
	if l.TLS, l.leaf, err = secure(at); err != nil {
		return Listeners{}, err
	}
	proofs := &proofs{}
	if proofs.oauth, err = newIssuer(at.OAuth, reach); err != nil {
		return Listeners{}, err
	}
	if proofs.clients, err = askClients(at.ClientCA, l.TLS); err != nil {
		return Listeners{}, err
	}
	if a, err := netip.ParseAddrPort(at.Address); l.TLS == nil && (err != nil || !a.Addr().IsLoopback()) {
		return Listeners{}, fmt.Errorf("listen on %s: without a certificate only 127.0.0.1 or [::1] can be listened on; set listen.certificate and listen.key", at.Address)
	}
	if l.Agents, err = net.Listen("tcp", at.Address); err != nil {
		return Listeners{}, fmt.Errorf("listen on %s: %w; set 'listen' in the configuration to a free port", at.Address, err)
	}
	l.Agents = arriving{l.Agents, proofs}
	if l.Operator, err = listenSocket(client.SocketPath(state), proofs); err != nil {
		return Listeners{}, errors.Join(err, l.Agents.Close())
	}
	if l.Socket, err = listenAgents(at.Socket, proofs); err != nil {
		return Listeners{}, errors.Join(err, l.Agents.Close(), l.Operator.Close())
	}
	return l, nil
}

// serveSocket serves users of this machine, who have as many connections as the network.
func serveSocket(srv *http.Server, l Listeners, connections int) error {
	socket := atMost(l.Socket, connections)
	srv.ConnState = socket.state
	return srv.Serve(socket)
}

// secure is the TLS of a configured certificate, or nil where there is none.
func secure(at config.Listen) (*tls.Config, func() *x509.Certificate, error) {
	if at.Certificate == "" && at.Key == "" {
		return nil, nil, nil
	}
	r := &renewed{at: at}
	if err := r.load(); err != nil {
		return nil, nil, fmt.Errorf("load listen.certificate and listen.key: %w; give both as PEM files that belong together", err)
	}
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.get(), nil }
	leaf := func() *x509.Certificate { return r.get().Leaf }
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: []string{"h2", "http/1.1"}}, leaf, nil
}

// renewed is a certificate that is taken up when its files change. Files that do not
// load, such as one half of a renewal, leave the one before.
type renewed struct {
	at config.Listen

	mu   sync.Mutex
	pair *tls.Certificate
	seen string // the files as they were when last looked at
}

func (r *renewed) load() error {
	r.seen = stamp(r.at.Certificate, r.at.Key)
	pair, err := tls.LoadX509KeyPair(r.at.Certificate, r.at.Key)
	if err == nil {
		r.pair = &pair
	}
	return err
}

// stamp is how files look from outside: it changes when one of them does.
func stamp(paths ...string) string {
	var out string
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			out += fmt.Sprintln(info.ModTime().UnixNano(), info.Size())
		}
	}
	return out
}

func (r *renewed) get() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stamp(r.at.Certificate, r.at.Key) != r.seen {
		_ = r.load() // what does not load yet is looked at again when it changes
	}
	return r.pair
}

func listenSocket(path string, p *proofs) (net.Listener, error) {
	if len(path) > 100 {
		return nil, fmt.Errorf("the socket's path %s is too long for the system; choose a shorter store.path", path)
	}
	// The store's lock is held, so a socket that is there belongs to nobody.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the operator socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return ownUserOnly{l, p}, nil
}
