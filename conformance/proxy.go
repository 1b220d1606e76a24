package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// withToken serves what is at a URL, with a token. The body of a request is read
// whole: the server closes it once the answer begins, and reading on would then cut
// the answer short.
func withToken(at, token string) (string, func(), error) {
	to, err := url.Parse(at)
	if err != nil {
		return "", func() {}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", func() {}, err
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.Out.Host = strings.Replace(p.In.Host, l.Addr().String(), to.Host, 1)
		if origin := p.In.Header.Get("Origin"); origin != "" {
			p.Out.Header.Set("Origin", strings.Replace(origin, l.Addr().String(), to.Host, 1))
		}
		body, _ := io.ReadAll(p.In.Body) // what did not arrive is missing there, too
		p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		p.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	s := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	return "http://" + l.Addr().String(), func() { s.Close(); <-done }, nil
}
