package upstream

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Dial is how a server is reached.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Client reaches a server that an operator named, with the headers that go with every
// request of ours. No proxy of the environment stands between.
func Client(headers map[string]string, dial Dial) *http.Client {
	return &http.Client{Transport: &carrying{headers: headers, plain: &direct{dial: dial}, secure: &http.Transport{
		DialContext: dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleFor, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}}}
}

type carrying struct {
	headers map[string]string
	plain   *direct
	secure  *http.Transport
}

func (c *carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(c.headers) > 0 {
		r = r.Clone(r.Context())
		for k, v := range c.headers {
			r.Header.Set(k, v)
		}
	}
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
