package main

import (
	"regexp"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// This machine's loopback is another one than the box's: the proxy leads there where a range
// opens it, and whoever goes without is told.
func TestRunLoopback(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", "egress:\n  hosts:\n    127.0.0.1:8080: {ranges: [127.0.0.1/32]}\n").init()
	lab.Names(t, map[string][][]string{"me.test": {{"127.0.0.1"}}})
	lab.Web(t, "127.0.0.1:8080", nil)
	const proxy = "http://198.18.0.1:1080"
	const told = `own_loopback \(loopback is the box's own; the proxy http://198\.18\.0\.1:1080 leads to this machine's, where a range opens it\)`
	for _, c := range []struct {
		name, host, open string
		command          []string
		out, err         string // regular expressions
	}{
		{"localhost", "localhost:8080", "127.0.0.0/8", []string{"http://localhost:8080/"}, `^$`, `writ run: connect localhost:8080: ` + told},
		{"by its address", "127.0.0.1:8080", "127.0.0.0/8", []string{"http://127.0.0.1:8080/"}, `^$`, `writ run: connect 127\.0\.0\.1:8080: ` + told},
		{"a name that leads there", "me.test:8080", "127.0.0.0/8", []string{"http://me.test:8080/"}, `^$`, `writ run: dns me\.test: ` + told},
		{"localhost by the proxy", "localhost:8080", "127.0.0.0/8", []string{"-x", proxy, "http://localhost:8080/"}, `^GET localhost:8080 at 127\.0\.0\.1:8080\n$`, `^$`},
		{"its address by the proxy", "127.0.0.1:8080", "127.0.0.0/8", []string{"-x", proxy, "http://127.0.0.1:8080/"}, `^GET 127\.0\.0\.1:8080 at `, `^$`},
		{"a name by the proxy", "me.test:8080", "127.0.0.0/8", []string{"-x", proxy, "http://me.test:8080/"}, `^GET me\.test:8080 at `, `^$`},
		{"no range", "localhost:8080", "10.0.0.0/8", []string{"-x", proxy, "http://localhost:8080/"}, `^writ: address_not_open`, `connect localhost:8080: address_not_open \(its address 127\.0\.0\.1 is loopback\)`},
		{"a name without a dot", "vm:80", "10.0.0.0/8", []string{"http://vm/"}, `^$`, `dns vm: not_resolved \(a name without a dot is not looked for in this machine's files and domains; write the whole name, or its address\)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.confines("", append([]string{"--no-caches", "--allow-host", c.host, "--allow-range", c.open, "--", "curl", "-sSm", "5"}, c.command...)...)
			if !regexp.MustCompile(c.out).MatchString(o.out) || !regexp.MustCompile(c.err).MatchString(o.err) {
				t.Errorf("out %q\nwant %s\nerr %q\nwant %s", o.out, c.out, o.err, c.err)
			}
		})
	}
	args := map[string]any{"command": "curl -sm 5 http://127.0.0.1:8080/; exit 0", "hosts": []string{"127.0.0.1:8080"}}
	if o := w.agreed("shell_command", args); !regexp.MustCompile(`\[not let out: 127\.0\.0\.1:8080: ` + told + `\]\n$`).MatchString(o.out) {
		t.Errorf("a call: %+v", o)
	}
	w.explains("can reach    127.0.0.1:8080; this machine's loopback by the proxy "+proxy+" alone", "shell_command", "command=true", `hosts:=["127.0.0.1:8080"]`)
}

// Programs that want a proxy find one, and get by it where they would get without.
func TestRunProxy(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, standard, "")
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}, "inner.test": {{lab.Private}}})
	for _, at := range []string{lab.Public, lab.Other, lab.Private} {
		lab.Web(t, at+":443", ca)
		lab.Web(t, at+":80", nil)
	}
	const web, socks = "http://198.18.0.1:1080", "socks5h://198.18.0.1:1080"
	const head = `exec 3<>/dev/tcp/198.18.0.1/1080; printf `
	flags := []string{"--no-caches", "--allow-host", "good.test", "--allow-host", "good.test:80", "--allow-host", "inner.test", "--read-host", "good.test:8080"}
	for _, c := range []struct {
		name     string
		command  []string
		out, err string // regular expressions
	}{
		{"HTTPS", []string{"curl", "-sS", "-x", web, "https://good.test/"}, `^GET good\.test at 93\.184\.216\.34:443\n$`, `^$`},
		{"by variables", []string{"env", "HTTPS_PROXY=" + web, "curl", "-sS", "https://good.test/"}, `^GET good\.test at 93\.184\.216\.34:443\n$`, `^$`},
		{"HTTP", []string{"curl", "-sS", "-x", web, "http://good.test/", "http://good.test/"}, `^(GET good\.test at 93\.184\.216\.34:80\n){2}$`, `^$`},
		{"SOCKS5", []string{"curl", "-sS", "-x", socks, "https://good.test/"}, `^GET good\.test at 93\.184\.216\.34:443\n$`, `^$`},
		{"SOCKS5, HTTP", []string{"curl", "-sS", "-x", socks, "http://good.test/"}, `^GET good\.test at 93\.184\.216\.34:80\n$`, `^$`},
		{"Python", []string{"env", "https_proxy=" + web, "python3", "-c", `import urllib.request; print(urllib.request.urlopen("https://good.test/").read().decode(), end="")`}, `^GET good\.test at `, `^$`},
		{"another host", []string{"curl", "-sS", "-x", web, "https://bad.test/"}, `^$`, `connect bad\.test:443: host_not_allowed \(--allow-host bad\.test:443 would allow it\)(?s:.*)403`},
		{"another host, HTTP", []string{"curl", "-sS", "-x", web, "http://bad.test/"}, `^writ: host_not_allowed: bad\.test:80 is not among the hosts of this call\n$`, `host_not_allowed`},
		{"another host, SOCKS5", []string{"curl", "-sS", "-x", socks, "https://bad.test/"}, `^$`, `connect bad\.test:443: host_not_allowed`},
		{"another port", []string{"curl", "-sS", "-x", web, "https://good.test:8443/"}, `^$`, `connect good\.test:8443: host_not_allowed`},
		{"a private answer", []string{"curl", "-sS", "-x", web, "https://inner.test/"}, `^$`, `connect inner\.test:443: address_not_open`},
		{"an address that SOCKS5 is given", []string{"curl", "-sSk", "-x", "socks5://198.18.0.1:1080", "https://93.184.216.35/"}, `^$`, `connect 93\.184\.216\.35:443: host_not_allowed`},
		{"CONNECT to one, TLS to another", []string{"sh", "-c", "echo | timeout 5 openssl s_client -proxy 198.18.0.1:1080 -connect good.test:443 -servername bad.test"}, ``, `connect good\.test:443: other_name`},
		{"CONNECT, then a request to another", []string{"bash", "-c", head + `'CONNECT good.test:80 HTTP/1.1\r\nHost: good.test:80\r\n\r\nGET / HTTP/1.1\r\nHost: bad.test\r\n\r\n' >&3; timeout 3 cat <&3`}, `200 Connection established(?s:.*)writ: other_name`, `other_name`},
		{"CONNECT within CONNECT", []string{"bash", "-c", head + `'CONNECT good.test:80 HTTP/1.1\r\nHost: good.test:80\r\n\r\nCONNECT bad.test:443 HTTP/1.1\r\nHost: bad.test:443\r\n\r\n' >&3; timeout 3 cat <&3`}, `200 Connection established(?s:.*)writ: malformed`, `malformed`},
		{"CONNECT to itself", []string{"bash", "-c", head + `'CONNECT 198.18.0.1:1080 HTTP/1.1\r\nHost: 198.18.0.1:1080\r\n\r\n' >&3; timeout 3 cat <&3`}, `403 Forbidden`, `host_not_allowed`},
		{"two hosts", []string{"bash", "-c", head + `'GET http://good.test/ HTTP/1.1\r\nHost: bad.test\r\nConnection: close\r\n\r\n' >&3; timeout 3 cat <&3`}, `good\.test at`, ``},
		{"no request", []string{"bash", "-c", head + `'GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\nBad Header: x\r\n\r\n' >&3; timeout 3 cat <&3`}, `400 Bad Request`, `connect proxy: malformed \(it has a request that cannot be read\)`},
		{"a NUL in a name", []string{"python3", "-c", `
import socket
s = socket.create_connection(("198.18.0.1", 1080), 5); s.sendall(b"\x05\x01\x00")
assert s.recv(2) == b"\x05\x00"
n = b"good.test\x00.bad.test"; s.sendall(b"\x05\x01\x00\x03" + bytes([len(n)]) + n + b"\x01\xbb")
print(s.recv(10)[1])`}, `^1\n$`, `malformed`},
		{"datagrams by SOCKS5", []string{"python3", "-c", `
import socket
s = socket.create_connection(("198.18.0.1", 1080), 5); s.sendall(b"\x05\x01\x00"); s.recv(2)
s.sendall(b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00"); print(s.recv(10)[1])`}, `^7\n$`, `malformed`},
		{"SOCKS4", []string{"curl", "-sS", "-x", "socks4a://198.18.0.1:1080", "https://good.test/"}, `^$`, `malformed \(the proxy speaks HTTP and SOCKS5\)`},
		{"a change where it only reads", []string{"curl", "-sS", "-x", web, "-d", "x", "http://good.test:8080/"}, `writ: method_refused`, `method_refused`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.confines("", append(append([]string{}, flags...), append([]string{"--"}, c.command...)...)...)
			if !regexp.MustCompile(c.out).MatchString(o.out) || !regexp.MustCompile(c.err).MatchString(o.err) {
				t.Errorf("out %q\nwant %s\nerr %q\nwant %s", o.out, c.out, o.err, c.err)
			}
		})
	}
}
