// Package sshagent is an agent of ssh for programs of a box: it signs them in at servers
// that were decided on, and does nothing else. The keys stay where they are (I7).
//
// Whoever holds the socket of an agent can sign in wherever its keys are taken, and have
// anything signed. Here a program first has to show whom it talks to (session-bind, which
// OpenSSH does since 8.9): the server's signature over the session, by a key that is known
// of that server. Then it gets one thing signed: that it is the user of that session, on that
// server, as whom the operator said. Signed for one session, it is of no use in another, since
// a session's number has the server's key in it; so a bind that is repeated elsewhere gains
// nothing. What is done on the server afterwards nobody here sees.
package sshagent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/gitssh"
)

// A Login is who programs may be on one server.
type Login struct {
	Address string                                      // host:port, as known hosts have it
	User    string                                      // and no other
	Keys    func(context.Context) ([]ssh.Signer, error) // looked up when they are needed, and held no longer than the context
	At      string                                      // where it is said, for the log
}

// Options are an agent's. Without logins it signs nothing.
type Options struct {
	Logins     []Login
	KnownHosts []string           // files of servers' keys
	Log        func(egress.Event) // hears of everything that is signed, and that is not
}

// Agent serves the programs of one box. It is safe for concurrent use. The zero value signs
// nothing, and tells nobody.
type Agent struct {
	opts   Options
	logins []login

	mu    sync.Mutex
	used  int             // what was looked up, signed and refused
	shown map[string]bool // sessions
}

// login is a Login with the keys that its server may show.
type login struct {
	Login
	known gitssh.Known
}

// New makes an agent. A server whose key is not known is an error.
func New(o Options) (*Agent, error) {
	a := &Agent{opts: o, shown: map[string]bool{}}
	for _, l := range o.Logins {
		known, err := gitssh.KnownOf(l.Address, o.KnownHosts...)
		if err != nil {
			return nil, err
		}
		a.logins = append(a.logins, login{l, known})
	}
	return a, nil
}

// Bounds of one program, and of all of a box.
const (
	lasts        = 2 * time.Minute // which is how long servers wait for somebody to sign in
	mostRequests = 64
	mostUsed     = 2000
)

// Talk implements sandbox.Agent.
func (a *Agent) Talk(ctx context.Context, c net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	l := &line{agent: a}
	for range mostRequests {
		request, err := read(c)
		if a.spent() {
			return
		}
		if errors.Is(err, errLength) {
			a.tell(nil, egress.NotSigned, err.Error())
		}
		if err != nil {
			return
		}
		if err := write(c, l.answer(ctx, request)); err != nil {
			return
		}
	}
}

// spent reports whether the programs of the box have had all that they may.
func (a *Agent) spent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used >= mostUsed
}

// first reports whether a session was not shown before: a program that signs in shows its own
// once. There are no more of them than of servers' signatures, but those are for the asking.
func (a *Agent) first(session []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shown[string(session)] || len(a.shown) >= mostUsed {
		return false
	}
	a.shown[string(session)] = true
	return true
}

// use counts what is done for the programs of the box.
func (a *Agent) use() {
	a.mu.Lock()
	a.used++
	last := a.used == mostUsed
	a.mu.Unlock()
	if last && a.opts.Log != nil {
		a.opts.Log(egress.Event{At: time.Now(), Kind: "ssh", Verdict: egress.TooMany, Host: a.names(), Detail: "the agent has done as much as it does for one box"})
	}
}

// tell has something written down.
func (a *Agent) tell(at *login, v egress.Verdict, detail string) {
	e := egress.Event{At: time.Now(), Kind: "ssh", Verdict: v, Detail: detail, Host: a.names()}
	if at != nil {
		e.Host, e.Rule = at.Address, at.At
	}
	if a.opts.Log != nil {
		a.opts.Log(e)
	}
	a.use()
}

// names are all servers that it is for.
func (a *Agent) names() string {
	var all []string
	for _, l := range a.logins {
		all = append(all, l.Address)
	}
	return strings.Join(all, " ")
}

// at are the logins of a server that showed a key, or a certificate.
func (a *Agent) at(key ssh.PublicKey) []*login {
	var out []*login
	for i, l := range a.logins {
		if l.known.Shows(key) == nil {
			out = append(out, &a.logins[i])
		}
	}
	return out
}
