package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server that only echoes, and gives parts of its answers, does not give a credential in
// parts: neither where it is asked for one nor where it gives one all the same.
func TestConnectionParts(t *testing.T) {
	t.Parallel()
	var unasked bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if unasked {
			r.Header.Set("Range", "bytes=12-18")
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("auth="+r.Header.Get("Authorization")+"\n"))
	}))
	t.Cleanup(s.Close)
	w := newWorld(t, free, fmt.Sprintf("connections:\n  echo: {base_url: %q, auth: {type: bearer, secret: \"store:canary\"}}\n", s.URL)).init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	if o := w.api(map[string]any{"connection": "echo", "path": "/x"}); o.code != 0 || !strings.Contains(o.out, "auth=Bearer [secret]\n") {
		t.Fatalf("inconclusive: %+v", o)
	}
	for _, name := range []string{"Range", "range", "If-Range", "Request-Range"} {
		if o := w.api(map[string]any{"connection": "echo", "path": "/x", "headers": map[string]string{name: "bytes=12-18"}}); o.code == 0 || !strings.Contains(o.out+o.err, name+" is not for agents to write") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	unasked = true
	if o := w.api(map[string]any{"connection": "echo", "path": "/x"}); !strings.Contains(o.out, "HTTP 206") || !strings.Contains(o.out, "the answer is a part") || strings.Contains(o.out, canary[:7]) || strings.Contains(strings.ToLower(o.out), "content-range") {
		t.Errorf("a part that nobody asked for: %+v", o)
	}
}
