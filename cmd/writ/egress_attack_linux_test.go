package main

import (
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// A siege is a box's surroundings: one host that it may reach, which says who was asked
// for, and everything else, which only listens.
type siege struct {
	w       *world
	names   *lab.DNS
	outside *lab.Witness
	ca      *lab.Authority
}

// forbidden4 is what nobody allowed, each of which a packet could reach in the lab.
var forbidden4 = []string{
	lab.Other + ":80", lab.Other + ":443", lab.Other + ":53", lab.Other + ":853", lab.Other + ":5353", lab.Private + ":80", lab.Private + ":443", lab.Metadata + ":80", lab.Metadata + ":443",
	lab.Public + ":853", lab.Public + ":8080", lab.Public + ":1", "127.0.0.1:80", "127.0.0.1:443", "127.0.0.1:8080", "127.0.0.1:1",
}

// forbidden6 is the same by the addresses that stand for others, and what they stand for.
var forbidden6 = []string{"::1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::1", "fd00:ec2::254", "2606:2800:220:1::1"}

func besiege(t *testing.T, answers map[string][][]string) *siege {
	t.Helper()
	need.Programs(t, "curl", "openssl", "python3", "bash", "ip")
	s := &siege{w: newWorld(t, standard, ""), ca: lab.NewAuthority(t)}
	all := map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}}
	for name, a := range answers {
		all[name] = a
	}
	s.names = lab.Names(t, all)
	lab.Web(t, lab.Public+":80", nil)
	lab.Web(t, lab.Public+":443", s.ca)
	at := slices.Clone(forbidden4)
	for _, a := range forbidden6 {
		if out, err := exec.Command("ip", "-6", "addr", "replace", a+"/128", "dev", "lo", "nodad").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", a, err, out)
		}
		at = append(at, "["+a+"]:80")
	}
	s.outside = lab.Watch(t, at...)
	s.alive(t, at)
	return s
}

// alive shows that the witness hears: what was never heard would prove nothing otherwise.
func (s *siege) alive(t *testing.T, at []string) {
	t.Helper()
	for _, a := range at {
		for _, network := range []string{"tcp", "udp"} {
			var c net.Conn
			waitFor(t, func() bool { // an address of IPv6 takes a moment to be there
				var err error
				c, err = net.Dial(network, a)
				return err == nil
			})
			c.Write([]byte("x"))
			c.Close()
		}
	}
	var all []string
	waitFor(t, func() bool { all = append(all, s.outside.Heard()...); return len(all) == 2*len(at) })
}

// An attack is tried in a box after what is allowed was done in it.
type attack struct {
	name  string
	hosts []string // that the box may reach; nil: good.test by HTTP and TLS
	do    string   // a script, or one of Python where it begins with #py
	want  string   // regular expressions about what it says, and what writ says after it, with && between
}

// attacker is what scripts of Python begin with.
const attackerPy = `
import socket, struct, sys, os, ssl
socket.setdefaulttimeout(5)
PUBLIC, OTHER, PRIVATE = "93.184.216.34", "93.184.216.35", "10.20.30.40"
def said(f):
    try: print("done", f())
    except Exception as e: print(type(e).__name__, e)
def talk(data, host="good.test", port=80):
    s = socket.create_connection((host, port)); s.sendall(data)
    got = b""
    try:
        while True:
            b = s.recv(65536)
            if not b: break
            got += b
    except OSError as e: got += (" [%s]" % e).encode()
    print(got.decode("latin1"))
def ask(labels, kind=1, server="127.0.0.1", tcp=False, klass=1, more=b"", flags=0x0100):
    q = struct.pack(">HHHHHH", 7, flags, 1, 0, 0, 1 if more else 0) + b"".join(bytes([len(l)]) + l for l in labels) + b"\0" + struct.pack(">HH", kind, klass) + more
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(3); s.connect((server, 53)); s.sendall((struct.pack(">H", len(q)) if tcp else b"") + q)
    r = s.recv(4096)
    if tcp: r = r[2:]
    print("rcode", r[3] & 15, "answers", struct.unpack(">H", r[6:8])[0])
`

// allowed is the control of every attack, in the same box and before it.
const (
	allowed = "exec 2>&1; curl -sSm 5 http://good.test/; echo '=== attack'; "
	reached = "GET good.test at " + lab.Public + ":80\n=== attack\n"
)

func (s *siege) try(t *testing.T, rows []attack) {
	t.Helper()
	for _, a := range rows {
		t.Run(a.name, func(t *testing.T) {
			hosts := a.hosts
			if hosts == nil {
				hosts = []string{"good.test", "good.test:80"}
			}
			args := []string{"--no-caches", "--read", s.ca.File}
			for _, h := range hosts {
				args = append(args, "--allow-host", h)
			}
			s.w.write(s.w.ws+"/attack", a.do)
			run := ". ./attack"
			if code, isPython := strings.CutPrefix(a.do, "#py\n"); isPython {
				s.w.write(s.w.ws+"/attack", attackerPy+code)
				run = "/usr/bin/python3 attack"
			}
			o := s.w.confines("", append(args, "--", "bash", "-c", allowed+run)...)
			said, ok := strings.CutPrefix(o.out, reached)
			if !ok {
				t.Fatalf("the control did not get through: %+v", o)
			}
			for want := range strings.SplitSeq(a.want, " && ") {
				if all := said + o.err; !regexp.MustCompile(`(?s)` + want).MatchString(all) {
					t.Errorf("it says:\n%s\nwant %s", all, want)
				}
			}
			time.Sleep(20 * time.Millisecond) // what was sent would have come by then
			if heard := s.outside.Heard(); len(heard) > 0 {
				t.Errorf("it got to %q", heard)
			}
		})
	}
}

// leaked are the names that were asked about outside, but for those that may be.
func (s *siege) leaked(t *testing.T, may ...string) {
	t.Helper()
	for _, name := range s.names.Asked() {
		if !slices.Contains(may, name) {
			t.Errorf("%q was asked about outside", name)
		}
	}
}

// A: hosts that look like one that is allowed. What a pattern may say is in the vectors of
// package host; here, whom a box can name.
func TestAttackA(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := besiege(t, map[string][][]string{"a.b.wild.test": {{lab.Public}}, "wild.test": {{lab.Other}}, "notgood.test": {{lab.Other}}, "good.test.bad.test": {{lab.Other}}, "inner.test": {{lab.Private}}})
	host := func(h string) string {
		return "#py\ntalk(b'GET / HTTP/1.1\\r\\nHost: ' + " + h + " + b'\\r\\nConnection: close\\r\\n\\r\\n')"
	}
	const refused, bad = `403 Forbidden.*writ: other_name`, `400 Bad Request`
	rows := []attack{
		{"2 everybody is nobody who is not public", []string{"*:80"}, "curl -sSm 5 http://inner.test/ http://127.1/ http://10.20.30.40/ http://169.254.169.254/", `dns inner\.test: address_not_open && connect 10\.20\.30\.40:80: nobodys_address && connect 169\.254\.169\.254:80: nobodys_address`},
		{"3 a suffix", nil, "curl -sSm 5 http://notgood.test/", `Could not resolve host && dns notgood\.test: host_not_allowed`},
		{"3 a prefix", nil, "curl -sSm 5 http://good.test.bad.test/", `Could not resolve host && host_not_allowed`},
		{"4 upper case is the same", nil, "curl -sSm 5 http://GOOD.TEST/", `^GET (good|GOOD)\.(test|TEST) at 93`},
		{"4 a dot after it in DNS", nil, "#py\nprint(socket.gethostbyname('good.test.'))", `^93\.184\.216\.34\n$`},
		{"4 a dot after it in Host", nil, host("b'good.test.'"), refused},
		{"4 a dot before it", nil, host("b'.good.test'"), refused},
		{"4 two dots", nil, host("b'good..test'"), refused},
		{"5 NUL in a name", nil, "#py\nask([b'good', b'test\\0', b'bad', b'test'])", `^rcode 3 answers 0\n`},
		{"5 a dot within a label", nil, "#py\nask([b'good.test'])", `^rcode 3 answers 0\n`},
		{"5 space, percent, at, hash, question mark, backslash", nil, "#py\nfor c in [b' ', b'%00', b'%2e', b'@', b'#', b'?', b'\\\\', b'\\r', b'\\n', b'\\t', b'/']: ask([b'good' + c, b'test'])", `^(rcode 3 answers 0\n){11}`},
		{"5 NUL in Host", nil, host(`b'good.test\0.bad.test'`), bad},
		{"5 CR in Host", nil, host(`b'good.test\r.bad.test'`), bad},
		{"5 TAB in Host", nil, host(`b'good.test\t.bad.test'`), bad},
		{"5 space in Host", nil, host(`b'good.test bad.test'`), bad},
		{"5 percent in Host", nil, host(`b'good.test%00.bad.test'`), `403 Forbidden|400 Bad Request`},
		{"5 backslash in Host", nil, host(`b'good.test\\.bad.test'`), `403 Forbidden|400 Bad Request`},
		{"6 full-width dot in Host", nil, host(`'good。test'.encode()`), `403 Forbidden|400 Bad Request`},
		{"6 homoglyph in Host", nil, host(`'gооd.test'.encode()`), `403 Forbidden|400 Bad Request`},
		{"6 homoglyph in DNS", nil, "curl -sSm 5 http://gооd.test/", `(Could not resolve host|Bad|malformed)`},
		{"6 soft hyphen in DNS", nil, "#py\nask(['go\u00adod'.encode(), b'test'])", `^rcode 3 answers 0\n`},
		{"7 userinfo", nil, "curl -sSm 5 http://good.test@bad.test/", `Could not resolve host: bad\.test`},
		{"7 userinfo in Host", nil, host(`b'good.test@bad.test'`), `403 Forbidden|400 Bad Request`},
		{"8 a bracketed host", nil, host(`b'[good.test]'`), `403 Forbidden|400 Bad Request`},
		{"8 a zone", nil, "curl -gsSm 5 'http://[fe80::1%25lo]/'", `Couldn't connect|Failed to connect|Network is unreachable|Could not resolve|bad`},
		{"9 a port before an at", nil, "curl -sSm 5 http://good.test:80@bad.test/", `Could not resolve host: bad\.test`},
		{"9 port 0 in Host", nil, host(`b'good.test:0'`), refused},
		{"9 port with a sign in Host", nil, host(`b'good.test:+80'`), `403 Forbidden|400 Bad Request`},
		{"9 port too large in Host", nil, host(`b'good.test:65616'`), refused},
		{"9 another port", nil, "curl -sSm 5 http://good.test:8080/", `connect 93\.184\.216\.34:8080: host_not_allowed`},
		{"10 a wildcard spans labels", []string{"good.test:80", "*.wild.test:80"}, "curl -sSm 5 http://a.b.wild.test/", `^GET a\.b\.wild\.test at `},
		{"10 but not the apex", []string{"good.test:80", "*.wild.test:80"}, "curl -sSm 5 http://wild.test/", `Could not resolve host`},
	}
	s.try(t, rows)
	s.leaked(t, "good.test", "a.b.wild.test", "inner.test")
	for pattern, want := range map[string]string{ // 1, 9, 11
		"": "--allow-host: ", "*.com": "single label", "*.co.uk": "public suffix", "*.github.io": "public suffix", "*.s3.amazonaws.com": "public suffix", ".good.test": "starts with a dot", "good.test.": "ends with a dot",
		"good.test:0": "port", "good.test:65536": "port", "good.test:+443": "port", "a@b.test": "--allow-host: ", "[::1%lo]": "--allow-host: ",
	} {
		o := s.w.confines("", "--no-caches", "--allow-host", pattern, "--", "echo", "ran")
		if o.code == 0 || o.out != "" || !strings.Contains(o.err, want) {
			t.Errorf("--allow-host %q: %+v, want %q", pattern, o, want)
		}
	}
}
