package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
)

// serveWith runs the daemon in the foreground, with more in its environment.
func (w *world) serveWith(env ...string) (addr string, said *heard) {
	w.t.Helper()
	said = &heard{}
	cmd := exec.Command(program, "serve")
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(w.env(), env...), "/", said, said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	waitFor(w.t, func() bool {
		_, rest, _ := strings.Cut(said.String(), "http://")
		line, _, whole := strings.Cut(rest, "\n")
		addr = line
		return whole
	})
	return addr, said
}

// I7: the value of a secret is in a request to the server that it is for, and nowhere
// else: not in a result, an answer of the API, a log, the ledger, a file of the store, or
// a box that runs meanwhile. Each place has something in it that is found there.
func TestCanary(t *testing.T) {
	e := newEcho(t)
	w := newWorld(t, free+"overrides: {terminal: full}\n", "")
	file := filepath.Join(w.home, "canary")
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(w.config)
	text := string(b) + fmt.Sprintf(`connections:
  env: {base_url: %[1]q, methods: [GET, POST], auth: {type: bearer, secret: "env:CANARY"}}
  file: {base_url: %[1]q, auth: {type: bearer, secret: "file:%[2]s"}}
  store: {base_url: %[1]q, auth: {type: bearer, secret: "store:canary"}}
  basic: {base_url: %[1]q, auth: {type: basic, user: me, secret: "store:canary"}}
  dead: {base_url: "http://127.0.0.1:1", auth: {type: bearer, secret: "store:canary"}}
  short: {base_url: %[1]q, auth: {type: bearer, secret: "env:SHORT"}}
`, e.URL, file)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, said := w.serveWith("CANARY="+canary, "SHORT=x")
	w.init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	found := map[string]string{} // by place, what is there
	look := func(place, text, has string) {
		t.Helper()
		found[place] = text
		if !strings.Contains(text, has) {
			t.Errorf("%s: %q is not there, so nothing is proven:\n%.2000s", place, has, text)
		}
	}
	box := exec.Command(program, "call", "shell_command", "command=sleep 77.125; true")
	box.Env, box.Stderr = w.env(), said
	if err := box.Start(); err != nil {
		t.Fatal(err)
	}
	defer box.Wait()
	defer box.Process.Kill()
	var pids []string
	waitFor(t, func() bool { pids = sleeping("77.125"); return len(pids) > 0 })
	for _, name := range []string{"env", "file", "store"} {
		o := w.run("", "call", "external_api", "connection="+name, "path=/v1/"+name, "--json")
		look("result over "+name, o.out+o.err, "/v1/"+name)
		if got := e.last(t).Header.Get("Authorization"); got != "Bearer "+canary {
			t.Errorf("%s: the server got %q", name, got)
		}
	}
	o := w.api(map[string]any{"connection": "basic", "path": "/v1/basic"})
	look("result over basic", o.out+o.err, "/v1/basic")
	if _, got, _ := e.last(t).BasicAuth(); got != canary {
		t.Errorf("basic: the server got %q", got)
	}
	o = w.api(map[string]any{"connection": "dead", "path": "/v1/dead"})
	look("error of a server that is not there", o.out+o.err, "not_connected")
	o = w.api(map[string]any{"connection": "short", "path": "/v1/short"})
	look("error of a secret that cannot be used", o.out+o.err, "writ connection test short")
	if o := w.api(map[string]any{"connection": "env", "method": "POST", "path": "/v1/post", "body": "x"}); o.code != cli.ExitPending {
		t.Fatalf("%+v", o)
	}
	id := w.pending()
	look("approval", w.must("", "approval", "show", id)+w.must("", "approval", "show", id, "--json"), "env:CANARY")
	w.approves(id)
	waitFor(t, func() bool { return e.last(t).Method == "POST" }) // with nobody waiting, so its outcome is kept
	look("API", w.post(addr, `{"tool":"external_api","args":{"connection":"env","path":"/v1/http"}}`), "/v1/http")
	for _, args := range [][]string{
		{"connection", "list", "--json"}, {"connection", "show", "store"}, {"connection", "test", "store"}, {"config", "show", "--effective"},
		{"invocation", "show", id}, {"invocation", "show", id, "--json"}, {"egress", "log", "--limit", "1000", "--json"}, {"ledger", "export"},
	} {
		has := map[string]string{"egress": strings.TrimPrefix(e.URL, "http://"), "ledger": `"secret.set"`, "invocation": "external_api"}[args[0]]
		if args[0] == "connection" || args[0] == "config" {
			has = "store:canary"
		}
		look(strings.Join(args, " "), w.must("", args...), has)
	}
	look("secret list", w.must("", "secret", "list", "--json"), "canary")
	look("secret check", w.must("", "secret", "check", "file:"+file), "8 to 31 bytes")
	for _, pid := range pids {
		look("environment of box process "+pid, readAll("/proc/"+pid+"/environ"), "PATH=")
		look("memory of box process "+pid, memory(t, pid), "77.125")
	}
	box.Process.Kill() // or it would start the daemon again
	w.must("", "serve", "--stop")
	look("log", said.String(), "http://"+addr)
	w.daemonGone()
	for path, text := range files(t, w.state()) {
		found["file "+path] = text
	}
	look("database", found["file "+w.state("writ.db")], "SQLite format 3")
	for place, text := range found {
		if form := spelled64(text); form != "" {
			t.Errorf("%s has it, as %q", place, form)
		}
	}
	if n := len(found); n < 25 {
		t.Errorf("only %d places were looked at", n)
	}
}

// spelled64 is leaks, and the whole credential of basic.
func spelled64(text string) string {
	if pair := base64.StdEncoding.EncodeToString([]byte("me:" + canary)); strings.Contains(text, pair) {
		return pair
	}
	return leaks(text)
}

// sleeping are the processes that sleep so long.
func sleeping(word string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		if b, _ := os.ReadFile(p); strings.HasPrefix(string(b), "sleep\x00"+word) {
			out = append(out, strings.Split(p, "/")[2])
		}
	}
	return out
}

func readAll(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// memory is everything that a process has in memory, as a core dump would have it.
func memory(t *testing.T, pid string) string {
	t.Helper()
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	var b strings.Builder
	for line := range strings.Lines(readAll("/proc/" + pid + "/maps")) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n == 3 && mode[0] == 'r' {
			io.Copy(&b, io.NewSectionReader(mem, from, to-from)) // of some, such as vvar, nothing can be read
		}
	}
	return b.String()
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out[p] = readAll(p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// post makes a call over HTTP and is given the whole answer, headers too.
func (w *world) post(addr, body string) string {
	w.t.Helper()
	req, err := http.NewRequest("POST", "http://"+addr+"/v1/calls", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return fmt.Sprint(res.Status, res.Header, string(b))
}
