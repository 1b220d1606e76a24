package api

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

// proofs are what callers can show beside tokens of ours, the same at every listener.
type proofs struct {
	oauth   *issuer               // nil: no access tokens
	clients func() *x509.CertPool // who signs agents' certificates; nil: nobody is asked for one
}

// way is how a connection came in.
type way uint8

const (
	network        way = iota // TCP; who is at the other end is not known
	operatorSocket            // the daemon's own user, or root
	agentSocket               // a user of this machine
)

// arrival is what is known of a connection before its first byte. It travels as the
// connection's local address, which net/http hands to each of its requests: nothing
// that is in a request can change it.
type arrival struct {
	net.Addr
	*proofs
	way way
	uid uint32 // of the other end, on a socket
}

// arriving marks the connections of a listener on the network.
type arriving struct {
	net.Listener
	proofs *proofs
}

func (l arriving) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return arrived(c, l.proofs, network, 0), nil
}

type marked struct {
	net.Conn
	at arrival
}

func (c marked) LocalAddr() net.Addr { return c.at }

func arrived(c net.Conn, p *proofs, w way, uid uint32) net.Conn {
	return marked{c, arrival{c.LocalAddr(), p, w, uid}}
}

// arrivalOf is how a request came in. One of a listener that is not ours came over the
// network, with nothing to show but a token.
func arrivalOf(r *http.Request) arrival {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(arrival)
	if !ok || a.proofs == nil {
		return arrival{proofs: &proofs{}}
	}
	return a
}

const sendToken = "send the agent's token as Authorization: Bearer …; with the CLI, set WRIT_TOKEN"

// agentHeader names the agent that a user of this machine wants to be.
const agentHeader = "Writ-Agent"

// caller finds out which agent asks, by a bearer token, a client certificate, or the
// user at the other end of a socket. It is asked again while a request lasts: whatever
// was good a moment ago may have expired or been revoked.
func (x *exchange) caller(header []string) (engine.Caller, error) {
	from, wanted := arrivalOf(x.r), x.r.Header.Values(agentHeader)
	if len(wanted) > 0 && (from.way == network || len(header) > 0) {
		return engine.Caller{}, writ.Fail(writ.Denied, agentHeader+" is for users of this machine, on a Unix socket and without a token; leave it out", nil)
	}
	if from.way != network && len(header) == 0 {
		return x.peerCaller(from, wanted)
	}
	certified, err := x.certified(from)
	if err != nil {
		return engine.Caller{}, err
	}
	if len(header) == 0 && certified.Agent != "" {
		return certified, nil
	}
	who, err := x.bearer(from, header)
	if err == nil && certified.Agent != "" && certified.Agent != who.Agent {
		return engine.Caller{}, writ.Fail(writ.Denied, "the certificate and the token are different agents'; show those of one", nil)
	}
	return who, err
}

// bearer authenticates by a token: one of ours, or where an issuer is configured, a
// JWT, which none of ours looks like.
func (x *exchange) bearer(from arrival, header []string) (engine.Caller, error) {
	if len(header) != 1 {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, sendToken, nil)
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, sendToken, nil)
	}
	token = strings.TrimSpace(token)
	if from.oauth == nil || !strings.Contains(token, ".") {
		return x.engine.Authenticate(token)
	}
	id, err := from.oauth.verify(x, token)
	if err != nil {
		return engine.Caller{}, err
	}
	return x.engine.Vouch(x.r.Context(), id.Agent, id.ID)
}

// peerCaller is the agent that a user of this machine is. The daemon's own user may be
// any; others are those that list them.
func (x *exchange) peerCaller(from arrival, wanted []string) (engine.Caller, error) {
	if len(wanted) > 1 {
		return engine.Caller{}, writ.Fail(writ.Invalid, agentHeader+" is given twice; send it once", nil)
	}
	var agent string
	if len(wanted) == 1 {
		agent = wanted[0]
	}
	may := x.engine.Config().AgentsOfUser(from.uid)
	switch {
	case from.way == operatorSocket && agent == "":
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, sendToken, nil)
	case from.way == operatorSocket:
	case len(may) == 0:
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, fmt.Sprintf("user %d of this machine is no agent; the operator lists users with agents.NAME.users", from.uid), nil)
	case agent == "" && len(may) == 1:
		agent = may[0]
	case agent == "":
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, fmt.Sprintf("user %d of this machine is several agents; name one as %s: %s", from.uid, agentHeader, strings.Join(may, " or ")), nil)
	case !slices.Contains(may, agent):
		return engine.Caller{}, writ.Fail(writ.Denied, fmt.Sprintf("user %d of this machine is not that agent; name one as %s: %s", from.uid, agentHeader, strings.Join(may, " or ")), nil)
	}
	return x.engine.Vouch(x.r.Context(), agent, "peer:"+strconv.FormatUint(uint64(from.uid), 10))
}

// challenge tells a client how to get in: with a token, and where an issuer is configured,
// where to get one (RFC 9728).
func (x *exchange) challenge(err error) {
	o := arrivalOf(x.r).oauth
	if o == nil {
		if writ.KindOf(err) == writ.Unauthenticated {
			x.w.Header().Set("WWW-Authenticate", "Bearer")
		}
		return
	}
	say := `Bearer resource_metadata="` + o.metadataURL + `"`
	switch {
	case errors.Is(err, errScope):
		say += `, error="insufficient_scope", scope="` + strings.Join(o.ScopeNames(), " ") + `"`
	case writ.KindOf(err) != writ.Unauthenticated:
		return
	case len(x.r.Header.Values("Authorization")) > 0:
		say += `, error="invalid_token"`
	}
	x.w.Header().Set("WWW-Authenticate", say)
}
