package upstream

import (
	"net/http"
	"time"
)

// Client reaches a server that an operator named, directly, with the headers that go
// with every request of ours. No proxy of the environment stands between.
func Client(headers map[string]string) *http.Client {
	return &http.Client{Transport: &carrying{headers, &http.Transport{
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}}}
}

type carrying struct {
	headers map[string]string
	next    http.RoundTripper
}

func (c *carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range c.headers {
		r.Header.Set(k, v)
	}
	return c.next.RoundTrip(r)
}
