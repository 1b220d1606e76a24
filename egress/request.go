package egress

import (
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/writ-run/writ/host"
)

// RoundTrip sends one request for a tool of this process: the host must be one of the
// run's, the method one of its class. It follows no redirect; whoever does comes here again
// with the next one. What is refused is a *Refusal. It keeps nothing for later: a cookie, a
// proxy of the environment, a credential.
func (p *Pass) RoundTrip(req *http.Request) (*http.Response, error) {
	e := Event{At: time.Now(), Kind: "http", Host: req.URL.Host, Detail: method(req.Method)}
	defer func() { e.Took = time.Since(e.At); p.say(e) }()
	if !p.mayLog() {
		e.Verdict = TooMany
		return p.refused(req, e, "more than can be logged")
	}
	to, err := host.ParseURL(req.URL.String())
	if err != nil || req.URL.Opaque != "" || req.Host != "" && req.Host != req.URL.Host {
		e.Verdict = Malformed
		return p.refused(req, e, "the address cannot be read, or names two hosts")
	}
	e.Host = to.String()
	rule, ok := p.run.rule(to)
	if !ok {
		e.Verdict, e.Rule = HostNotAllowed, e.Host
		return p.refused(req, e, "")
	}
	e.Rule = rule.At
	var why string
	if e.Verdict, why = mayDo(p.class(candidate{to, rule}), req); e.Verdict != Allowed {
		return p.refused(req, e, why)
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		e.Verdict = NotConnected
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			e.Verdict, e.Rule = refusal.Verdict, refusal.Rule
		} else if why := Untrusted(err); why != "" {
			e.Detail += ": " + why
		} else if p.usedUp() {
			e.Verdict = TooMuch
		}
		return nil, err
	}
	return resp, nil
}

func (p *Pass) refused(req *http.Request, e Event, why string) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	e.Detail = why
	return nil, e.refusal()
}

// client is the transport of a pass.
func (p *Pass) client() *http.Transport {
	return &http.Transport{
		DialContext: p.Dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.broker.o.Roots}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: beginWithin, ResponseHeaderTimeout: max(0, p.broker.o.Limits.Idle), IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10, MaxIdleConnsPerHost: 2,
	}
}

// Close ends every connection that Dial and RoundTrip made, and waits until each was said.
func (p *Pass) Close() error {
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	p.mine.Wait()
	return nil
}

// Untrusted is why the certificate of the other side is not one to trust; empty: the error
// is another one.
func Untrusted(err error) string {
	bad := (*tls.CertificateVerificationError)(nil)
	if !errors.As(err, &bad) {
		return ""
	}
	why := bad.Err.Error() // it quotes names of the certificate, which the other side wrote
	return "its certificate is not one to trust: " + show(why[:min(len(why), 100)])
}
