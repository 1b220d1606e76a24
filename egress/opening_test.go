package egress

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// What begins as nothing that is known is handed over, byte by byte or at once, until it
// turns out to be a request, or TLS. A server that is more lenient than others never has the
// whole of its first line.
func TestOpening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			heard <- string(b)
			c.Close()
		}
	}()
	const rest = " / HTTP/1.1\r\nHost: bad.test\r\n\r\n"
	for _, c := range []struct {
		name, text string
		passes     bool
	}{
		{"a method with a mark", "!GET" + rest, false},
		{"a method of digits", "1" + rest, false},
		{"a method as ssh begins", "SSH-2.0-x" + rest, false},
		{"another space", "!GET\x0b/\x0cHTTP/1.1\rx", false},
		{"small letters", "*get / http/1.1\r\nHost: bad.test\r\n\r\n", false},
		{"control characters first", "\x01\x00\x9fGET" + rest, false},
		{"the protocol's letters before", "!GET\t/HHTTP HTTP" + rest, false},
		{"a hello of SSL 2, short", "\x80\x2e\x01\x03\x03" + strings.Repeat("x", 40), false},
		{"a hello of SSL 2, long", "\x81\x2e\x01\x03\x03" + strings.Repeat("x", 300), false},
		{"Redis", "*1\r\n$4\r\nPING\r\n", true},
		{"ssh", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\x00\x00 / HTTP/1.1\r\n", true},
		{"Kafka", "\x00\x00\x00\x16\x00\x12\x00\x00\x00\x00\x00\x01\x00\x0aconsole-12", true},
		{"SOCKS", "\x05\x01\x00\x05\x01\x00\x03\x08bad.test\x00PGET" + rest, true},
		{"LDAP", "0 \x02\x01\x01`\x1b\x02\x01\x03\x04\x0ccn=admin,dc=x\x80\x08password", true},
		{"telnet", "\xff\xfb\x01\xff\xfd\x03", true},
	} {
		for _, slowly := range []bool{false, true} {
			b := New(Options{Resolver: names{}})
			w := b.way(t, l.Addr(), writ.ClassWrite, rule(t, l.Addr(), writ.ClassWrite))
			conn, err := net.Dial("tcp", w.mouth.String())
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(c.text, "") {
				if slowly {
					conn.(*net.TCPConn).SetNoDelay(true)
					time.Sleep(200 * time.Microsecond)
					io.WriteString(conn, part) // a reset is what some of it is answered with
				}
			}
			if !slowly {
				io.WriteString(conn, c.text)
			}
			conn.(*net.TCPConn).CloseWrite()
			got := <-heard
			conn.Close()
			want := map[bool]string{true: "connect allowed", false: "connect malformed"}[c.passes]
			if log := w.logged(); log != want || c.passes != (got == c.text) || !c.passes && strings.Contains(strings.ToUpper(got), "HTTP/") {
				t.Errorf("%s, slowly %t: the server heard %q, log %s, want %s", c.name, slowly, got, log, want)
			}
		}
	}
}
