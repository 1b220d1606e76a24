package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

// A token is not sent in the clear, nor to what is no daemon's address.
func TestNew(t *testing.T) {
	for _, good := range []string{"http://127.0.0.1:7323", "http://localhost:7323/", "http://[::1]:7323", "https://writ.example", "https://10.0.0.1:7323"} {
		if _, err := New(good, "t", nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"http://writ.example", "http://10.0.0.1:7323", "http://localhost.evil.example", "ftp://127.0.0.1", "unix:///x"} {
		want := `"` + bad + `" would send the token in the clear; use https, or http to a loopback address`
		if bad == "unix:///x" {
			want = `"unix:///x" is not the address of a daemon; write http://127.0.0.1:7323 or https://HOST:PORT`
		}
		if _, err := New(bad, "t", nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:7323", "https://", "https://a/b", "https://a?b", "https://a#b", "https://user:pass@a", "https://a/%zz"} {
		if _, err := New(bad, "t", nil); err == nil || !strings.HasSuffix(err.Error(), "is not the address of a daemon; write http://127.0.0.1:7323 or https://HOST:PORT") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Whoever answers in the daemon's place cannot have the token sent elsewhere, nor
// have its own words taken for a refusal of the daemon.
func TestImpostor(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	answers := map[string]func(http.ResponseWriter){
		"the daemon answered 307 Temporary Redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(307)
		},
		"the daemon answered 500 Internal Server Error": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"the daemon answered 404 Not Found": func(w http.ResponseWriter) {
			w.WriteHeader(404)
			io.WriteString(w, `{"error":"x"}`)
		},
		"the daemon's answer does not read: unexpected EOF": func(w http.ResponseWriter) { io.WriteString(w, `{"status":`) },
	}
	for want, answer := range answers {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		c, err := New(srv.URL, "secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Health(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		srv.Close()
	}
	if asked {
		t.Error("the token went elsewhere")
	}
}

func TestProblem(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(202)
		io.WriteString(w, `{"status":202,"detail":"a person has to approve","kind":"approval_pending","approval":"ap_1","call_id":"call_1"}`)
	}))
	defer srv.Close()
	c, err := New(srv.URL, "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(t.Context(), CallRequest{Tool: "x"}, 0)
	var p *Problem
	if !errors.As(err, &p) || p.Kind != writ.Pending || p.Approval != "ap_1" || p.CallID != "call_1" || err.Error() != "a person has to approve" || IsDown(err) {
		t.Errorf("%v %+v", err, p)
	}
}

func TestIsDown(t *testing.T) {
	state := t.TempDir()
	if _, err := Dial(state).Health(t.Context()); !IsDown(err) {
		t.Errorf("no socket: %v", err)
	}
	l, err := net.Listen("unix", filepath.Join(state, "writ.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	if _, err := Dial(state).Health(t.Context()); err == nil || IsDown(err) {
		t.Errorf("one that hangs up: %v", err)
	}
}

// A stream is read as it is written, comments and all; what does not read ends it.
func TestReadEvents(t *testing.T) {
	const one = "id: 7\nevent: call.started\ndata: {\"hash\":\"ab\",\"body\":{\"seq\":7}}\n\n"
	for text, want := range map[string]string{
		one: "EOF", ": hello\n\n" + one + ": \n\n": "EOF", strings.ReplaceAll(one, ": ", ":"): "EOF",
		one + "id: x\n\n":      `strconv.ParseInt: parsing "x": invalid syntax`,
		one + "data: {\n\n":    "unexpected end of JSON input",
		one + one[:len(one)/2]: "unexpected end of JSON input",
	} {
		n := 0
		err := readEvents(strings.NewReader(text), func() {}, func(e Event) bool {
			n++
			return e.Seq == 7 && e.Kind == "call.started" && e.Hash == "ab" && string(e.Body) == `{"seq":7}`
		})
		if n != 1 || err == nil || err.Error() != want {
			t.Errorf("%q: %d events, %v", text, n, err)
		}
	}
}
