package api

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/writ-run/writ"
)

// bounded holds requests of one door to a number and a size, and names each.
func (s *Server) bounded(h http.Handler, slots chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r.Header.Get("X-Request-ID"))
		w.Header().Set("X-Request-ID", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "1")
			s.problem(w, r, writ.Fail(writ.Conflict, "too many requests are under way; try again", nil), "")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, s.limits.body)
		h.ServeHTTP(w, r)
	})
}

// requestID is the caller's own name for a request, where it fits a log line, or a
// new one.
func requestID(given string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if given != "" && len(given) <= 64 && strings.Trim(given, letters) == "" {
		return given
	}
	return "req_" + strings.ToLower(rand.Text()[:16])
}

// fromWhere refuses requests that a web page could have caused: a Host that is a
// name somebody else's DNS points here, or an Origin that is not ours.
func (s *Server) fromWhere(l Listeners, h http.Handler) http.Handler {
	ours, scheme := loopbackHost, "http"
	if l.TLS != nil {
		ours, scheme = func(host string) bool { return l.leaf().VerifyHostname(host) == nil }, "https"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ours(bareHost(r.Host)) {
			s.problem(w, r, refused{http.StatusMisdirectedRequest, writ.Denied, "this Host is not served here; use an address or a name of the daemon: with TLS one that its certificate names"}, "")
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if u, err := url.Parse(origin); err != nil || u.Host != r.Host || u.Scheme != scheme {
				s.problem(w, r, refused{http.StatusForbidden, writ.Denied, "requests from web pages are not taken; leave Origin out"}, "")
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// bareHost is a Host header without its port.
func bareHost(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func loopbackHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// fromLoopback reports whether the caller is on this machine.
func fromLoopback(r *http.Request) bool {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
