// Package oauth is the resource server's side of OAuth 2.1: it finds an issuer's keys
// (OpenID Connect discovery, or RFC 8414), verifies access tokens that are JWTs
// (RFC 9068), and says which agent a token stands for. It issues nothing, asks no
// endpoint about a token, and follows nothing that a token names: the address of the
// keys comes from the issuer, and the issuer from the operator.
//
// Only four algorithms are taken, each bound to one type of key. They are the standard
// library's; what is here is strict reading.
package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
)

const (
	maxToken  = 16 << 10
	leeway    = 60 * time.Second // between our clock and the issuer's
	retry     = 30 * time.Second // at least, between two tries to get keys, whatever asks for them
	refresh   = 10 * time.Minute // keys older than this are got again
	goodFor   = time.Hour        // and not used any more after this, should that fail
	patience  = 5 * time.Second  // for everything that getting keys takes
	maxAnswer = 1 << 20
	maxKeys   = 64
	waiters   = 32 // requests that wait while keys are got
)

// Options say whose tokens are taken, and whom they stand for.
type Options struct {
	Issuer   string            // as iss has it, to the letter
	Audience string            // one of aud, to the letter
	KeyHosts []string          // host or host:port that keys may come from, beside the issuer's own
	Scopes   map[string]string // agents by scope
	Subjects map[string]string // agents by sub
	Dial     Dial              // to the hosts of keys
}

// Verifier verifies tokens of one issuer. It is safe for concurrent use, and asks the
// issuer nothing before the first token.
type Verifier struct {
	o       Options
	client  *http.Client
	now     func() time.Time
	getting chan struct{} // held while keys are got
	waiting atomic.Int32
	ring    atomic.Pointer[ring]
}

// New makes a verifier. The zero Options take no token.
func New(o Options) *Verifier {
	if o.Dial == nil { // the default of a transport goes anywhere
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("there is no way to the issuer")
		}
	}
	v := &Verifier{o: o, client: newClient(o.Dial), now: time.Now, getting: make(chan struct{}, 1)}
	v.ring.Store(&ring{})
	return v
}

// Identity is whom a token stands for.
type Identity struct {
	Agent string
	ID    string // of who holds the token: the same for each token of one subject and client
}

// ErrScope is what a good token lacks that stands for no agent.
var ErrScope = errors.New("no scope and no subject of the token is an agent's")

// FetchError is why keys could not be got. The request that tried has it, and those
// that are refused until the next try have not, so that a log tells it once.
type FetchError struct{ Err error }

func (e *FetchError) Error() string { return "get the issuer's keys: " + e.Err.Error() }
func (e *FetchError) Unwrap() error { return e.Err }

// Verify holds a token to everything and gives whom it stands for. What it says when it
// refuses never has a part of the token in it.
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	t, err := parse(token)
	if err != nil {
		return Identity{}, v.refuse("it is not a signed token that is taken here", err)
	}
	keys, err := v.find(ctx, t)
	if err != nil {
		return Identity{}, err
	}
	if !slices.ContainsFunc(keys, t.signedBy) {
		return Identity{}, v.refuse("its signature is not the issuer's", nil)
	}
	c, err := readClaims(t.payload)
	if err != nil {
		return Identity{}, v.refuse("its claims cannot be read", err)
	}
	if why := c.wrong(v.o.Issuer, v.o.Audience, v.now()); why != "" {
		return Identity{}, v.refuse(why, nil)
	}
	return v.identify(c)
}

func (v *Verifier) refuse(why string, cause error) error {
	return writ.Fail(writ.Unauthenticated, "the access token is refused: "+why+"; get a new one from "+v.o.Issuer, cause)
}

// identify finds the one agent that a token stands for.
func (v *Verifier) identify(c claims) (Identity, error) {
	found := map[string]bool{}
	for _, s := range c.scopes {
		if agent, ok := v.o.Scopes[s]; ok {
			found[agent] = true
		}
	}
	if agent, ok := v.o.Subjects[c.subject]; ok {
		found[agent] = true
	}
	agents := slices.Sorted(maps.Keys(found))
	switch len(agents) {
	case 0:
		return Identity{}, writ.Fail(writ.Denied, "the access token stands for no agent; ask the issuer for one with one of the scopes: "+strings.Join(v.ScopeNames(), " "), ErrScope)
	case 1:
		return Identity{Agent: agents[0], ID: c.id()}, nil
	}
	return Identity{}, writ.Fail(writ.Denied, fmt.Sprintf("the access token stands for several agents (%s); ask the issuer for one with the scope of one agent", strings.Join(agents, ", ")), nil)
}

// ScopeNames are the scopes that stand for agents.
func (v *Verifier) ScopeNames() []string { return slices.Sorted(maps.Keys(v.o.Scopes)) }

// id is short enough for records, and says nothing of the token.
func (c claims) id() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", c.issuer, c.subject, c.client))
	return "oauth:" + hex.EncodeToString(sum[:8])
}
