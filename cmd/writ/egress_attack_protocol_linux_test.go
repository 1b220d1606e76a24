package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// D: what is said on a connection that may be made. Requests in all their forms are in
// package egress; here, the ways that programs have.
func TestAttackD(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := besiege(t, nil)
	greets(t, lab.Public+":82")
	lab.Serve(t, lab.Public+":83", nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\nHTTP/1.1 200 OK\r\n\x1b[2Junasked")
		}
	}))
	lab.Web(t, lab.Public+":84", nil)
	const get = `GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n`
	openssl := func(args, host string) string {
		return "printf '" + strings.ReplaceAll(get, "%s", host) + "' | timeout 5 openssl s_client -quiet " + args + " 2>&1"
	}
	s.try(t, []attack{
		{"SNI is not Host", nil, openssl("-connect good.test:443 -servername good.test", "bad.test"), `GET bad\.test at 93\.184\.216\.34:443`}, // nobody sees it, and it gets nowhere else
		{"SNI is not the name", nil, openssl("-connect good.test:443 -servername bad.test", "bad.test"), `connect good\.test:443: other_name \(it names "bad\.test"\)`},
		{"no SNI", nil, openssl("-connect good.test:443 -noservername", "good.test"), `connect good\.test:443: no_name`},
		{"an address for SNI", nil, openssl("-connect good.test:443 -servername 93.184.216.34", "good.test"), `connect good\.test:443: (other_name|no_name)`},
		{"a dot after SNI", nil, openssl("-connect good.test:443 -servername good.test.", "good.test"), `connect good\.test:443: (other_name|malformed)`},
		{"TLS to an address with an allowed SNI", nil, openssl("-connect 93.184.216.35:443 -servername good.test", "good.test"), `connect 93\.184\.216\.35:443: nobodys_address`},
		{"TLS to the right address, unasked", []string{"good.test:80", "other.test"}, openssl("-connect 93.184.216.34:443 -servername other.test", "other.test"), `connect 93\.184\.216\.34:443: host_not_allowed`},
		{"TLS on the port of HTTP", nil, openssl("-connect good.test:80 -servername bad.test", "bad.test"), `other_name`},
		{"HTTP on the port of TLS", nil, "curl -sSm 5 http://good.test:443/ -H 'Host: bad.test:443'", `writ: other_name`},
		{"CONNECT", nil, "curl -sSm 5 -p -x http://good.test:80 http://bad.test/", `http good\.test:80: malformed`},
		{"CONNECT to itself", nil, "curl -sSm 5 -p -x http://good.test:80 http://good.test/", `http good\.test:80: malformed`},
		{"a proxy by absolute form", nil, "curl -sSm 5 -x http://good.test:80 http://bad.test/", `^writ: other_name`},
		{"absolute form and Host disagree", nil, "#py\ntalk(b'GET http://bad.test/ HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: close\\r\\n\\r\\n'); talk(b'GET http://good.test/ HTTP/1.1\\r\\nHost: bad.test\\r\\nConnection: close\\r\\n\\r\\n')", `403 Forbidden.*(GET good\.test at 93\.184\.216\.34|403 Forbidden)`},
		{"a second host on a connection", nil, "#py\ntalk(b'GET / HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n')", `GET good\.test at .*403 Forbidden.*writ: other_name`},
		{"HTTP/2 without TLS", nil, "curl -sSm 5 --http2-prior-knowledge http://good.test/", `curl: \(\d+\)`},
		{"an upgrade to HTTP/2", nil, "curl -sSm 5 --http2 http://good.test/", `writ: method_refused: only websocket can follow`},
		{"an upgrade that is not answered, then another host", nil, "#py\ntalk(b'GET / HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n')", `200 OK.*403 Forbidden.*writ: other_name`},
		{"bytes that are nothing, on the port of HTTP", nil, "#py\ntalk(b'\\x01\\x02\\x03raw')", `reset && connect good\.test:80: not_seen`},
		{"SSH on the port of TLS", nil, "#py\ntalk(b'SSH-2.0-x\\r\\n', port=443)", `reset && connect good\.test:443: not_seen`},
		{"--connect-to", nil, "curl -sSm 5 --connect-to good.test:80:93.184.216.35:80 http://good.test/", `connect 93\.184\.216\.35:80: nobodys_address`},
		{"--connect-to another name", nil, "curl -sSm 5 --connect-to good.test:80:bad.test:80 http://good.test/", `dns bad\.test: host_not_allowed`},
		{"--resolve", nil, "curl -sSm 5 --resolve good.test:80:10.20.30.40 http://good.test/", `connect 10\.20\.30\.40:80: nobodys_address`},
		{"--interface", nil, "curl -sSm 5 --interface lo http://93.184.216.35/; curl -sSm 5 --interface 93.184.216.34 http://93.184.216.35/; curl -sSm 5 --interface eth0 http://93.184.216.35/", `curl: .*curl: .*curl: `},
		{"the port of the relay", nil, "for h in 127.0.0.1 93.184.216.34 93.184.216.35 192.0.0.2; do curl -sSm 5 http://$h:1/; done", `curl: .*curl: .*curl: .*curl: `},
		{"the port of the relay by name", nil, "curl -sSm 5 http://good.test:1/", `connect 93\.184\.216\.34:1: host_not_allowed`},
		{"Host for the relay itself", nil, "curl -sSm 5 -H 'Host: good.test' http://127.0.0.1:1/", `connect 127\.0\.0\.1:1: nobodys_address`},
		{"proxy variables", nil, "http_proxy=http://93.184.216.35:80 ALL_PROXY=socks5h://93.184.216.35:443 curl -sSm 5 http://good.test/", `connect 93\.184\.216\.35:80: nobodys_address`},
		{"a server that says more than it was asked", []string{"good.test:80", "good.test:83"}, "curl -sSm 5 http://good.test:83/; sleep 0.2", `^ok\n$`},
		{"a method that nobody has, then another host", []string{"good.test:80", "good.test:84"}, "#py\nfor m in (b'!GET', b'SSH-2.0-x', b'\\x01GET'): talk(m + b' / HTTP/1.1\\r\\nHost: bad.test:84\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: bad.test:84\\r\\n\\r\\n', port=84)\ntalk(b'GET / HTTP/1.1\\r\\nHost: good.test:84\\r\\nConnection: close\\r\\n\\r\\n', port=84)", `^[^A-Z]*HTTP/1\.1 200 OK.*GET good\.test:84 at [^A-Z]*$ && connect good\.test:84: malformed`},
		{"a port where clients listen first, which becomes TLS", []string{"good.test:80", "good.test:82"}, "#py\nimport time\ns = socket.create_connection(('good.test', 82)); print(s.recv(3)); s.sendall(b'\\x16\\x03\\x01' + b'x' * 300); said(lambda: s.recv(9))", `^b'220'\n && malformed`},
	})
	s.leaked(t, "good.test")
}

// greets speaks first, and never answers.
func greets(t *testing.T, at string) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.WriteString(c, "220"); io.Copy(io.Discard, c); c.Close() }()
		}
	}()
}

// E: everything that is no connection of TCP and no question about a name.
func TestAttackE(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := besiege(t, nil)
	abstract, err := net.Listen("unix", "@writ-attack-e")
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	if c, err := net.Dial("unix", "@writ-attack-e"); err != nil {
		t.Fatal(err)
	} else {
		c.Close()
	}
	make := func(args string) string { return "#py\nsaid(lambda: socket.socket(" + args + "))" }
	const eperm = `^(PermissionError|OSError) [^\n]*(Operation not permitted|not supported)`
	s.try(t, []attack{
		{"datagrams to 443", nil, "#py\nfor to in ['93.184.216.35', '93.184.216.34', '10.20.30.40', '127.0.0.1']:\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3)\n  def f(): s.connect((to, 443)); s.send(b'\\xc0\\0\\0\\0\\1'); return s.recv(9)\n  said(f)", `^((TimeoutError|timeout|ConnectionRefusedError|OSError|PermissionError) ?[^\n]*\n){4}$`},
		{"echo of ICMP", nil, make("socket.AF_INET, socket.SOCK_DGRAM, 1"), eperm},
		{"raw ICMP", nil, make("socket.AF_INET, socket.SOCK_RAW, 1"), eperm},
		{"raw TCP", nil, make("socket.AF_INET, socket.SOCK_RAW, 6"), eperm},
		{"raw IP", nil, make("socket.AF_INET, socket.SOCK_RAW, 255"), eperm},
		{"SCTP", nil, make("socket.AF_INET, socket.SOCK_STREAM, 132"), eperm},
		{"MPTCP", nil, make("socket.AF_INET, socket.SOCK_STREAM, 262"), eperm},
		{"UDP-Lite", nil, make("socket.AF_INET, socket.SOCK_DGRAM, 136"), eperm},
		{"packets", nil, make("socket.AF_PACKET, socket.SOCK_RAW, 768"), eperm},
		{"virtual machines", nil, make("socket.AF_VSOCK"), eperm},
		{"the kernel's ciphers", nil, make("socket.AF_ALG, socket.SOCK_SEQPACKET"), eperm},
		{"bluetooth", nil, make("31, socket.SOCK_RAW, 1"), eperm},
		{"XDP", nil, make("44, socket.SOCK_RAW"), eperm},
		{"netlink that is not about routes", nil, "#py\nfor p in (4, 6, 9, 12, 15, 16, 20, 21): said(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, p))", `^((PermissionError|OSError) [^\n]*\n){8}$`},
		{"routes can be asked about and not changed", nil, "ip route add 93.184.216.35 dev lo; ip addr add 1.2.3.4/32 dev lo; ip link add x type dummy; ip link set lo down; nft flush ruleset; iptables -t nat -F; curl -sSm 5 http://good.test/", `GET good\.test at 93`},
		{"abstract sockets of the host", nil, "#py\ndef f():\n  s = socket.socket(socket.AF_UNIX); s.connect('\\0writ-attack-e')\nsaid(f)", `^(PermissionError|ConnectionRefusedError|OSError)`},
		{"another namespace", nil, "unshare -rn true; unshare -Urn true; nsenter -t 1 -n true; echo tried", `unshare.*unshare.*nsenter.*tried\n`},
		{"the loopback of the host", nil, "for p in 80 443 8080; do curl -sSm 5 http://127.0.0.1:$p/; done", `(curl: \(7\)[^\n]*\n){3}$`},
		{"the loopback of the box is its own", nil, "#py\nimport threading\nl = socket.create_server(('127.0.0.1', 8080)); threading.Thread(target=lambda: l.accept()[0].sendall(b'mine'), daemon=True).start()\nprint(socket.create_connection(('127.0.0.1', 8080)).recv(4))", `^b'mine'\n$`},
		{"listening at somebody's address hears nobody", nil, "#py\nimport threading\ndef f():\n  l = socket.create_server(('93.184.216.35', 8443)); l.settimeout(1); threading.Thread(target=lambda: said(lambda: socket.create_connection(('93.184.216.35', 8443)).recv(1)), daemon=True).start(); l.accept()\nsaid(f)", `nobodys_address`},
		{"/dev/tcp and /dev/udp", nil, "exec 3<>/dev/tcp/93.184.216.35/443 && read -t 2 -u 3; (exec 4<>/dev/udp/93.184.216.35/53 && echo x >&4); true", `nobodys_address`},
	})
	s.leaked(t, "good.test")
}
