package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// A host that a command only reads from gets nothing but requests that read, also within
// TLS, by every client as it is.
func TestRunReads(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, standard, "")
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}})
	for _, at := range []string{lab.Public, lab.Other} {
		lab.Web(t, at+":443", ca)
		lab.Web(t, at+":80", nil)
	}
	lab.Web(t, lab.Public+":8443", lab.NewAuthority(t)) // whom nobody trusts
	const got, refused = `^GET good\.test at 93\.184\.216\.34:443\n$`, `writ: method_refused: a call that only reads sends GET, HEAD and OPTIONS`
	reads := []string{"--read-host", "good.test"}
	program := w.compiled("get", `package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); return }
	b, _ := io.ReadAll(r.Body)
	fmt.Print(string(b))
}`)
	java := filepath.Join(w.ws, "Get.java")
	w.write(java, `
import java.net.*; import java.net.http.*;
class Get { public static void main(String[] a) throws Exception {
  System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body());
} }`)
	for _, c := range []struct {
		name     string
		flags    []string
		command  []string
		out, err string // regular expressions
	}{
		{"curl", reads, []string{"curl", "-sS", "https://good.test/"}, got, `^$`},
		{"curl by HTTP/1.1", reads, []string{"curl", "-sS", "--http1.1", "https://good.test/"}, got, `^$`},
		{"openssl", reads, []string{"sh", "-c", `printf 'GET / HTTP/1.0\r\nHost: good.test\r\n\r\n' | openssl s_client -quiet -verify_return_error -connect good.test:443 2>/dev/null | tail -1`}, got, `^$`},
		{"Python", reads, []string{"python3", "-c", `import urllib.request; print(urllib.request.urlopen("https://good.test/").read().decode(), end="")`}, got, `^$`},
		{"Node", reads, []string{"node", "-e", `fetch("https://good.test/").then(r => r.text()).then(t => process.stdout.write(t))`}, got, `^$`},
		{"Go", reads, []string{program, "https://good.test/"}, got, `^$`},
		{"Java", reads, []string{"java", java, "https://good.test/"}, got, ``},
		{"git", reads, []string{"git", "ls-remote", "https://good.test/x"}, ``, `not valid: is this a git repository`},
		{"what comes after", reads, []string{"sh", "-c", "curl -sS https://good.test/; curl -sS https://good.test/ | head -c 1; curl -sS https://good.test/ >/dev/null; sleep 0.2; echo; echo after"}, `^GET good\.test at 93\.184\.216\.34:443\nG\nafter\n$`, ``},
		{"what the host knows by itself", reads, []string{"cat", "/etc/hosts"}, `^127\.0\.0\.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n$`, `^$`},
		{"without variables", reads, []string{"env", "-i", "/usr/bin/curl", "-sS", "https://good.test/"}, got, `^$`},
		{"a change", reads, []string{"curl", "-sS", "-d", "x", "https://good.test/"}, refused, `http good\.test:443: method_refused`},
		{"a change by HTTP/1.1", reads, []string{"curl", "-sS", "--http1.1", "-X", "DELETE", "https://good.test/"}, refused, `method_refused`},
		{"the same where it may", []string{"--allow-host", "good.test"}, []string{"curl", "-sS", "-d", "x", "https://good.test/"}, `^POST good\.test at `, `^$`},
		{"a change in a header", reads, []string{"curl", "-sS", "-H", "X-HTTP-Method-Override: DELETE", "https://good.test/"}, `writ: method_refused`, `method_refused`},
		{"an upgrade", reads, []string{"curl", "-sS", "--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "https://good.test/"}, `writ: method_refused`, `method_refused`},
		{"another name within", reads, []string{"curl", "-sS", "-H", "Host: bad.test", "https://good.test/"}, `writ: other_name: the request is for "bad\.test"`, `other_name`},
		{"another host", reads, []string{"curl", "-sS", "https://bad.test/"}, `^$`, `dns bad\.test: host_not_allowed`},
		{"what is not HTTP", []string{"--read-host", "good.test:2222"}, []string{"python3", "-c", `
import socket
s = socket.create_connection(("good.test", 2222), 5); s.sendall(b"\x00\x01\x02\x03")
try: print(len(s.recv(10)))
except OSError as e: print(type(e).__name__)`}, `ConnectionResetError`, `connect good\.test:2222: not_seen`},
		{"one that trusts nobody else", reads, []string{"sh", "-c", "curl -sS --cacert " + ca.File + " https://good.test/"}, `^$`, `not_seen \(the program does not trust this sandbox's authority\)`},
		{"a host that nobody should trust", []string{"--read-host", "good.test:8443"}, []string{"curl", "-sS", "https://good.test:8443/"}, `writ: not_connected: the certificate of the other side is not one to trust`, ``},
		{"both", []string{"--read-host", "good.test", "--allow-host", "bad.test"}, []string{"curl", "-sS", "https://good.test/", "-d", "x", "https://bad.test/"}, `writ: method_refused(?s:.*)POST bad\.test at `, `method_refused`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.command[0]); err != nil && c.name == "Java" {
				need.Lacking(t, "there is no java")
			}
			o := w.confines("", append(append([]string{"--no-caches", "--read", ca.File, "--read", filepath.Dir(program)}, c.flags...), append([]string{"--"}, c.command...)...)...)
			if !regexp.MustCompile(c.out).MatchString(o.out) || !regexp.MustCompile(c.err).MatchString(o.err) {
				t.Errorf("out %q\nwant %s\nerr %q\nwant %s", o.out, c.out, o.err, c.err)
			}
		})
	}
}

// compiled is a Go program, where boxes can have it.
func (w *world) compiled(name, source string) string {
	w.t.Helper()
	dir := filepath.Join(w.home, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(dir, "main.go"), source)
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v %s", err, out)
	}
	return filepath.Join(dir, name)
}

// A call that says it only reads asks nobody, and only reads; unless the operator says that
// talking to the host is more than that.
func TestCallReads(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", "egress:\n  hosts:\n    costly.test: {class: write}\n").init()
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "costly.test": {{lab.Other}}})
	lab.Web(t, lab.Public+":443", ca)
	lab.Web(t, lab.Other+":443", ca)
	call := func(command string, host string) outcome {
		return w.call("shell_command", map[string]any{"command": command, "reads": []string{host}})
	}
	const both = "curl -sSm 5 https://good.test/; curl -sSm 5 -d x https://good.test/"
	if o := call(both, "good.test"); o.code != 0 || o.out != "GET good.test at "+lab.Public+":443\nwrit: method_refused: a call that only reads sends GET, HEAD and OPTIONS\n[not let out: good.test:443: method_refused (only reading gets there; what is named in hosts may do more, unless the operator says that it is read_only)]\n" {
		t.Errorf("%+v", o)
	}
	if o := w.call("code_runner", map[string]any{"language": "python", "reads": []string{"good.test"},
		"code": `import urllib.request; print(urllib.request.urlopen("https://good.test/").read().decode())`}); o.code != 0 || !regexp.MustCompile(`^GET good\.test at `).MatchString(o.out) {
		t.Errorf("%+v", o)
	}
	if o := call("curl -sSm 5 https://costly.test/", "costly.test"); o.code != 4 {
		t.Errorf("nobody was asked: %+v", o)
	}
	if o := w.must("", "egress", "log"); !regexp.MustCompile(`http +good\.test:443 .*method_refused`).MatchString(o) {
		t.Errorf("the log:\n%s", o)
	}
	// What runs in the background is told of with its output.
	job := regexp.MustCompile(`job_[a-z0-9]+`).FindString(w.must("", "call", "shell_command", "command=curl -sm 5 https://other.test/", "background:=true", `reads:=["good.test"]`))
	w.eventually("the job says what it was not let out to", func() bool {
		o := w.run("", "call", "shell_job", "do=output", "job="+job)
		return strings.Contains(o.out, "[not let out: other.test: host_not_allowed (other.test in hosts, or in reads to read only, would ask for port 443 of it; other.test:PORT for another)]")
	})
	if o := w.must("", "explain", "shell_command", "--agent", "coder", "command=true", `reads:=["good.test"]`); !regexp.MustCompile(`can use +the system's programs, its libraries(?s:.*)only to read: good\.test:443(?s:.*)can execute +any program it can read`).MatchString(o) {
		t.Errorf("explain:\n%s", o)
	}
}
