package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/writ-run/writ/cli"
)

// A search goes to the provider of a connection, with the operator's credentials and in
// the provider's own words; what is asked by POST asks a person.
func TestWebSearch(t *testing.T) {
	t.Parallel()
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s key=%s", r.Method, r.URL, b, r.Header.Get("X-Key"))
		if strings.Contains(r.URL.RawQuery+string(b), "broken") {
			http.Error(w, "no credit for "+r.Header.Get("X-Key"), http.StatusPaymentRequired)
			return
		}
		io.WriteString(w, `{"web":{"results":[{"title":"A <b>page</b>","url":"https://a.test/","description":"about `+r.Header.Get("X-Key")+`"}]},"results":[{"title":"Another","url":"https://b.test/","content":"text"}]}`)
	}))
	t.Cleanup(s.Close)
	auth := `auth: {type: api_key, header: X-Key, secret: "store:canary"}`
	w := newWorld(t, free, fmt.Sprintf("connections:\n  find: {type: brave, base_url: '%s', %s}\n  ask: {type: tavily, base_url: '%s', %s}\n  other: {base_url: '%s'}\n", s.URL, auth, s.URL, auth, s.URL)).init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	search := func(connection, query string) outcome {
		return w.call("web_search", map[string]any{"connection": connection, "query": query, "count": 3})
	}
	if o := search("find", "a & b"); o.code != 0 || o.out != "1. A page\n   https://a.test/\n   about [secret]\n" {
		t.Errorf("%+v", o)
	}
	if want := "GET /res/v1/web/search?count=3&q=a+%26+b  key=" + canary; got != want {
		t.Errorf("the provider got %q, want %q", got, want)
	}
	if o := search("find", "broken"); o.code == 0 || !strings.Contains(o.out+o.err, "brave answers 402") || leaks(o.out+o.err) != "" {
		t.Errorf("an error of the provider: %+v", o)
	}
	if o := search("ask", "a"); o.code != cli.ExitPending {
		t.Fatalf("nobody was asked: %+v", o)
	}
	w.approves(w.pending())
	if o := search("ask", "a"); o.code != 0 || !strings.Contains(o.out, "https://b.test/") || !strings.HasPrefix(got, `POST /search {"max_results":3,"query":"a","search_depth":"basic"}`) {
		t.Errorf("%+v; the provider got %q", o, got)
	}
	w.denied(search("other", "a"), "connection other is not for web_search; its type is http, which is for external_api")
	w.denied(w.api(map[string]any{"connection": "find", "path": "/"}), "connection find is not for external_api; its type is brave, which is for web_search")
	w.denied(search("fnd", "a"), "did you mean find")
}
