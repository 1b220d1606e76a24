package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// IPv6 leads nowhere, unless somebody says that hosts are reached by it; then to those
// hosts, by the same rules.
func TestRunIPv6(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, standard, "")
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{
		"six.test": {{lab.Public6}}, "both.test": {{lab.Public, lab.Public6}}, "inner.test": {{lab.Private6}}, "half.test": {{lab.Public, lab.Private6}},
		"nat.test": {{"64:ff9b::a9fe:a9fe"}}, "mapped.test": {{"::ffff:10.20.30.40"}}, "tunnel.test": {{"2002:a14:1e28::1"}},
	})
	lab.Web(t, lab.Public+":443", ca)
	lab.Web(t, "["+lab.Public6+"]:443", ca)
	lab.Web(t, "["+lab.Private6+"]:443", ca)
	lab.Web(t, "[::1]:8099", nil)
	get := func(host string, args ...string) []string {
		return append([]string{"curl", "-sS", "-m", "5", "https://" + host + "/"}, args...)
	}
	policy := filepath.Join(w.home, "six.yaml")
	w.write(policy, "hosts: [six.test]\nipv6: true\n")
	for _, c := range []struct {
		name     string
		flags    []string
		command  []string
		out, err string // regular expressions
	}{
		{"a host that has nothing else", []string{"--ipv6", "--allow-host", "six.test"}, get("six.test"), `^GET six\.test at \[2606:2800:220:1::34\]:443\n$`, `^$`},
		{"without being told to", []string{"--allow-host", "six.test"}, get("six.test"), `^$`, `dns six\.test: not_resolved \(the name has addresses of IPv6 alone; --ipv6 would reach it\)(?s:.*)Could not resolve host|Could not resolve host(?s:.*)--ipv6 would reach it`},
		{"by a policy", []string{"--policy", policy}, get("six.test"), `^GET six\.test at \[2606:`, `^$`},
		{"by its address, without being told to", []string{"--allow-host", "six.test"}, get("six.test", "--resolve", "six.test:443:["+lab.Public6+"]"), `^$`, `Failed to connect|Couldn't connect`},
		{"a host that has both", []string{"--ipv6", "--allow-host", "both.test"}, get("both.test", "-6"), `^GET both\.test at \[2606:`, `^$`},
		{"the same by the other", []string{"--ipv6", "--allow-host", "both.test"}, get("both.test", "-4"), `^GET both\.test at 93\.`, `^$`},
		{"only read from", []string{"--ipv6", "--read-host", "six.test"}, get("six.test"), `^GET six\.test at \[2606:`, `^$`},
		{"another host's address", []string{"--ipv6", "--allow-host", "both.test"}, get("both.test", "--resolve", "both.test:443:["+lab.Private6+"]"), `^$`, `connect \[fd00::40\]:443: nobodys_address`},
		{"a private answer", []string{"--ipv6", "--allow-host", "inner.test"}, get("inner.test"), `^$`, `dns inner\.test: address_not_open \(its address fd00::40 is unique_local|dns inner\.test: address_not_open`},
		{"which was allowed", []string{"--ipv6", "--allow-host", "inner.test", "--allow-range", "fd00::/8"}, get("inner.test"), `^GET inner\.test at \[fd00::40\]`, `^$`},
		{"one private of two kinds", []string{"--ipv6", "--allow-host", "half.test"}, get("half.test", "-4"), `^$`, `dns half\.test: address_not_open`},
		{"NAT64", []string{"--ipv6", "--allow-host", "nat.test"}, get("nat.test"), `^$`, `dns nat\.test: address_not_open \(its address 64:ff9b::a9fe:a9fe is nat64`},
		{"6to4", []string{"--ipv6", "--allow-host", "tunnel.test"}, get("tunnel.test"), `^$`, `dns tunnel\.test: address_not_open`},
		{"an IPv4 address in one", []string{"--ipv6", "--allow-host", "mapped.test"}, get("mapped.test"), `^$`, `address_not_open|not_resolved`},
		{"datagrams", []string{"--ipv6", "--allow-host", "six.test"}, []string{"python3", "-c", `
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(1)
try: s.connect(("` + lab.Public6 + `", 443)); s.send(b"x"); s.recv(9); print("answered")
except OSError as e: print(type(e).__name__)`}, `^(ConnectionRefusedError|TimeoutError)\n$`, ``},
		{"this machine's loopback", []string{"--ipv6", "--allow-host", "six.test"}, []string{"curl", "-sS", "-m", "5", "http://[::1]:8099/"}, `^$`, `Failed to connect|Couldn't connect`},
		{"its own", []string{"--ipv6", "--allow-host", "six.test"}, []string{"python3", "-c", `
import socket, threading
l = socket.create_server(("::1", 8080), family=socket.AF_INET6)
threading.Thread(target=lambda: l.accept()[0].sendall(b"mine")).start()
print(socket.create_connection(("::1", 8080)).recv(4).decode())`}, `^mine\n$`, `^$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.confines("", append(append([]string{"--no-caches"}, c.flags...), append([]string{"--"}, c.command...)...)...)
			if !regexp.MustCompile(c.out).MatchString(o.out) || !regexp.MustCompile(c.err).MatchString(o.err) {
				t.Errorf("out %q\nwant %s\nerr %q\nwant %s", o.out, c.out, o.err, c.err)
			}
		})
	}
}

// egress.hosts.*.ipv6 says of a host that calls reach it by IPv6; without it, it has no address.
func TestCallIPv6(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"six.test": {{lab.Public6}}, "other.test": {{lab.Public6}}})
	lab.Web(t, "["+lab.Public6+"]:443", ca)
	w := newWorld(t, free, "egress:\n  hosts:\n    six.test: {class: read_only, ipv6: true}\n    other.test: {class: read_only}\n").init()
	get := func(host string) outcome {
		return w.call("shell_command", map[string]any{"command": "curl -sS -m 5 https://" + host + "/", "hosts": []string{host}})
	}
	const reached = "GET six.test at [2606:2800:220:1::34]:443\n"
	if o := get("six.test"); o.code != 0 || o.out != reached {
		t.Errorf("with the key: %+v", o)
	}
	if o := get("other.test"); o.code == 0 || strings.Contains(o.out, "GET ") || !strings.Contains(o.out, "[not let out: other.test: not_resolved") {
		t.Errorf("without it: %+v", o)
	}
	w.edit("ipv6: true", "ipv6: false")
	w.must("", "config", "reload")
	if o := get("six.test"); o.code == 0 || strings.Contains(o.out, "GET ") {
		t.Errorf("with the key turned off: %+v", o)
	}
}
