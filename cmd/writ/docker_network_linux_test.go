package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/sandbox/rig"
)

// outgoing is a world whose shells are containers with a way out; more is laid into
// sandboxing.docker.
func outgoing(t *testing.T, more string) *world {
	t.Helper()
	e := rig.Start(t)
	return newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n  file_system: workspace_only\n", fmt.Sprintf(`egress:
  hosts:
    good.test:80: {class: read_only}
    other.test:80: {class: read_only}
    six.test:80: {class: read_only, ipv6: true}
    93.184.216.34:80: {class: read_only}
sandboxing:
  overrides: {terminal: docker}
  docker: {host: %q, image: %q, mount_mode: rw, %s}
`, e.Host, e.Image, more)).init()
}

const bridged = "network_overrides: {terminal: bridge}"

// webs are servers that are there to be reached, or not.
func webs(t *testing.T) *lab.Authority {
	t.Helper()
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "other.test": {{lab.Other}}, "bad.test": {{lab.Other}}, "six.test": {{lab.Public6}}, "inner.test": {{lab.Private}}, "meta.test": {{lab.Metadata}}})
	for _, at := range []string{lab.Public, lab.Other, lab.Private, lab.Metadata, "[" + lab.Public6 + "]"} {
		lab.Web(t, at+":80", nil)
	}
	lab.Web(t, lab.Public+":443", ca)
	return ca
}

func (w *world) reaches(command string, hosts ...string) outcome {
	w.t.Helper()
	return w.call("shell_command", map[string]any{"command": command, "hosts": hosts})
}

// A container reaches the hosts of its call and no others, by the same broker as any box,
// and what it did is in the log of that call.
func TestContainerReachesHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := outgoing(t, bridged)
	const told = "[not let out: bad.test: host_not_allowed (bad.test in hosts, or in reads to read only, would ask for port 443 of it; bad.test:PORT for another)]\n"
	got := "GET good.test at " + lab.Public + ":80\n"
	o := w.reaches("curl -sm 9 http://good.test/; curl -sm 9 http://bad.test/; python3 -c 'import urllib.request as u; print(u.urlopen(\"http://good.test/\").read().decode(), end=\"\")'", "good.test:80")
	if o.code != 0 || o.out != got+got+told {
		t.Fatalf("%+v", o)
	}
	var calls []struct{ ID string }
	w.decode(&calls, "", "invocation", "list", "--json")
	seen, log := map[string]bool{}, w.must("", "egress", "log", "--json")
	for d := json.NewDecoder(strings.NewReader(log)); d.More(); {
		var e struct{ Call, Kind, Host, Verdict string }
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if len(calls) != 1 || e.Call != calls[0].ID {
			t.Errorf("whose is %+v? There are %v", e, calls)
		}
		seen[e.Kind+" "+e.Host+" "+e.Verdict] = true
	}
	for _, want := range []string{"dns good.test allowed", "connect good.test:80 allowed", "dns bad.test host_not_allowed"} {
		if !seen[want] {
			t.Errorf("%q is not in the log: %v", want, log)
		}
	}
	// TLS that is looked into is trusted by what is in the image.
	reads := w.call("shell_command", map[string]any{"command": "curl -sSm 9 https://good.test/; env -i /usr/bin/curl -sSm 9 https://good.test/; python3 -c 'import urllib.request as u; print(u.urlopen(\"https://good.test/\").read().decode(), end=\"\")'", "reads": []string{"good.test"}})
	if got := "GET good.test at " + lab.Public + ":443\n"; reads.code != 0 || reads.out != got+got+got {
		t.Errorf("reads: %+v", reads)
	}
	w.verifies()
}

// What is not TCP to a host of the call gets nowhere: other hosts and addresses, datagrams,
// ICMP, raw sockets, IPv6.
func TestContainerAttacks(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	at := []string{lab.Other + ":7000", lab.Metadata + ":7000", "[" + lab.Public6 + "]:7000", lab.Public + ":7000"}
	outside := lab.Watch(t, at...)
	w := outgoing(t, bridged)
	for _, a := range at { // whoever can get there is heard
		for _, network := range []string{"tcp", "udp"} {
			c, err := net.Dial(network, a)
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("x"))
			c.Close()
		}
	}
	heard := 0
	w.eventually("all of it is heard", func() bool { heard += len(outside.Heard()); return heard == 2*len(at) })
	w.write(filepath.Join(w.ws, "attack.py"), `
import socket
socket.setdefaulttimeout(2)
def tries(what, f):
    try: print(what, f())
    except Exception as e: print(what, type(e).__name__, getattr(e, "errno", None))
def tcp(to, port, family=socket.AF_INET):
    s = socket.socket(family); s.connect((to, port)); s.sendall(b"GET / HTTP/1.0\r\n\r\n"); return s.recv(99)
def udp(to, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.sendto(b"x", (to, port)); return s.recv(9)
def icmp(kind):
    s = socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP); s.sendto(b"\x08\0\xf7\xff\0\0\0\0", ("`+lab.Other+`", 0)); return s.recv(99)
tries("other", lambda: tcp("`+lab.Other+`", 80))
tries("port", lambda: tcp("`+lab.Public+`", 7000))
tries("metadata", lambda: tcp("`+lab.Metadata+`", 80))
tries("private", lambda: tcp("`+lab.Private+`", 80))
tries("six", lambda: tcp("`+lab.Public6+`", 80, socket.AF_INET6))
tries("udp", lambda: udp("`+lab.Public+`", 7000))
tries("udp metadata", lambda: udp("`+lab.Metadata+`", 7000))
tries("udp six", lambda: udp("`+lab.Public6+`", 7000, socket.AF_INET6))
tries("icmp", lambda: icmp(socket.SOCK_DGRAM))
tries("raw icmp", lambda: icmp(socket.SOCK_RAW))
tries("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255))
tries("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
tries("rules", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
tries("names", lambda: socket.gethostbyname("meta.test"))
`)
	o := w.reaches("curl -sSm 9 http://good.test/; python3 attack.py", "good.test:80")
	lines := strings.Split(o.out, "\n")
	if lines[0] != "GET good.test at "+lab.Public+":80" {
		t.Fatalf("the control did not get through: %+v", o)
	}
	reset := "ConnectionResetError 104"
	for i, want := range []string{
		"other " + reset, "port " + reset, "metadata " + reset, "private " + reset, "six OSError 101", "udp TimeoutError None", "udp metadata TimeoutError None", "udp six OSError 101",
		"icmp PermissionError", "raw icmp PermissionError", "raw PermissionError", "packet PermissionError", "rules PermissionError", "names gaierror",
	} {
		if i+1 >= len(lines) || !strings.HasPrefix(lines[i+1], want) {
			t.Errorf("%q is not said: %s", want, o.out)
		}
	}
	if heard := outside.Heard(); len(heard) > 0 {
		t.Errorf("it got to %q", heard)
	}
	log := w.must("", "egress", "log")
	for _, want := range []string{lab.Metadata + ":80", lab.Private + ":80", lab.Other + ":80"} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not in the log:\n%s", want, log)
		}
	}
	// A name that leads to the metadata address is refused, also where the call names it.
	if o := w.agreed("shell_command", map[string]any{"command": "curl -sm 5 http://meta.test/; exit 0", "hosts": []string{"meta.test:80"}}); !strings.Contains(o.out, "[not let out: meta.test: address_not_open") {
		t.Errorf("metadata: %+v", o)
	}
	// IPv6 where the operator says so.
	if o := w.reaches("curl -sSm 9 http://six.test/", "six.test:80"); o.out != "GET six.test at ["+lab.Public6+"]:80\n" {
		t.Errorf("IPv6: %+v", o)
	}
}

// containers are those of this world's daemon.
func (w *world) containers() []box {
	w.t.Helper()
	sum := sha256.Sum256([]byte(w.state()))
	var out []box
	w.engine(&out, "/containers/json?all=1&filters="+url.QueryEscape(`{"label":["writ.deployment=writ-`+hex.EncodeToString(sum[:6])+`"]}`))
	return out
}

type box struct {
	ID     string `json:"Id"`
	Labels map[string]string
}

// engine asks the engine of the tests.
func (w *world) engine(into any, path string, more ...string) {
	w.t.Helper()
	socket := strings.TrimPrefix(rig.Start(w.t).Host, "unix://")
	out, err := exec.Command("curl", append([]string{"-sS", "--unix-socket", socket, "http://engine" + path}, more...)...).Output()
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		w.t.Fatalf("%s: %v %s", path, err, out)
	}
}

func (w *world) sidecar() box {
	w.t.Helper()
	for _, c := range w.containers() {
		if c.Labels["writ.part"] == "sidecar" {
			return c
		}
	}
	w.t.Fatal("there is no sidecar")
	return box{}
}

// Two calls at once have a network each; without its sidecar a container has none; and a
// daemon that is killed leaves neither.
func TestContainerSidecars(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := outgoing(t, bridged)
	_, kill := w.serve()
	start := func(name, host string) *started {
		command := `exec 2>&1; curl -sSm 9 http://` + host + `/; python3 -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 & until curl -so /dev/null http://127.0.0.1:8000/; do sleep 0.1; done; touch ` + name + `; until test -e go; do sleep 0.1; done; curl -sSm 9 http://` + host + `/; kill %1; exit 0`
		return w.starts("call", "shell_command", "command="+command, `hosts=["`+host+`:80"]`)
	}
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(w.ws, name)); return err == nil }
	}
	one, two := start("one", "good.test"), start("two", "other.test")
	w.eventually("both are there", func() bool { return there("one")() && there("two")() }) // each has port 8000
	if n := len(w.containers()); n != 4 {
		t.Errorf("there are %d containers", n)
	}
	w.write(filepath.Join(w.ws, "go"), "")
	for _, c := range []struct {
		s    *started
		want string
	}{{one, "GET good.test at " + lab.Public + ":80\n"}, {two, "GET other.test at " + lab.Other + ":80\n"}} {
		if o := c.s.ends(); o.out != c.want+c.want {
			t.Errorf("%+v", o)
		}
	}
	w.eventually("all are gone", func() bool { return len(w.containers()) == 0 })

	os.Remove(filepath.Join(w.ws, "go"))
	three := start("three", "good.test")
	w.eventually("it is there", there("three"))
	w.engine(nil, "/containers/"+w.sidecar().ID+"/kill", "-X", "POST")
	w.eventually("it is gone", func() bool { return len(w.containers()) == 1 })
	w.write(filepath.Join(w.ws, "go"), "")
	if o := three.ends(); !regexp.MustCompile(`^GET good\.test at 93\.184\.216\.34:80\ncurl: \(\d+\) (Could not resolve host|Resolving timed out)`).MatchString(o.out) {
		t.Errorf("without its sidecar: %+v", o)
	}

	os.Remove(filepath.Join(w.ws, "go"))
	four := start("four", "good.test")
	w.eventually("it is there", there("four"))
	if n := len(w.containers()); n != 2 {
		t.Errorf("there are %d containers", n)
	}
	kill()
	w.eventually("nothing is left", func() bool { return len(w.containers()) == 0 })
	four.ends() // its caller finds no daemon, and starts another
}

// What a sidecar has counted is its last line, when its command has ended. A call waits for
// that as long as the key says: a sidecar that is stopped for three seconds is late for one
// of them and not for twenty; the command fails of neither.
func TestContainerLastLine(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := outgoing(t, bridged)
	w.edit("sandboxing:", "container_log_shipping: {collection_timeout_seconds: 1}\nsandboxing:")
	began, proceed := filepath.Join(w.ws, "began"), filepath.Join(w.ws, "go")
	for _, c := range []struct {
		was, is string
		late    bool
	}{{"seconds: 1}", "seconds: 1}", true}, {"seconds: 1}", "seconds: 20}", false}} {
		w.edit(c.was, c.is)
		w.must("", "config", "reload")
		os.Remove(began)
		os.Remove(proceed)
		s := w.starts("call", "--json", "shell_command", "command=curl -sSm 9 http://good.test/; touch began; until test -e go; do sleep 0.1; done", `hosts=["good.test:80"]`)
		w.eventually("it is there", func() bool { return exists(began) })
		beside := w.sidecar().ID
		w.engine(nil, "/containers/"+beside+"/pause", "-X", "POST")
		w.write(proceed, "")
		if !c.late {
			time.Sleep(3 * time.Second)
			w.engine(nil, "/containers/"+beside+"/unpause", "-X", "POST")
		}
		var r reply
		o := s.ends()
		if err := json.Unmarshal([]byte(o.out), &r); err != nil || o.code != 0 || r.Content != "GET good.test at "+lab.Public+":80\n" {
			t.Fatalf("%s: %v %+v", c.is, err, o)
		}
		logs := *r.Metadata.SidecarLogs
		last, _ := logs[len(logs)-1].(map[string]any)
		connections, _ := last["connections"].(float64)
		bytes, _ := last["bytes"].(float64)
		if (last["msg"] == "over") == c.late || !c.late && (len(logs) != 2 || connections < 1 || bytes < 100) || c.late && len(logs) != 1 {
			t.Errorf("%s: the sidecar said %v", c.is, logs)
		}
		w.eventually("it is logged", func() bool { return w.logged()[r.CallID] != nil })
		if is := w.logged()[r.CallID]; is["writ.sidecar.late"] != fmt.Sprint(c.late) || is["writ.sidecar.lines"] != fmt.Sprint(len(logs)) {
			t.Errorf("%s: the record is %v", c.is, is)
		}
		w.eventually("both are gone", func() bool { return len(w.containers()) == 0 })
	}
}

// What the configuration says of the network of containers holds, and is explained.
func TestContainerNetworkKeys(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := outgoing(t, "network: none")
	const get = "curl -sSm 9 http://good.test/"
	want := "GET good.test at " + lab.Public + ":80\n"
	none := `host "good.test:80" cannot be reached: category terminal runs on docker with network: none; an operator opens it: sandboxing.docker.network_overrides: {terminal: bridge}`
	w.denied(w.reaches(get, "good.test:80"), none)
	w.explains(none, "shell_command", "command=true", `hosts=["good.test:80"]`)
	for _, c := range []struct{ was, is, refused string }{
		{"network: none", "network: bridge", ""},
		{"network: bridge", "network: bridge, network_overrides: {terminal: none}", none},
		{"network: bridge, network_overrides: {terminal: none}", "network: none, network_overrides: {terminal: bridge}", ""},
		{"terminal: bridge}", "terminal: bridge}, allowed_hosts: ['other.test:80']", `host "good.test:80" is not among sandboxing.docker.allowed_hosts`},
		{"['other.test:80']", "['other.test:80', 'good.test:80']", ""},
	} {
		w.edit(c.was, c.is)
		w.must("", "config", "reload")
		if o := w.reaches(get, "good.test:80"); c.refused == "" && o.out != want {
			t.Errorf("%s: %+v", c.is, o)
		} else if c.refused != "" {
			w.denied(o, c.refused)
		}
	}
	const tries = "exec 2>&1; curl -sSm 9 http://93.184.216.34/; curl -sSm 9 http://good.test/; python3 -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 & sleep 1; curl -sm 3 -o /dev/null http://127.0.0.1:8000/ && echo loopback; kill %1; touch done; until test -e go; do sleep 0.1; done; exit 0"
	for _, c := range []struct{ was, is, want, pids, tmpfs string }{
		{"network: none,", "network: none,", "GET 93.184.216.34 at " + lab.Public + ":80\n" + want + "loopback\n", "32", "8388608"},
		{"network: none,", "dns_allowed: false, loopback_allowed: false, sidecar_pids_limit: 16, sidecar_tmpfs_size: 64k,", "GET 93.184.216.34 at " + lab.Public + ":80\ncurl: (6) Could not resolve host: good.test\n", "16", "65536"},
	} {
		w.must("", "serve", "--stop")
		w.daemonGone()
		w.edit(c.was, c.is)
		if c.pids == "32" {
			w.edit("allowed_hosts: ['other.test:80', 'good.test:80']", "allowed_hosts: []")
		}
		os.Remove(filepath.Join(w.ws, "done"))
		os.Remove(filepath.Join(w.ws, "go"))
		s := w.starts("call", "shell_command", "command="+tries, `hosts=["good.test:80","93.184.216.34:80"]`)
		w.eventually("it is there", func() bool { _, err := os.Stat(filepath.Join(w.ws, "done")); return err == nil })
		var is struct {
			HostConfig struct {
				PidsLimit int
				Tmpfs     map[string]string
			}
		}
		w.engine(&is, "/containers/"+w.sidecar().ID+"/json")
		if fmt.Sprint(is.HostConfig.PidsLimit) != c.pids || !strings.Contains(is.HostConfig.Tmpfs["/tmp"], "size="+c.tmpfs+",") {
			t.Errorf("%s: %+v", c.is, is)
		}
		w.write(filepath.Join(w.ws, "go"), "")
		if o := s.ends(); !strings.HasPrefix(o.out, c.want) || strings.Contains(c.want, "loopback") != strings.Contains(o.out, "loopback") {
			t.Errorf("%s: %+v", c.is, o)
		}
	}
}

// A server's program in a container reaches what its operator named, where containers of its
// kind reach anything.
func TestContainerServer(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := outgoing(t, bridged)
	w.edit("{terminal: docker}", "{terminal: docker, mcp: docker}")
	w.edit("level: elevated", "level: elevated\n    allowed: ['@web']")
	w.must("", "config", "reload")
	script := filepath.Join(w.home, "server.py")
	w.write(script, `
import json, sys, urllib.request
def get(host):
    try: return urllib.request.urlopen("http://" + host + "/", timeout=5).read().decode()
    except Exception as e: return type(e).__name__
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
    elif m.get("method") == "tools/list":
        r = {"tools": [{"name": "get", "description": "gets", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    elif m.get("method") == "tools/call":
        r = {"content": [{"type": "text", "text": get("good.test") + get("bad.test")}]}
    elif "id" in m: r = {}
    else: continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`)
	w.run("", "upstream", "add", "web", "--read", script, "--host", "good.test:80", "--read-action", "code:read", "--", "/usr/bin/python3", script)
	if o := w.run("", "upstream", "test", "web"); o.code == 0 || !strings.Contains(o.out+o.err, "category mcp runs on docker with network: none") {
		t.Errorf("with network: none: %+v", o)
	}
	w.edit("{terminal: bridge}", "{terminal: bridge, mcp: bridge}")
	w.must("", "config", "reload")
	w.must("", "upstream", "test", "web")
	w.must(pass+"\n", "upstream", "accept", "web", "--passphrase-stdin")
	if o := w.call("web__get", map[string]any{}); o.code != 0 || o.out != "GET good.test at "+lab.Public+":80\nURLError\n" {
		t.Errorf("%+v", o)
	}
}
