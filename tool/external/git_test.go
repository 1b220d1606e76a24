package external

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		base, host, path string
		want             bool
	}{
		{"https://h", "h:443", "/a.git", true},
		{"https://h/team", "h:443", "/team/a.git", true},
		{"https://h/team", "h:443", "/team/a.git/", true},
		{"https://h/team", "h:443", "/team/sub/a.git", true},
		{"https://h/team", "h:443", "/teammate/a.git", false},
		{"https://h/team", "h:443", "/team", false},
		{"https://h/team", "h:443", "/other/a.git", false},
		{"https://h/team", "h:8443", "/team/a.git", false},
		{"https://h/team", "i:443", "/team/a.git", false},
		{"https://h/team", "h:443", "/team/%2e%2e/a.git", false},
		{"https://h/team", "h:443", "/team%2Fa.git", false},
		{"https://h/team", "h:443", "/team//a.git", false},
		{"https://h/team", "h:443", "/team/b/secret.git", false},
	} {
		n := Connection{Type: Git, Base: c.base, Host: "h:443", Paths: []string{"/*.git", "/team/*.git", "/sub/**"}}
		if _, got := n.Covers(c.host, c.path); got != c.want {
			t.Errorf("%s covers %s%s: %v", c.base, c.host, c.path, got)
		}
		n.Type = HTTP
		if _, got := n.Covers(c.host, c.path); got {
			t.Errorf("%s, of another type, covers %s%s", c.base, c.host, c.path)
		}
	}
}

// Of what git can ask a server, the two requests about the repository get credentials.
func TestAsks(t *testing.T) {
	reads, writes := Repository{Path: "/team/a.git"}, Repository{Path: "/team/a.git/", Push: true}
	for _, c := range []struct {
		line          string
		reads, writes bool
	}{
		{"GET /team/a.git/info/refs?service=git-upload-pack", true, false},
		{"POST /team/a.git/git-upload-pack", true, false},
		{"GET /team/a.git/info/refs?service=git-receive-pack", false, true},
		{"POST /team/a.git/git-receive-pack", false, true},
		{"GET /team/a.git/info/refs", false, false},
		{"GET /team/a.git/info/refs?service=git-upload-pack&service=git-receive-pack", false, false},
		{"POST /team/a.git/info/refs?service=git-upload-pack", false, false},
		{"GET /team/a.git/git-upload-pack", false, false},
		{"POST /team/a.git/git-upload-pack?x", false, false},
		{"POST /team/a.git/git-upload-archive", false, false},
		{"POST /team/b.git/git-upload-pack", false, false},
		{"POST /team/b.git/../a.git/git-upload-pack", false, false},
		{"POST /team/a.git%2Fgit-upload-pack", false, false},
		{"POST /team/a.git/info/lfs/objects/batch", false, false},
		{"GET /team/a.git/objects/info/packs", false, false},
		{"GET /api/v4/user", false, false},
	} {
		method, target, _ := strings.Cut(c.line, " ")
		req, err := http.NewRequest(method, "https://h"+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := reads.asks(req); got != c.reads {
			t.Errorf("to read: %s: %v", c.line, got)
		}
		if got := writes.asks(req); got != c.writes {
			t.Errorf("to push: %s: %v", c.line, got)
		}
	}
}

// What a box puts on a request as a credential of its own is not handed on.
func TestSignedDropsTheBoxsOwn(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "https://h/a.git/info/refs", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Private-Token", "Git-Protocol"} {
		req.Header.Set(name, "the box's")
	}
	out := lender{over: Connection{Type: Git}}.signed(req, proof{header: http.Header{"Authorization": {"ours"}}})
	if out.Header.Get("Git-Protocol") == "" { // which git needs
		t.Error("too much is left out")
	}
	out.Header.Del("Git-Protocol")
	for name, values := range out.Header {
		if strings.Contains(strings.Join(values, " "), "the box's") || name == "Authorization" && values[0] != "ours" {
			t.Errorf("%s: %q", name, values)
		}
	}
}

// A credential is overwritten wherever it stands in a stream, however that comes, and
// nothing else is.
func TestMasked(t *testing.T) {
	forms := newRedactor(credential).plain()
	noise := bytes.Repeat([]byte("0123456789abcdef\x00\xff\n"), 9000)
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "half": iotest.HalfReader, "with its end": iotest.DataErrReader} {
		for _, form := range forms {
			for _, at := range []int{0, 1, readAtOnce - 3, len(noise)} {
				if at > 100 && name == "byte by byte" {
					continue // it takes long
				}
				head := noise[:at]
				text := bytes.Join([][]byte{head, form, []byte("tail")}, nil)
				got, err := io.ReadAll(&masked{from: io.NopCloser(wrap(bytes.NewReader(text))), hide: forms})
				want := string(head) + strings.Repeat("*", len(form)) + "tail"
				if err != nil || string(got) != want {
					t.Fatalf("%s, %q at %d: %v %.80q", name, form, at, err, got[max(0, at-5):])
				}
			}
		}
	}
	if got, err := io.ReadAll(&masked{from: io.NopCloser(iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(noise)))), hide: forms}); err != iotest.ErrTimeout || len(got) == 0 {
		t.Errorf("a stream that breaks off: %d %v", len(got), err)
	}
}
