package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/host"
)

// mostHops is how many redirects are followed.
const mostHops = 5

// request is one request as a tool wants it.
type request struct {
	method  string
	url     *url.URL
	to      host.Endpoint
	header  http.Header
	body    string
	timeout time.Duration
}

// address reads a URL by the one grammar of hosts, which then stands in it in its normal
// form: what was decided on is what is dialled.
func address(text string) (*url.URL, host.Endpoint, error) {
	to, err := host.ParseURL(text)
	if err != nil {
		return nil, to, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, to, errors.New("the URL cannot be read; percent-encode what has a meaning in it")
	}
	u.Fragment, u.RawFragment, u.User = "", "", nil
	u.Host = to.String()
	if u.Scheme == "http" && to.Port == 80 || u.Scheme == "https" && to.Port == 443 {
		u.Host = u.Host[:strings.LastIndexByte(u.Host, ':')]
	}
	return u, to, nil
}

// target is the URL of an argument, which has to be the one that was decided on.
func target(w writ.Writ, pointer, text string) (*url.URL, host.Endpoint, error) {
	u, to, err := address(text)
	if err != nil {
		return nil, to, failf("%v", err)
	}
	for _, t := range w.Call().Targets {
		if t.Pointer == pointer && t.Kind == writ.TargetHost && t.Problem == "" && t.Host == to.String() {
			return u, to, nil
		}
	}
	return nil, to, writ.Fail(writ.Denied, "the URL is not the one that was decided on", nil)
}

// send makes a request and follows where it leads, and gives the last answer to read,
// and from where it came. Whatever read makes of it is made before the time is over.
func (f family) send(ctx context.Context, w writ.Writ, r request, read func(*http.Response, *url.URL) error) error {
	way, err := f.reach(w)
	if err != nil {
		return err
	}
	defer way.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	resp, at, err := r.follow(ctx, way)
	if err == nil {
		defer resp.Body.Close()
		err = read(resp, at)
	}
	return r.problem(ctx, err)
}

func (r request) follow(ctx context.Context, way Way) (*http.Response, *url.URL, error) {
	at, to, header := r.url, r.to, r.header
	for hop := 0; ; hop++ {
		req, err := http.NewRequestWithContext(ctx, r.method, at.String(), nil)
		if err != nil {
			return nil, nil, failf("the request cannot be made: %s", display.Preview(err.Error(), 200))
		}
		if r.body != "" {
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader([]byte(r.body))), int64(len(r.body))
		}
		req.Header = header.Clone()
		resp, err := way.RoundTrip(req)
		if refusal := (*egress.Refusal)(nil); hop > 0 && errors.As(err, &refusal) && refusal.Verdict == egress.HostNotAllowed {
			return nil, nil, failf("the server redirects to %s, which is not the host of this call; call again with url %s if that is where you want to go", to, shown(at.String()))
		}
		if err != nil {
			return nil, nil, err
		}
		if !r.moved(resp) {
			return resp, at, nil
		}
		resp.Body.Close()
		if hop == mostHops {
			return nil, nil, failf("the server redirects more than %d times; call again with url %s to go on", mostHops, shown(at.String()))
		}
		next, whom, err := hopTo(at, resp.Header.Get("Location"))
		if err != nil {
			return nil, nil, err
		}
		if whom != to {
			// What the agent sent along, credentials above all, was for the first host.
			header = ownHeader(r.header)
		}
		at, to = next, whom
	}
}

// moved reports whether the answer is a redirect that is followed: only of what reads,
// since any other request would be made twice, or become another one.
func (r request) moved(resp *http.Response) bool {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
		return (r.method == http.MethodGet || r.method == http.MethodHead) && resp.Header.Get("Location") != ""
	}
	return false
}

// hopTo is where a redirect leads.
func hopTo(at *url.URL, location string) (*url.URL, host.Endpoint, error) {
	// Resolved by net/url, which is lenient, and then read by the grammar, which is not.
	next, err := at.Parse(location)
	if err != nil || strings.ContainsAny(location, "\\") {
		return nil, host.Endpoint{}, failf("the server redirects to something that is not a URL: %s", shown(location))
	}
	next.Fragment, next.RawFragment = "", ""
	u, to, err := address(next.String())
	if err != nil {
		return nil, to, failf("the server redirects to where nothing is reached: %s", display.Preview(err.Error(), 300))
	}
	if at.Scheme == "https" && u.Scheme != "https" {
		return nil, to, failf("the server redirects from https to %s, where anybody could read along and answer; nothing was sent there", shown(u.String()))
	}
	return u, to, nil
}

// problem says what became of a request in words that a model can act on.
func (r request) problem(ctx context.Context, err error) error {
	var f failure
	var refusal *egress.Refusal
	var untrusted *tls.CertificateVerificationError
	var known *writ.Error
	switch {
	case err == nil, errors.As(err, &f), errors.As(err, &known):
		return err
	case errors.As(err, &refusal):
		return failf("%s%s", display.Preview(refusal.Error(), 400), remedy(refusal))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failf("%s did not answer in full within %v; try again later, or give it more time", r.to, r.timeout)
	case ctx.Err() != nil:
		return writ.Fail(writ.Cancelled, "the call was ended", err)
	case errors.As(err, &untrusted):
		return failf("%s has no certificate that is trusted here: %s", r.to, display.Preview(untrusted.Err.Error(), 200))
	}
	return failf("the request to %s failed: %s", r.to, display.Preview(err.Error(), 300))
}

// remedy is what to do about a refusal.
func remedy(r *egress.Refusal) string {
	switch r.Verdict {
	case egress.AddressNotOpen:
		return "; only public addresses are reached, unless an operator says the range in egress.hosts"
	case egress.NotResolved:
		return "; check the spelling of the host"
	case egress.NotConnected:
		return "; try again later"
	}
	return ""
}

// shown is something of a server's in a sentence.
func shown(s string) string { return display.Preview(s, 500) }
