package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// Programs that know nothing of writ reach the hosts that a person named, and nothing
// else, by no way that they try.
func TestRunHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, standard, "")
	ca := lab.NewAuthority(t)
	names := lab.Names(t, map[string][][]string{
		"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}, "inner.test": {{lab.Private}}, "mixed.test": {{lab.Public, lab.Private}},
		"papers.test": {{"192.0.2.2"}}, "cloud.test": {{lab.Metadata}}, "moves.test": {{lab.Public}, {lab.Private}}, "a.wild.test": {{lab.Public}}, "wild.test": {{lab.Public}},
	})
	for _, at := range []string{lab.Public, lab.Other, lab.Private, lab.Metadata} {
		lab.Web(t, at+":443", ca)
		lab.Web(t, at+":80", nil)
	}
	curl := func(args ...string) []string {
		return append([]string{"--read", ca.File, "--", "curl", "-sS", "-m", "5", "--cacert", ca.File}, args...)
	}
	onePiece := func(text string, port int) []string { // a shell sends it line by line
		return []string{"--", "python3", "-c", fmt.Sprintf(`import socket, ssl
c = socket.create_connection(("good.test", %d), 5)
if %[1]d == 443: c = ssl.create_default_context().wrap_socket(c, server_hostname="good.test")
c.sendall(b%s)
while b := c.recv(4096): print(b.decode())`, port, text)}
	}
	good := []string{"--allow-host", "good.test"}
	bad := filepath.Join(w.home, "bad.yaml")
	w.write(bad, "ipv6: true\nhosts: [good.test, 'https://good.test']\nreads: ['good.test:0']\nranges: [10.0.0.1/8]\n")
	both := []string{"--allow-host", "good.test", "--allow-host", "good.test:80"}
	for _, c := range []struct {
		name     string
		flags    []string
		command  []string
		out, err string // regular expressions
	}{
		{"a host that was named", good, curl("https://good.test/"), `^GET good\.test at 93\.184\.216\.34:443\n$`, `^$`},
		{"how it sends to the relay, which is never paced", good, []string{"--", "python3", "-c", `import socket; print(socket.create_connection(("good.test", 443)).getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode())`}, `^reno\n$`, ``},
		{"it changes something there", good, curl("-d", "x", "https://good.test/"), `^POST good\.test at `, `^$`},
		{"plain HTTP", both, curl("http://good.test/"), `^GET good\.test at 93\.184\.216\.34:80\n$`, `^$`},
		{"a wildcard", []string{"--allow-host", "*.wild.test"}, curl("https://a.wild.test/"), `^GET a\.wild\.test `, `^$`},
		{"its apex", []string{"--allow-host", "*.wild.test"}, curl("https://wild.test/"), `^$`, `dns wild\.test: host_not_allowed \(--allow-host wild\.test would allow port 443 of it; wild\.test:PORT another\)`},
		{"an address of IPv6 without --ipv6", []string{"--allow-host", "[2606:2800:220:1::34]:80"}, []string{"--", "true"}, `^$`, `--allow-host \[2606:2800:220:1::34\]:80 is an address of IPv6, which nothing reaches without --ipv6; add that`},
		{"a range of IPv6 without --ipv6", []string{"--read-host", "[2606:2800::/32]:80"}, []string{"--", "true"}, `^$`, `--read-host .* is an address of IPv6`},
		{"another host", good, curl("https://bad.test/"), `^$`, `dns bad\.test: host_not_allowed \(--allow-host bad\.test would allow port 443 of it; bad\.test:PORT another\)`},
		{"another port", good, curl("http://good.test/"), `^$`, `connect 93\.184\.216\.34:80: host_not_allowed \(--allow-host good\.test:80 would allow it\)`},
		{"an address", good, curl("-k", "https://93.184.216.35/"), `^$`, `connect 93\.184\.216\.35:443: nobodys_address \(TLS is allowed to names alone: --allow-host with the host's name`},
		{"another name at an address", good, curl("--resolve", "good.test:443:93.184.216.35", "https://good.test/"), `^$`, `connect 93\.184\.216\.35:443: nobodys_address`},
		{"its address by number", good, curl("-k", "https://93.184.216.34/"), `^$`, `nobodys_address`},
		{"another name in TLS", good, []string{"--", "sh", "-c", "echo | timeout 5 openssl s_client -connect good.test:443 -servername bad.test"}, ``, `connect good\.test:443: other_name \(it names "bad\.test"\)`},
		{"no name in TLS", good, []string{"--", "sh", "-c", "echo | timeout 5 openssl s_client -connect good.test:443 -noservername"}, ``, `connect good\.test:443: no_name \(TLS has to name the host\)`},
		{"another name in a request", both, curl("-H", "Host: bad.test", "http://good.test/"), `^writ: other_name: the request is for "bad\.test", and the connection is to good\.test:80\n$`, `http good\.test:80: other_name`},
		{"two names in a request", both, curl("--request-target", "http://bad.test/", "http://good.test/"), `^writ: other_name: the request is for "bad\.test"`, `http good\.test:80: other_name`},
		{"the second request of a connection", both, []string{"--", "bash", "-c", `exec 3<>/dev/tcp/good.test/80; printf 'GET / HTTP/1.1\r\nHost: good.test\r\n\r\nGET / HTTP/1.1\r\nHost: bad.test\r\nConnection: close\r\n\r\n' >&3; timeout 5 cat <&3`}, `GET good\.test at (?s:.*)writ: other_name`, `other_name`},
		{"no request behind the first of a connection", both, onePiece(`"GET / HTTP/1.1\r\nHost: good.test\r\n\r\nBAD\r\n\r\n"`, 80), `GET good\.test at (?s:.*)400 Bad Request`, `^writ run: connect good\.test:80: malformed \(it has a request that cannot be read\)\r\n$`},
		{"the same within TLS", []string{"--read-host", "good.test"}, onePiece(`"GET / HTTP/1.1\r\nHost: good.test\r\n\r\nBAD\r\n\r\n"`, 443), `400 Bad Request`, `connect good\.test:443: malformed \(it has a request that cannot be read\)`},
		{"two requests in one piece", both, onePiece(`"GET / HTTP/1.1\r\nHost: good.test\r\n\r\nGET / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"`, 80), `GET good\.test at (?s:.*)GET good\.test at `, `^$`},
		{"a private answer", []string{"--allow-host", "inner.test"}, curl("https://inner.test/"), `^$`, `dns inner\.test: address_not_open \(its address 10\.20\.30\.40 is private; --allow-range 10\.20\.30\.40/32 would allow it\)`},
		{"which was allowed", []string{"--allow-host", "inner.test", "--allow-range", "10.20.30.40/32"}, curl("https://inner.test/"), `^GET inner\.test at 10\.20\.30\.40:443\n$`, `^$`},
		{"one private among several", []string{"--allow-host", "mixed.test"}, curl("https://mixed.test/"), `^$`, `dns mixed\.test: address_not_open`},
		{"the cloud's own address", []string{"--allow-host", "cloud.test:80"}, curl("http://cloud.test/"), `^$`, `dns cloud\.test: address_not_open \(its address 169\.254\.169\.254 is metadata\)`},
		{"another port of a host that is only read from", []string{"--read-host", "good.test"}, curl("http://good.test/"), `^$`, `connect 93\.184\.216\.34:80: host_not_allowed \(--read-host good\.test:80 would allow it\)`},
		{"to change something there", []string{"--read-host", "good.test:80"}, curl("-d", "x", "http://good.test/"), `method_refused`, `http good\.test:80: method_refused \(POST; --allow-host good\.test:80 would let it change something\)`},
		{"the cloud's own address by number", good, curl("http://169.254.169.254/"), `^$`, `connect 169\.254\.169\.254:80: nobodys_address \(it is metadata\)`},
		{"an address that was named", []string{"--allow-host", "93.184.216.34"}, curl("-k", "https://93.184.216.34/"), `^$`, `no_name \(TLS to an address names nobody; allow the host's name, and use that\)`},
		{"a range", []string{"--allow-host", "10.20.30.0/24:443", "--allow-range", "10.20.30.0/24"}, curl("-k", "--connect-to", "::10.20.30.40:443", "https://10.20.30.40/"), ``, `no_name`},
		{"datagrams", good, []string{"--", "bash", "-c", "exec 3<>/dev/udp/93.184.216.34/443; echo x >&3; echo x >&3"}, ``, `refused`},
		{"names by another server", good, []string{"--", "python3", "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
s.sendto(bytes.fromhex("123401000001000000000000") + b"\x04data\x03bad\x04test\x00\x00\x01\x00\x01", ("93.184.216.35", 53))
print(s.recv(512)[3] & 15)`}, `^3\n$`, `dns data\.bad\.test: host_not_allowed`},
		{"the box's own loopback", good, []string{"--", "python3", "-c", `
import socket, threading
l = socket.create_server(("127.0.0.1", 8080))
threading.Thread(target=lambda: l.accept()[0].sendall(b"mine")).start()
print(socket.create_connection(("127.0.0.1", 8080)).recv(4).decode())`}, `^mine\n$`, `^$`},
		{"no host at all", nil, curl("https://good.test/"), `^$`, `Could not resolve host`},
		{"a pattern that is none", []string{"--allow-host", "https://good.test"}, []string{"--", "echo", "ran"}, `^$`, `--allow-host: pattern "https://good\.test" is a URL; write its host alone`},
		{"IPv6 to nobody", []string{"--ipv6"}, []string{"--", "echo", "ran"}, `^$`, `--ipv6 says how the hosts of --allow-host, --read-host and --ssh may be reached; name a host`},
		{"bad hosts of a policy", []string{"--policy", bad}, []string{"--", "echo", "ran"}, `^$`, `bad\.yaml:2: hosts\[1\]: pattern "https://good\.test" is a URL(?s:.*)bad\.yaml:3: reads\[0\]: (?s:.*)bad\.yaml:4: ranges\[0\]: "10\.0\.0\.1/8" is not a range`},
		{"a range that is none", append(good, "--allow-range", "10.0.0.1/8"), []string{"--", "echo", "ran"}, `^$`, `--allow-range "10\.0\.0\.1/8" is not a range; write one such as 10\.0\.0\.0/8`},
		{"an address for a range", append(good, "--allow-range", "192.0.2.2"), []string{"--", "echo", "ran"}, `^$`, `--allow-range "192\.0\.2\.2" is not a range; write 192\.0\.2\.2/32 for that address alone`},
		{"a documentation address", []string{"--allow-host", "papers.test"}, curl("https://papers.test/"), `^$`, `dns papers\.test: address_not_open \(its address 192\.0\.2\.2 is documentation; --allow-range 192\.0\.2\.2/32 would allow it\)`},
		{"an address that was named and is not public", []string{"--allow-host", "10.20.30.40:80"}, curl("http://10.20.30.40/"), `^$`, `connect 10\.20\.30\.40:80: address_not_open \(its address 10\.20\.30\.40 is private; --allow-range 10\.20\.30\.40/32 would allow it\)`},
		{"which is then allowed", []string{"--allow-host", "10.20.30.40:80", "--allow-range", "10.20.30.40/32"}, curl("http://10.20.30.40/"), `^GET 10\.20\.30\.40 at 10\.20\.30\.40:80\n$`, `^$`},
		{"another host, by a port that nobody knows", []string{"--allow-host", "good.test:8080"}, curl("http://bad.test/"), `^$`, `dns bad\.test: host_not_allowed \(--allow-host bad\.test would allow port 443 of it; bad\.test:PORT another\)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.confines("", append(append([]string{"--no-caches"}, c.flags...), c.command...)...)
			if !regexp.MustCompile(c.out).MatchString(o.out) || !regexp.MustCompile(c.err).MatchString(o.err) {
				t.Errorf("out %q\nwant %s\nerr %q\nwant %s", o.out, c.out, o.err, c.err)
			}
		})
	}
	for _, asked := range names.Asked() {
		if strings.HasSuffix(asked, "bad.test") {
			t.Errorf("%s was asked about outside", asked)
		}
	}
}
