package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// road lets every host be reached, and remembers what went there.
type road struct {
	moves map[string]string // URL to Location
	went  []*http.Request
}

func (r *road) RoundTrip(req *http.Request) (*http.Response, error) {
	r.went = append(r.went, req)
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}
	if to, ok := r.moves[req.URL.String()]; ok {
		resp.StatusCode = 307
		resp.Header.Set("Location", to)
	}
	return resp, nil
}

func (r *road) Close() error { return nil }

func requestTo(t testing.TB, method, text string, headers map[string]string) request {
	t.Helper()
	u, to, err := address(text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := headerOf(headers)
	if err != nil {
		t.Fatal(err)
	}
	return request{method: method, url: u, to: to, header: h, timeout: time.Minute}
}

// What an agent sends along to one host does not go to another, nor come back with it,
// whoever lets both be reached.
func TestHeadersStayWithTheirHost(t *testing.T) {
	way := &road{moves: map[string]string{"https://a.test/": "/x", "https://a.test/x": "https://b.test/", "https://b.test/": "https://a.test:8443/z"}}
	r := requestTo(t, "GET", "https://a.test/", map[string]string{"Authorization": "secret", "Cookie": "c=1", "X-Key": "k", "Accept": "text/x"})
	if _, at, err := r.follow(t.Context(), way); err != nil || at.String() != "https://a.test:8443/z" {
		t.Fatal(at, err)
	}
	var got []string
	for _, req := range way.went {
		got = append(got, req.URL.String()+" "+req.Header.Get("Authorization")+req.Header.Get("Cookie")+req.Header.Get("X-Key")+req.Header.Get("Accept"))
	}
	want := []string{"https://a.test/ secretc=1ktext/x", "https://a.test/x secretc=1ktext/x", "https://b.test/ text/x", "https://a.test:8443/z text/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A request that changes something is made once: where it is sent on to is only told.
func TestWritesAreNotSentOn(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		way := &road{moves: map[string]string{"https://a.test/": "/x"}}
		resp, _, err := requestTo(t, method, "https://a.test/", nil).follow(t.Context(), way)
		if err != nil || resp.StatusCode != 307 || len(way.went) != 1 {
			t.Errorf("%s: %d requests, %v", method, len(way.went), err)
		}
	}
}

// Where a redirect may lead is not only for whoever lets hosts be reached.
func TestHopsThatAreNotMade(t *testing.T) {
	for to, says := range map[string]string{
		"http://a.test/": "from https to http://a.test/", "HTTP://b.test:443/": "from https to", "ftp://a.test/": "does not start with http", "//u:p@b.test/": "user information",
		`\\b.test\`: "not a URL", "https://0x7f.1/": "0x7f.1", "https://[fe80::1%25eth0]/": "zone", "%zz": "not a URL",
	} {
		way := &road{moves: map[string]string{"https://a.test/": to}}
		if _, _, err := requestTo(t, "GET", "https://a.test/", nil).follow(t.Context(), way); err == nil || !strings.Contains(err.Error(), says) || len(way.went) != 1 {
			t.Errorf("%s: %d requests, %v", to, len(way.went), err)
		}
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP://A.test": "http://a.test", "https://a.test:443/x#f": "https://a.test/x", "http://a.test:443/": "http://a.test:443/", "https://[2001:DB8::1]/": "https://[2001:db8::1]/",
		"https://[2001:db8::1]:8443/?a=b": "https://[2001:db8::1]:8443/?a=b", "https://bücher.test/ä?ö": "https://xn--bcher-kva.test/%C3%A4?ö", "http://a.test:80/%2e%2e/": "http://a.test/%2e%2e/",
	} {
		if u, _, err := address(text); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, u, err, want)
		}
	}
}

// Time that is over, and a call that was ended, are told apart.
func TestProblem(t *testing.T) {
	r := requestTo(t, "GET", "https://a.test/", nil)
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := r.problem(over, io.ErrUnexpectedEOF); !strings.Contains(err.Error(), "did not answer in full within 1m0s") {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.problem(ended, io.ErrUnexpectedEOF); !strings.Contains(err.Error(), "the call was ended") {
		t.Error(err)
	}
	if err := r.problem(t.Context(), io.ErrUnexpectedEOF); err.Error() != "the request to a.test:443 failed: unexpected EOF" {
		t.Error(err)
	}
}

func TestBodyText(t *testing.T) {
	for _, c := range []struct {
		name, kind, coded, bytes, want string
		binary                         bool
	}{
		{"UTF-8", "text/plain", "", "é\r\nx", "é\nx", false},
		{"a mark before it", "text/plain", "", "\ufeffx", "x", false},
		{"Latin", "text/html; charset=iso-8859-1", "", "caf\xe9", "café", false},
		{"said in the page", "text/html", "", "<meta charset=windows-1252>\x80", "<meta charset=windows-1252>€", false},
		{"Japanese", "text/html; charset=shift_jis", "", "\x93\xfa\x96{", "日本", false},
		{"two bytes each", "text/plain; charset=utf-16le", "", "a\x00\xe9\x00", "aé", false},
		{"an encoding that is none", "text/plain; charset=x-made-up", "", "abc", "abc", false},
		{"JSON", "application/problem+json", "", `{"a":1}`, `{"a":1}`, false},
		{"no type, text", "", "", "abc", "abc", false},
		{"no type, none", "", "", "a\x00b", "", true},
		{"an image", "image/png", "", "abc", "", true},
		{"said to be text", "text/plain", "", "\x00\x01\x02", "", true},
		{"compressed anyhow", "text/plain", "br", "abc", "", true},
		{"half a character at the end", "text/plain", "", "ab\xc3", "ab", false},
		{"two bytes each that look like UTF-8", "text/plain; charset=utf-16le", "", "a\x00b\x00", "ab", false},
		{"seven bits", "text/plain; charset=iso-2022-jp", "", "\x1b$BF|K\\\x1b(B", "日本", false},
	} {
		b := body{kind: strings.Split(c.kind, ";")[0], whole: c.kind, coded: c.coded, bytes: []byte(c.bytes), cut: strings.HasPrefix(c.name, "half")}
		if got, ok := b.text(); got != c.want || ok == c.binary {
			t.Errorf("%s: %q %v, want %q", c.name, got, ok, c.want)
		}
	}
}
