package main

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// forge is a server of repositories, in a lab.
type forge struct {
	t    *testing.T
	root string // of what it serves
	work string // where commits are made for it
}

// newForge starts git's own server behind https at two addresses that look public and a
// private one. Below /elsewhere/ it sends whoever asks on to another host.
func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{t: t, root: t.TempDir(), work: t.TempDir()}
	backend := &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "HOME=/nonexistent"},
		InheritEnv: []string{"PATH"},
	}
	ca := lab.NewAuthority(t)
	lab.Trust(t, ca)
	for _, at := range []string{lab.Public, lab.Other, lab.Private} {
		lab.Serve(t, at+":443", ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path, ok := strings.CutPrefix(r.URL.Path, "/elsewhere"); ok {
				http.Redirect(w, r, "https://other.test"+path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				return
			}
			backend.ServeHTTP(w, r)
		}))
	}
	return f
}

// git runs git where commits are made, as somebody who trusts what is there.
func (f *forge) git(dir string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=somebody", "-c", "user.email=s@example.test", "-c", "protocol.file.allow=always", "-c", "safe.directory=*"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// repository makes one of files, by name, and serves it.
func (f *forge) repository(name string, files map[string]string) {
	f.t.Helper()
	dir := filepath.Join(f.work, name)
	f.git(f.work, "init", "-q", "-b", "main", dir)
	f.commit(name, files)
	f.git(f.work, "clone", "-q", "--bare", dir, filepath.Join(f.root, name+".git"))
	f.git(filepath.Join(f.root, name+".git"), "config", "http.receivepack", "true")
}

func (f *forge) commit(name string, files map[string]string) {
	f.t.Helper()
	dir := filepath.Join(f.work, name)
	for file, text := range files {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if to, link := strings.CutPrefix(text, "-> "); link {
			if err := os.Symlink(to, at); err != nil {
				f.t.Fatal(err)
			}
		} else if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git(dir, "add", "-A", "-f")
	f.git(dir, "commit", "-q", "-m", "commit of "+name)
}

// agreed calls a tool that asks a person, who agrees.
func (w *world) agreed(tool string, args map[string]any) outcome {
	w.t.Helper()
	if o := w.call(tool, args); o.code != 4 {
		w.t.Fatalf("nobody was asked: %+v", o)
	}
	w.approves(w.pending())
	return w.call(tool, args)
}

// inWorkspace is a file of the workspace; empty: there is none.
func (w *world) inWorkspace(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.ws, name))
	return string(b)
}

const gitAgent = "level: elevated\nautonomy: full\n"

// A repository is cloned, fetched and pushed to over https; where the server sends git on
// to, and what has an address that is not public, is not reached.
func TestGitOverHTTPS(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}, "inner.test": {{lab.Private}}, "hidden.test": {{lab.Private}}, "cloud.test": {{lab.Metadata}}})
	f.repository("plain", map[string]string{"README": "hello\n"})
	w := newWorld(t, gitAgent, `egress:
  hosts:
    forge.test: {class: read_only}
    inner.test: {class: read_only}
    hidden.test: {class: read_only}
    cloud.test: {class: read_only}
tools:
  git_clone: {hostname_allowlist: [inner.test, cloud.test]}
`).init()
	clone := func(url string, more ...any) outcome {
		args := map[string]any{"url": url}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return w.call("git_clone", args)
	}

	// Of a host that counts as read, without a person.
	if o := clone("https://forge.test/plain.git"); o.code != 0 || w.inWorkspace("plain/README") != "hello\n" {
		t.Fatalf("%+v", o)
	}
	if c := w.inWorkspace("plain/.git/config"); !strings.Contains(c, "url = https://forge.test/plain.git\n") {
		t.Errorf("the clone does not remember where it is from:\n%s", c)
	}
	if o := clone("https://forge.test/plain.git"); o.code == 0 || !strings.Contains(o.out, "already exists") {
		t.Errorf("twice: %+v", o)
	}
	if o := clone("https://forge.test/none.git"); o.code == 0 || !strings.Contains(o.out, "not found") {
		t.Errorf("what is not there: %+v", o)
	}
	// Of another one a person is asked, and told where it goes.
	if o := clone("https://other.test/plain.git", "directory", "asked"); o.code != 4 {
		t.Errorf("nobody was asked: %+v", o)
	}
	id := w.pending()
	if o := w.must("", "approval", "show", id); !strings.Contains(o, "other.test:443") {
		t.Errorf("the person is not told where it goes:\n%s", o)
	}
	w.approves(id)
	if o := clone("https://other.test/plain.git", "directory", "asked"); o.code != 0 || w.inWorkspace("asked/README") != "hello\n" {
		t.Errorf("agreed: %+v", o)
	}
	// Where a server sends git on to, nobody goes.
	if o := clone("https://forge.test/elsewhere/plain.git", "directory", "sent"); o.code == 0 || !strings.Contains(o.out, "301") || w.inWorkspace("sent/README") != "" {
		t.Errorf("sent on: %+v", o)
	}
	// Addresses that are not public: only of hosts that the operator named, and never the cloud's.
	if o := clone("https://hidden.test/plain.git", "directory", "h"); o.code == 0 || !strings.Contains(o.out, "[not let out: hidden.test: address_not_open, its address is private]") {
		t.Errorf("private: %+v", o)
	}
	if o := clone("https://inner.test/plain.git", "directory", "inner"); o.code != 0 || w.inWorkspace("inner/README") != "hello\n" {
		t.Errorf("private, and on the list: %+v", o)
	}
	if o := clone("https://cloud.test/plain.git", "directory", "c"); o.code == 0 || !strings.Contains(o.out, "its address is metadata") {
		t.Errorf("the cloud's: %+v", o)
	}
	// The list is for git's tools alone.
	if o := w.call("shell_command", map[string]any{"command": "curl -sm 5 https://inner.test/; echo $?", "hosts": []string{"inner.test"}}); o.code != 0 || o.out != "6\n" {
		t.Errorf("by curl: %+v", o)
	}

	f.commit("plain", map[string]string{"NEWS": "more\n"})
	f.git(filepath.Join(f.work, "plain"), "push", "-q", filepath.Join(f.root, "plain.git"), "main")
	want := strings.TrimSpace(f.git(filepath.Join(f.work, "plain"), "rev-parse", "HEAD"))
	if o := w.call("git_fetch", map[string]any{"url": "https://forge.test/plain.git", "directory": "plain"}); o.code != 0 {
		t.Errorf("fetch: %+v", o)
	}
	if got := strings.TrimSpace(f.git(filepath.Join(w.ws, "plain"), "rev-parse", "origin/main")); got != want {
		t.Errorf("fetched %s, want %s", got, want)
	}

	// To push asks a person, also where the host counts as read.
	if o := w.call("git_branch", map[string]any{"do": "create", "name": "topic", "from": "origin/main", "directory": "plain"}); o.code != 0 {
		t.Fatalf("branch: %+v", o)
	}
	w.write(filepath.Join(w.ws, "plain/mine"), "mine\n")
	if o := w.call("git_commit", map[string]any{"message": "mine", "paths": []string{"plain/mine"}, "directory": "plain"}); o.code != 0 {
		t.Fatalf("commit: %+v", o)
	}
	if o := w.agreed("git_push", map[string]any{"url": "https://forge.test/plain.git", "branch": "topic", "to": "agents/topic", "directory": "plain"}); o.code != 0 {
		t.Errorf("push: %+v", o)
	}
	if o := f.git(filepath.Join(f.root, "plain.git"), "log", "-1", "--format=%an %ae %s", "agents/topic"); o != "coder coder@writ.invalid mine\n" {
		t.Errorf("what was pushed is %q", o)
	}
	w.verifies()
}

// What is no URL of a server that git may talk to is refused before anything runs, with a
// reason that repeats no password.
func TestGitURLs(t *testing.T) {
	w := newWorld(t, gitAgent, "").init()
	for url, want := range map[string]string{
		"ext::sh -c touch% /tmp/x":           "is not that of a git server",
		"file:///etc":                        "is neither https nor ssh",
		"/etc":                               "is not that of a git server",
		"http://forge.test/x":                "is http",
		"git://forge.test/x":                 "is neither https nor ssh",
		"--upload-pack=touch /tmp/x":         "begins with a hyphen",
		"ssh://-oProxyCommand=touch/x":       `has '='`,
		"-oProxyCommand=x:y":                 "begins with a hyphen",
		"ssh://-oProxyCommand@forge.test/x":  "has a user that is no plain name",
		"git@-oProxyCommand:x":               "starts or ends with a hyphen",
		"https://alice:hunter2@forge.test/x": "has user information before the host",
		"ssh://alice:hunter2@forge.test/x":   "has a user that is no plain name, or a password",
		"https://forge.test/x?hunter2":       "there is no query",
		"https://127.0.0.1:x/y":              "port",
		"https://0x7f.1/y":                   "ends in a number",
		"https://forge.test/x/../y":          "has . or ..",
		"https://forge.test":                 "names no repository",
		"https://forge.test/x\ny":            "other characters",
		"https://evil.test\\@forge.test/x":   "user information",
		"https://forge.test:443@evil.test/x": "user information",
		"ssh://forge.test/x'$(touch)":        "other characters",
		"forge.test:-x":                      "names no repository",
	} {
		for _, tool := range []string{"git_clone", "git_fetch"} {
			o := w.call(tool, map[string]any{"url": url})
			if o.code != 3 || !strings.Contains(o.err, want) || strings.Contains(o.err, "hunter2") {
				t.Errorf("%s %q: %+v, want %q", tool, url, o, want)
			}
		}
	}
	if o := w.must("", "ledger", "tail", "-n", "1000", "--json"); strings.Contains(o, "hunter2") {
		t.Error("the ledger has the password")
	}
}
