package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// wiretap is a server that answers each request as the most lenient one would count them,
// and keeps every byte.
type wiretap struct {
	net.Listener
	mu    sync.Mutex
	ended sync.Cond // one of the open ones has
	open  int
	got   bytes.Buffer
}

func newWiretap(t *testing.T) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &wiretap{Listener: l}
	w.ended.L = &w.mu
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.open++
			w.mu.Unlock()
			go w.hear(c)
		}
	}()
	return w
}

// hear answers every end of a header, wherever it is.
func (w *wiretap) hear(c net.Conn) {
	var got strings.Builder
	defer func() {
		c.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got.WriteString(got.String())
		w.open--
		w.ended.Signal()
	}()
	in := bufio.NewReader(c)
	empty := false
	for {
		line, err := in.ReadString('\n')
		got.WriteString(line)
		if err != nil {
			return
		}
		if blank := strings.Trim(line, "\r\n") == ""; blank && !empty {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			empty = true
		} else {
			empty = blank
		}
	}
}

// taken is what came since the last time, on connections that have all ended. One of its
// own comes after all that were made before, and is the last to be heard.
func (w *wiretap) taken(t *testing.T) string {
	t.Helper()
	c, err := net.Dial("tcp", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const last = "last\r\n\r\n"
	fmt.Fprint(c, last)
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.open > 0 {
		w.ended.Wait()
	}
	defer w.got.Reset()
	return strings.Replace(w.got.String(), last, "", 1)
}

// D: one request for us is one for the other side, however it is written. What came there
// has one way to be read: whole lines, one length, nothing folded.
func TestAttackSmuggling(t *testing.T) {
	w := newWiretap(t)
	_, port, _ := net.SplitHostPort(w.Addr().String())
	hostLine := "Host: good.test:" + port + "\r\n"
	const inner = "DELETE /smuggled HTTP/1.1\r\nHost: bad.test\r\n\r\n"
	post := func(headers, body string) string { return "POST /x HTTP/1.1\r\n" + hostLine + headers + "\r\n" + body }
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	const refused, once, other = "400 Bad Request|501 |403 ", "200 OK", "200 OK(?s:.*)403 Forbidden"
	for _, c := range []struct {
		name, text string
		want       string // of the answers
	}{
		{"control", post(length(2), "hi"), once},
		{"control, chunked", post("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"), once},
		{"CL.TE", post(length(5+len(inner))+"Transfer-Encoding: chunked\r\n", "0\r\n\r\n"+inner), "400|200 OK(?s:.*)403"},
		{"TE.CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)), "400|200"},
		{"TE.TE, two of them", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+inner), refused},
		{"TE.TE, a list", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+inner), refused},
		{"TE.TE, another word", post("Transfer-Encoding: xchunked\r\n"+length(2), "hi"), refused},
		{"TE.TE, a space before the colon", post("Transfer-Encoding : chunked\r\n"+length(2), "hi"), refused},
		{"TE.TE, a tab", post("Transfer-Encoding:\tchunked\r\n", "0\r\n\r\n"+inner), other},
		{"TE.TE, a vertical tab", post("Transfer-Encoding: \x0bchunked\r\n"+length(2), "hi"), refused},
		{"TE.TE, after another line's folding", post("X: y\r\n Transfer-Encoding: chunked\r\n"+length(2), "hi"), "400|200"},
		{"TE in capitals", post("TRANSFER-ENCODING: CHUNKED\r\n", "0\r\n\r\n"+inner), other},
		{"TE of HTTP/1.0", "POST /x HTTP/1.0\r\n" + hostLine + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, refused + "|200"},
		{"two lengths, the same", post(length(2)+length(2), "hi"), refused + "|200"},
		{"two lengths", post(length(2)+length(44), "hi"+inner), refused},
		{"a list of lengths", post("Content-Length: 2, 2\r\n", "hi"), refused},
		{"a length with a sign", post("Content-Length: +2\r\n", "hi"), refused},
		{"a negative length", post("Content-Length: -2\r\n", "hi"), refused},
		{"a length in hexadecimal", post("Content-Length: 0x2\r\n", "hi"), refused},
		{"a length with an underscore before it", post("Content_Length: 44\r\n"+length(2), "hi"+inner), other},
		{"bare LF", strings.ReplaceAll(post(length(2), "hi"), "\r\n", "\n"), refused + "|200"},
		{"bare LF hides a header", "POST /x HTTP/1.1\r\n" + hostLine + "X: y\nTransfer-Encoding: chunked\r\n" + length(2) + "\r\nhi", refused + "|^$"}, // it waits for the chunk to go on
		{"bare CR hides a header", "POST /x HTTP/1.1\r\n" + hostLine + "X: y\rTransfer-Encoding: chunked\r\n" + length(2) + "\r\nhi", refused},
		{"obs-fold", post("X: one\r\n\ttwo\r\n"+length(2), "hi"), refused + "|200"},
		{"obs-fold of Host", "GET /x HTTP/1.1\r\n" + strings.TrimSuffix(hostLine, "\r\n") + "\r\n .bad.test\r\n\r\n", refused},
		{"a chunk's extension", post("Transfer-Encoding: chunked\r\n", "2;x=\"\r\nhi\r\n0\r\n\r\n"), refused + "|200"},
		{"a chunk's extension with a bare LF", post("Transfer-Encoding: chunked\r\n", "2;x\nhi\r\n0\r\n\r\n"+inner), "200|400|502"},
		{"a chunk's size that overflows", post("Transfer-Encoding: chunked\r\n", "10000000000000002\r\nhi\r\n0\r\n\r\n"), "200|400|502"},
		{"a chunk's size with a sign", post("Transfer-Encoding: chunked\r\n", "+2\r\nhi\r\n0\r\n\r\n"), "200|400|502"},
		{"a chunk's size with 0x", post("Transfer-Encoding: chunked\r\n", "0x2\r\nhi\r\n0\r\n\r\n"), "200|400|502"},
		{"a chunk without an end", post("Transfer-Encoding: chunked\r\n", "2\r\nhiXX0\r\n\r\n"), "200|400|502"},
		{"trailers", post("Transfer-Encoding: chunked\r\nTrailer: Host\r\n", "0\r\nHost: bad.test\r\n\r\n"), refused + "|200"},
		{"pipelined past a body", post(length(2), "hi"+inner), other},
		{"pipelined past a body of GET", "GET /x HTTP/1.1\r\n" + hostLine + length(2) + "\r\nhi" + inner, other},
		{"pipelined after no body", "GET /x HTTP/1.1\r\n" + hostLine + "\r\n" + inner, other},
		{"another host in a target without one", "GET http:http://bad.test/x HTTP/1.1\r\n" + hostLine + "\r\n", refused},
		{"another user and host in one", "GET x:@bad.test/x HTTP/1.1\r\n" + hostLine + "\r\n", refused},
		{"a target that is no path", "GET x HTTP/1.1\r\n" + hostLine + "\r\n", refused},
		{"a user in the target", "GET http://bad.test@good.test:" + port + "/x HTTP/1.1\r\n" + hostLine + "\r\n", refused},
		{"all of the host", "OPTIONS * HTTP/1.1\r\n" + hostLine + "\r\n", once},
		{"HTTP/0.9", "GET /smuggled\r\n", "400|^$"},
		{"a line before", "\r\nGET /x HTTP/1.1\r\n" + hostLine + "\r\n", refused + "|200"},
		{"NUL in a header", post("X: a\x00b\r\n"+length(2), "hi"), refused},
		{"a header without a name", post(": x\r\n"+length(2), "hi"), refused},
		{"a request in the target", "GET /x HTTP/1.1\r\nX:/ HTTP/1.1\r\n" + hostLine + "\r\n", refused + "|200"},
		{"spaces in the target", "GET /x HTTP/1.1 GET /smuggled HTTP/1.1\r\n" + hostLine + "\r\n", refused},
		{"percent-encoded lines in the target", "GET /x%20HTTP/1.1%0d%0aHost:%20bad.test%0d%0a%0d%0aGET%20/smuggled HTTP/1.1\r\n" + hostLine + "\r\n", once},
		{"Connection names Host", "GET /x HTTP/1.1\r\n" + hostLine + "Connection: Host, close\r\n\r\n", once},
		{"Expect, and then another", post("Expect: 100-continue\r\n"+length(2), "hi"+inner), "200 OK|417"},
		{"Upgrade without Connection", "GET /x HTTP/1.1\r\n" + hostLine + "Upgrade: websocket\r\n\r\n" + inner, other},
		{"an upgrade that is not answered", "GET /x HTTP/1.1\r\n" + hostLine + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + inner, other},
		{"an upgrade to two", "GET /x HTTP/1.1\r\n" + hostLine + "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "403"},
		{"CONNECT in a request's body", post(length(40), "CONNECT bad.test:443 HTTP/1.1\r\n\r\n"+"xxxxxxx"), once},
		{"CONNECT in the second request", "GET /x HTTP/1.1\r\n" + hostLine + "\r\nCONNECT good.test:" + port + " HTTP/1.1\r\n" + hostLine + "\r\n", other},
	} {
		t.Run(c.name, func(t *testing.T) {
			way := newWay(t, w.Addr(), writ.ClassWrite, Limits{}, rule(t, w.Addr(), writ.ClassWrite))
			answer := way.until(c.text)
			decided := strings.Count(way.logged(), "http allowed")
			if !regexp.MustCompile(c.want).MatchString(answer) {
				t.Errorf("answers %q, want %s", answer, c.want)
			}
			unambiguous(t, w.taken(t), decided)
		})
	}
}

// until sends text, and gives what has come when nothing more does.
func (w *way) until(text string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte(text))
	var got bytes.Buffer
	b := make([]byte, 4096)
	for {
		c.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
		n, err := c.Read(b)
		got.Write(b[:n])
		if err != nil {
			return got.String()
		}
	}
}

// unambiguous holds when what came to the other side is as many requests as were decided,
// all for the host, by whichever length is looked at.
func unambiguous(t *testing.T, raw string, decided int) {
	t.Helper()
	seen := 0
	for rest := raw; rest != ""; seen++ {
		head, body, whole := strings.Cut(rest, "\r\n\r\n")
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\n\r\n")))
		if !whole || err != nil {
			t.Errorf("not a request: %q (%v)", rest, err)
			return
		}
		lines := strings.Split(head, "\r\n")
		count := func(name string) (n int) {
			for _, l := range lines[1:] {
				if k, _, _ := strings.Cut(l, ":"); strings.EqualFold(strings.TrimSpace(k), name) {
					n++
				}
			}
			return n
		}
		if count("Content-Length")+count("Transfer-Encoding") > 1 || count("Host") != 1 || !strings.HasPrefix(r.Host, "good.test:") || strings.ContainsAny(strings.ReplaceAll(head, "\r\n", ""), "\r\n\x00") || strings.Contains(head, "\r\n ") || strings.Contains(head, "\r\n\t") {
			t.Errorf("it can be read in two ways: %q", head)
		}
		if rest = body; len(r.TransferEncoding) > 0 {
			_, after, ended := strings.Cut(body, "0\r\n\r\n")
			if rest = after; !ended { // it was cut off, and the connection with it
				return
			}
		} else if n := int(r.ContentLength); n > 0 {
			rest = body[min(n, len(body)):]
		}
	}
	if seen != decided {
		t.Errorf("%d requests came, %d were decided on: %q", seen, decided, raw)
	}
}
