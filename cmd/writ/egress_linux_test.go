package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// A call names the hosts that it has to reach. A person agrees to those, it reaches them
// and no others, and what it did is there to be read afterwards.
func TestCallReachesHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", `egress:
  hosts:
    read.test:80: {class: read_only}
    inner.test: {ranges: [10.20.30.0/24]}
    blind.test: {unsafe_unnamed_tls: true}
`).init()
	ca := lab.NewAuthority(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}, "inner.test": {{lab.Private}}, "hidden.test": {{lab.Private}}, "blind.test": {{lab.Other}}, "read.test": {{lab.Other}}})
	for _, at := range []string{lab.Public, lab.Other, lab.Private} {
		lab.Web(t, at+":443", ca)
		lab.Web(t, at+":80", nil)
	}
	call := func(command string, hosts ...string) outcome {
		return w.call("shell_command", map[string]any{"command": command, "hosts": hosts})
	}
	const both = "curl -skm 5 https://good.test/; curl -skm 5 https://bad.test/; exit 0"
	if o := call(both, "good.test"); o.code != 4 {
		t.Fatalf("nobody was asked: %+v", o)
	}
	id := w.pending()
	if o := w.must("", "approval", "show", id); !strings.Contains(o, "good.test:443") {
		t.Errorf("the person is not told where it goes:\n%s", o)
	}
	w.approves(id)
	const told = "[not let out: bad.test: host_not_allowed (bad.test in hosts, or in reads to read only, would ask for port 443 of it; bad.test:PORT for another)]\n"
	if o := call(both, "good.test"); o.code != 0 || o.out != "GET good.test at "+lab.Public+":443\n"+told {
		t.Errorf("approved: %+v", o)
	}
	seen, log := map[string]bool{}, w.must("", "egress", "log", "--call", id, "--json")
	for d := json.NewDecoder(strings.NewReader(log)); d.More(); {
		var e struct{ Call, Kind, Host, Verdict, Rule string }
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Call != id {
			t.Errorf("whose is %+v?", e)
		}
		seen[e.Kind+" "+e.Host+" "+e.Verdict] = true
	}
	for _, want := range []string{"dns good.test allowed", "connect good.test:443 allowed", "dns bad.test host_not_allowed"} {
		if !seen[want] {
			t.Errorf("%q is not in the log: %v", want, log)
		}
	}
	if o := w.must("", "ledger", "show", id); !strings.Contains(o, `"kind": "egress"`) && !strings.Contains(o, `"kind":"egress"`) {
		t.Errorf("the ledger has nothing of it:\n%s", o)
	}

	// A host that only counts as read is reached without a person, by reading alone.
	if o := call("curl -sm 5 http://read.test/; curl -sm 5 -d x http://read.test/; exit 0", "read.test:80"); o.code != 0 || o.out != "GET read.test at "+lab.Other+":80\nwrit: method_refused: a call that only reads sends GET, HEAD and OPTIONS\n[not let out: read.test:80: method_refused (only reading gets there; what is named in hosts may do more, unless the operator says that it is read_only)]\n" {
		t.Errorf("read only by rule: %+v", o)
	}

	// A private address takes a rule that says its range, and TLS without a name one that
	// says so.
	unnamed := "echo | timeout 5 openssl s_client -noservername -connect %s:443 2>/dev/null | grep -c '^-----BEGIN CERT'; exit 0"
	for _, c := range []struct{ command, host, want string }{
		{"curl -skm 5 https://%s/; exit 0", "inner.test", "GET inner.test at " + lab.Private + ":443\n"},
		{"curl -skm 5 https://%s/; exit 0", "hidden.test", "[no output]\n[not let out: hidden.test: address_not_open, its address is private (an operator who means it says the range in egress.hosts.\"hidden.test:443\".ranges)]\n"},
		{unnamed, "blind.test", "1\n"}, {unnamed, "good.test", "0\n[not let out: good.test:443: no_name (use the host's name, not its address)]\n"},
	} {
		command := fmt.Sprintf(c.command, c.host)
		if o := call(command, c.host); o.code != 4 {
			t.Fatalf("%s: nobody was asked: %+v", c.host, o)
		}
		w.approves(w.pending())
		if o := call(command, c.host); o.code != 0 || o.out != c.want {
			t.Errorf("%s: %+v, want %q", c.host, o, c.want)
		}
	}
	w.must("", "ledger", "verify")
}

// What the log says a name needs opens it, pasted as it is: at each port that the call named.
func TestWhatTheLogNeedsIsEnough(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", "egress:\n  hosts:\n    other.test: {class: read_only}\n").init()
	lab.Names(t, map[string][][]string{"inner.test": {{lab.Private}}})
	lab.Web(t, lab.Private+":80", nil)
	lab.Web(t, lab.Private+":8080", nil)
	call := func() outcome {
		return w.agreed("shell_command", map[string]any{"command": "curl -sm 5 http://inner.test/ http://inner.test:8080/; exit 0", "hosts": []string{"inner.test:80", "inner.test:8080"}})
	}
	if o := call(); !strings.Contains(o.out, `(an operator who means it says the range in egress.hosts."inner.test:80".ranges and egress.hosts."inner.test:8080".ranges)`) {
		t.Errorf("whoever called is not told who opens it: %+v", o)
	}
	var row struct{ Rule, Needs string }
	log := w.must("", "egress", "log", "--refused", "--limit", "1", "--json")
	if err := json.Unmarshal([]byte(log), &row); err != nil || row.Rule != "" {
		t.Fatalf("%v %s", err, log)
	}
	added := ""
	for _, m := range regexp.MustCompile(`egress\.hosts\.("[^"]+")\.(ranges: \[[^]]+\])`).FindAllStringSubmatch(row.Needs, -1) {
		added += "    " + m[1] + ": {" + m[2] + "}\n"
	}
	w.edit("  hosts:\n", "  hosts:\n"+added)
	w.must("", "config", "reload")
	if o := call(); o.out != "GET inner.test at "+lab.Private+":80\nGET inner.test:8080 at "+lab.Private+":8080\n" {
		t.Errorf("with %s: %+v", added, o)
	}
}

// A server's program reaches the hosts that its operator named, for as long as it runs.
func TestServerReachesHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nallowed: [\"@web\"]\n", "").init()
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}})
	lab.Web(t, lab.Public+":80", nil)
	lab.Web(t, lab.Other+":80", nil)
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
	w.must("", "upstream", "add", "web", "--read", script, "--host", "good.test:80", "--read-action", "code:read", "--", "/usr/bin/python3", script)
	if o := w.must("", "upstream", "show", "web"); !strings.Contains(o, "reaches good.test:80") {
		t.Errorf("where it goes is not shown:\n%s", o)
	}
	w.must(pass+"\n", "upstream", "accept", "web", "--passphrase-stdin")
	if o := w.call("web__get", map[string]any{}); o.code != 0 || o.out != "GET good.test at "+lab.Public+":80\nURLError\n" {
		t.Errorf("%+v", o)
	}
	w.eventually("what it did is in the log", func() bool {
		o := w.must("", "egress", "log")
		return strings.Contains(o, "good.test") && strings.Contains(o, "bad.test") && strings.Contains(o, "host_not_allowed")
	})
}

// What a person runs beside the daemon is in the same log.
func TestRunIsLogged(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, standard, "").init()
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}})
	lab.Web(t, lab.Public+":80", nil)
	w.confines("", "--no-caches", "--allow-host", "good.test:80", "--", "sh", "-c", "curl -s http://good.test/; curl -s http://bad.test/")
	o := w.must("", "egress", "log", "--agent", "writ run")
	for _, want := range []string{`good.test:80 .* allowed`, `bad.test .* host_not_allowed .* needs bad.test\n`} {
		if !regexp.MustCompile(want).MatchString(o) {
			t.Errorf("%s is not in the log:\n%s", want, o)
		}
	}
	w.must("", "ledger", "verify")
}

// A program does not fill the disk with names that it makes up: what is kept of each is
// bounded.
func TestLongNamesInTheLog(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", "").init()
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}})
	o := w.call("shell_command", map[string]any{"reads": []string{"good.test:80"}, "command": `python3 - <<'X'
import socket
for n in 20, 65000:
  s = socket.create_connection(("198.18.0.1", 1080), 5)
  s.sendall(b"CONNECT " + b"a" * n + b" HTTP/1.1\r\n\r\n")
  print(s.recv(100).split()[1])
X`})
	if o.code != 0 || !strings.HasPrefix(o.out, "b'403'\nb'403'\n") {
		t.Fatalf("inconclusive: %+v", o)
	}
	waitFor(t, func() bool { return strings.Contains(w.must("", "egress", "log", "--json"), `"malformed"`) })
	if log := w.must("", "egress", "log", "--json"); !strings.Contains(log, strings.Repeat("a", 20)+`"`) || !strings.Contains(log, strings.Repeat("a", 200)) || len(log) > 4000 {
		t.Errorf("%d bytes: %.2000s", len(log), log)
	}
}
