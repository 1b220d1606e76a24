package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/egress/lab"
)

// gate is a door that asks for the canary below /team, /team-other and /closed, and
// remembers what came.
type gate struct {
	mu   sync.Mutex
	seen []*http.Request
	hold chan struct{} // closed: a pack is sent at once
}

func (g *gate) answer(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.seen = append(g.seen, r.Clone(r.Context()))
	hold := g.hold
	g.mu.Unlock()
	auth := r.Header.Get("Authorization")
	_, password, _ := r.BasicAuth()
	switch {
	case strings.HasPrefix(r.URL.Path, "/team/page.git/"):
		w.Header().Set("X-Echo", auth)
		http.Error(w, "you sent "+auth+", which is "+password, http.StatusForbidden)
	case strings.HasPrefix(r.URL.Path, "/team/packet.git/"):
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, "001e# service=git-upload-pack\n0000"+packet("ERR you sent "+auth+", which is "+password))
	case r.URL.Path == "/team/dumb.git/info/refs":
		fmt.Fprint(w, strings.Repeat("1", 40)+"\trefs/heads/main\n")
	case strings.HasPrefix(r.URL.Path, "/team/sent.git/"):
		http.Redirect(w, r, "https://other.test/?"+auth, http.StatusMovedPermanently)
	case !strings.HasPrefix(r.URL.Path, "/open") && password != canary:
		w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/team/slow.git/") && r.Method == "POST":
		<-hold
	}
}

func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// came is what came for a path since it was asked last: the credentials, one a request.
func (g *gate) came(host, path string) (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.seen {
		if r.Host == host && strings.HasPrefix(r.URL.Path, path) {
			out = append(out, strings.Join(r.Header.Values("Authorization"), "+"))
		}
	}
	g.seen = nil
	return out
}

// With a connection of type git the daemon adds its credentials to git's requests for the
// repository of a call, where they leave: the box never has them, nothing else gets them.
func TestGitCredentials(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	g := &gate{hold: make(chan struct{})}
	f.door = g.answer
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}})
	for _, dir := range []string{"team", "team-other", "closed", "open"} {
		for _, d := range []string{f.root, f.work} {
			if err := os.MkdirAll(filepath.Join(d, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f.repository(dir+"/app", map[string]string{"README": "private\n"})
	}
	f.repository("team/slow", map[string]string{"README": "slow\n"})
	w := newWorld(t, gitAgent, `  other: {workspace: main}
egress:
  hosts: {forge.test: {class: read_only}, other.test: {class: read_only}}
connections:
  forge: {type: git, base_url: "https://forge.test/team", auth: {type: basic, user: bot, secret: "store:canary"}, paths: ["/app.git", "/[!b]*.git"]}
  wrong: {type: git, base_url: "https://forge.test/closed", paths: ["/wrong*"], auth: {type: bearer, secret: "store:stale"}}
  empty: {type: git, base_url: "https://forge.test/closed", paths: ["/empty*"], auth: {type: bearer, secret: "store:none"}}
  others: {type: git, base_url: "https://forge.test/closed", paths: ["/app*"], auth: {type: basic, user: bot, secret: "store:canary"}, agents: [other]}
  asks: {type: git, base_url: "https://forge.test/open", paths: ["/app*"], sensitive: true, auth: {type: basic, user: bot, secret: "store:canary"}}
`).init()
	for name, value := range map[string]string{"canary": canary, "stale": "stale-0123456789"} {
		if o := w.by("alice", []string{value}, "secret", "set", name); o.code != 0 {
			t.Fatalf("set: %+v", o)
		}
	}
	pair := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:"+canary))
	all := func(o outcome) string { return o.out + o.err }
	clone := func(url, dir string) outcome {
		o := w.call("git_clone", map[string]any{"url": url, "directory": dir})
		if strings.Contains(all(o), canary) || strings.Contains(all(o), pair[6:]) || leaks(all(o)) != "" {
			t.Errorf("%s: the result has the credential: %+v", url, o)
		}
		return o
	}
	only := func(what string, got []string, want string) {
		t.Helper()
		for _, c := range got {
			if c != want {
				t.Errorf("%s: the server got %q, want %q", what, c, want)
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: the server was not asked", what)
		}
	}

	// A private repository is cloned. The same one where no connection is about it is not.
	if o := clone("https://forge.test/team/app.git", "app"); o.code != 0 || w.inWorkspace("app/README") != "private\n" {
		t.Fatalf("%+v\n%s", o, w.must("", "egress", "log"))
	}
	only("covered", g.came("forge.test", "/team/app.git/"), pair)
	for what, url := range map[string]string{
		"another path": "https://forge.test/team-other/app.git", "another host": "https://other.test/team/app.git", "not among the paths": "https://forge.test/team/big.git",
		"another agent's": "https://forge.test/closed/app.git",
	} {
		if o := clone(url, "none"); o.code == 0 || !strings.Contains(o.out, "could not read Username") {
			t.Errorf("%s: %+v", what, o)
		}
		host, path, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
		only(what, g.came(host, "/"+path), "")
	}
	// What the box says of itself counts for nothing, and what it asks for besides is not asked.
	const mine = "Basic bWluZTptaW5l"
	for _, host := range []string{"forge.test", "other.test"} {
		f.git(filepath.Join(w.ws, "app"), "config", "http.https://"+host+"/.extraHeader", "Authorization: "+mine)
	}
	if o := w.call("git_fetch", map[string]any{"url": "https://forge.test/team/app.git", "directory": "app"}); o.code != 0 {
		t.Errorf("fetch: %+v", o)
	}
	only("with one of the box", g.came("forge.test", "/team/app.git/"), pair)
	if o := w.call("git_fetch", map[string]any{"url": "https://other.test/open/app.git", "directory": "app"}); o.code != 0 {
		t.Errorf("fetch: %+v", o)
	}
	only("where no connection is", g.came("other.test", "/open/app.git/"), "") // and the box sends none of its own
	// What is not one of git's two requests for the repository is not made, so neither is what a server has git ask for.
	if o := clone("https://forge.test/team/dumb.git", "none"); o.code == 0 || !strings.Contains(o.out, "[not let out: forge.test:443: method_refused]") {
		t.Errorf("something else: %+v", o)
	}
	if got := g.came("forge.test", ""); len(got) != 1 {
		t.Errorf("asked for more than the first: %q", got)
	}

	// Pushing asks, and whoever answers sees whose credentials it takes.
	w.write(filepath.Join(w.ws, "app/mine"), "mine\n")
	if o := w.call("git_commit", map[string]any{"message": "mine", "paths": []string{"app/mine"}, "directory": "app"}); o.code != 0 {
		t.Fatalf("commit: %+v", o)
	}
	push := map[string]any{"url": "https://forge.test/team/app.git", "branch": "main", "to": "agents/mine", "directory": "app"}
	if o := w.call("git_push", push); o.code != cli.ExitPending {
		t.Fatalf("nobody was asked: %+v", o)
	}
	id := w.pending()
	if o := w.must("", "approval", "show", id); !strings.Contains(o, "forge: https://forge.test/team, auth: user bot with password store:canary") || leaks(o) != "" {
		t.Errorf("the person is told:\n%s", o)
	}
	w.approves(id)
	if o := w.call("git_push", push); o.code != 0 || leaks(all(o)) != "" {
		t.Errorf("push: %+v", o)
	}
	if o := f.git(filepath.Join(f.root, "team/app.git"), "log", "-1", "--format=%an %s", "agents/mine"); o != "coder mine\n" {
		t.Errorf("what was pushed is %q", o)
	}
	only("push", g.came("forge.test", "/team/app.git/"), pair)
	if o := clone("https://forge.test/open/app.git", "asked"); o.code != cli.ExitPending {
		t.Errorf("a sensitive connection asks nobody: %+v", o)
	}

	// What a server sends back has it in no spelling.
	for name, want := range map[string]string{"page": "remote: you sent Basic [secret], which is [secret]", "packet": "remote error: you sent Basic ****", "sent": "301"} {
		if o := clone("https://forge.test/team/"+name+".git", "none"); o.code == 0 || !strings.Contains(o.out, want) {
			t.Errorf("%s: %+v", name, o)
		}
		only(name, g.came("forge.test", "/team/"+name), pair)
	}
	if o := clone("https://forge.test/closed/wrong.git", "none"); o.code == 0 || !strings.Contains(o.out, "the server does not take the credentials of connection wrong; an operator looks with: writ connection test wrong") {
		t.Errorf("a stale one: %+v", o)
	}
	if o := clone("https://forge.test/closed/empty.git", "none"); o.code == 0 || !strings.Contains(o.out, "the credentials of connection empty cannot be had; an operator finds out why with: writ connection test empty") {
		t.Errorf("none: %+v", o)
	}

	// While a clone runs, nothing of it is in the box.
	slow := exec.Command(program, "call", "git_clone", "url=https://forge.test/team/slow.git")
	slow.Env = w.env()
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	waitFor(t, func() bool {
		pids = slices.DeleteFunc(processes("git-remote-https"), func(pid string) bool { // tests beside this one have theirs
			return !strings.Contains(readAll("/proc/"+pid+"/cmdline"), "/team/slow.git")
		})
		return len(pids) > 0 && len(g.came("forge.test", "/team/slow.git/git-upload-pack")) > 0
	})
	for _, pid := range pids {
		mem, env := memory(t, pid), readAll("/proc/"+pid+"/environ")
		if !strings.Contains(mem, "/team/slow.git") || !strings.Contains(env, "PATH=") {
			t.Errorf("process %s has nothing of the clone, so nothing is proven", pid)
		}
		if strings.Contains(mem+env, canary) || strings.Contains(mem+env, pair[6:]) {
			t.Errorf("process %s of the box has the credential", pid)
		}
	}
	close(g.hold)
	if err := slow.Wait(); err != nil || w.inWorkspace("slow/README") != "slow\n" {
		t.Errorf("slow: %v", err)
	}
	for _, args := range [][]string{{"egress", "log", "--limit", "1000", "--json"}, {"ledger", "export"}, {"connection", "list", "--json"}, {"invocation", "show", id, "--json"}} {
		if o := w.must("", args...); leaks(o) != "" || strings.Contains(o, pair[6:]) {
			t.Errorf("%v has the credential", args)
		}
	}
	w.verifies()
}

// processes are those whose program has a name.
func processes(name string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		b, _ := os.ReadFile(p)
		first, _, _ := strings.Cut(string(b), "\x00")
		if filepath.Base(first) == name {
			out = append(out, strings.Split(p, "/")[2])
		}
	}
	return out
}
