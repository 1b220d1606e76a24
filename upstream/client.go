package upstream

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"
)

// Dial is how a server is reached.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Proof is credentials for requests.
type Proof interface {
	// Prove gives headers for one request. It is asked for each, so that a value that was
	// replaced counts at once; of headers that are nil there is nothing to prove.
	Prove(context.Context) (map[string][]string, error)
	// Refused is told that a server did not take them.
	Refused()
}

// Client reaches a server that an operator named, with the headers that go with every
// request of ours, and with what proof gives; nil: nothing. No proxy of the environment
// stands between.
func Client(headers map[string]string, proof Proof, dial Dial) *http.Client {
	return &http.Client{Transport: &carrying{headers: headers, proof: proof, plain: &direct{dial: dial}, secure: &http.Transport{
		DialContext: dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleFor, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}}}
}

type carrying struct {
	headers map[string]string
	proof   Proof
	plain   *direct
	secure  *http.Transport
}

func (c *carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(c.headers) > 0 || c.proof != nil {
		r = r.Clone(r.Context())
		for k, v := range c.headers {
			r.Header.Set(k, v)
		}
	}
	if c.proof == nil {
		return c.send(r)
	}
	proof, err := c.proof.Prove(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	maps.Copy(r.Header, proof)
	resp, err := c.send(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		c.proof.Refused()
	}
	return resp, err
}

func (c *carrying) send(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" {
		return c.plain.RoundTrip(r)
	}
	return c.secure.RoundTrip(r)
}

// CloseIdleConnections implements what http.Client asks for.
func (c *carrying) CloseIdleConnections() {
	c.plain.CloseIdleConnections()
	c.secure.CloseIdleConnections()
}
