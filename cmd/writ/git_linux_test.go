package main

import (
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// forge is a server of repositories, in a lab.
type forge struct {
	t    *testing.T
	root string           // of what it serves
	work string           // where commits are made for it
	door http.HandlerFunc // answers before the server does, if it writes something; nil: nobody does
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
	ca.Trusted(t)
	for _, at := range []string{lab.Public, lab.Other, lab.Private} {
		lab.Serve(t, at+":443", ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path, ok := strings.CutPrefix(r.URL.Path, "/elsewhere"); ok {
				http.Redirect(w, r, "https://other.test"+path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				return
			}
			before := &answered{ResponseWriter: w}
			if f.door != nil {
				f.door(before, r)
			}
			if !before.wrote {
				backend.ServeHTTP(w, r)
			}
		}))
	}
	return f
}

// answered is an answer of which is known whether there is one.
type answered struct {
	http.ResponseWriter
	wrote bool
}

func (a *answered) WriteHeader(status int) { a.wrote = true; a.ResponseWriter.WriteHeader(status) }
func (a *answered) Write(b []byte) (int, error) {
	a.wrote = true
	return a.ResponseWriter.Write(b)
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
	if o := clone("https://hidden.test/plain.git", "directory", "h"); o.code == 0 || !strings.Contains(o.out, `[not let out: hidden.test: address_not_open, its address is private (an operator who means it says the range in egress.hosts."hidden.test:443".ranges)]`) {
		t.Errorf("private: %+v", o)
	}
	if o := clone("https://inner.test/plain.git", "directory", "inner"); o.code != 0 || w.inWorkspace("inner/README") != "hello\n" {
		t.Errorf("private, and on the list: %+v", o)
	}
	if o := clone("https://cloud.test/plain.git", "directory", "c"); o.code == 0 || !strings.Contains(o.out, "its address is metadata") {
		t.Errorf("the cloud's: %+v", o)
	}
	// The list is for git's tools alone.
	if o := w.call("shell_command", map[string]any{"command": "curl -sm 5 https://inner.test/; echo $?", "hosts": []string{"inner.test"}}); o.code != 0 || o.out != "6\n[not let out: inner.test: address_not_open, its address is private (an operator who means it says the range in egress.hosts.\"inner.test:443\".ranges)]\n" {
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
	// A repository that has a remote whose name is the URL leads nowhere else.
	f.git(f.root, "clone", "-q", "--bare", filepath.Join(f.root, "plain.git"), "stolen.git")
	f.git(filepath.Join(f.root, "stolen.git"), "config", "http.receivepack", "true")
	f.git(filepath.Join(w.ws, "plain"), "config", "remote.https://forge.test/plain.git.url", "https://forge.test/stolen.git")
	if o := w.agreed("git_push", map[string]any{"url": "https://forge.test/plain.git", "branch": "topic", "to": "again", "directory": "plain"}); o.code != 0 || !strings.Contains(o.out, "To https://forge.test/plain.git") {
		t.Errorf("push: %+v", o)
	}
	if o := w.call("git_fetch", map[string]any{"url": "https://forge.test/plain.git", "directory": "plain"}); o.code != 0 || strings.Contains(o.out, "stolen") {
		t.Errorf("fetch: %+v", o)
	}
	w.verifies()
}

// What is no URL of a server that git may talk to is refused before anything runs, with a
// reason that repeats no password.
func TestGitURLs(t *testing.T) {
	t.Parallel()
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
		"https://forge.test/%2e%2e/x":        "has %2e in its path",
		"https://forge.test/y%2Fx":           "has %2F in its path",
		"https://forge.test/%78":             "has %78 in its path",
		"https://forge.test/x%0a":            "has %0a in its path",
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

// sshd starts a server of ssh at an address, as which programs of git run for whoever has
// the key. It gives files of that key and of what is to be known of the server.
func (f *forge) sshd(at, name string) (key, known string) {
	f.t.Helper()
	need.Programs(f.t, "sshd", "ssh-keygen")
	dir := f.t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	file := func(n string) string { return filepath.Join(dir, n) }
	for _, k := range []string{"host", "key", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(k)).CombinedOutput(); err != nil {
			f.t.Fatalf("%v %s", err, out)
		}
	}
	text := func(n, s string) {
		if err := os.WriteFile(file(n), []byte(s), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	public := func(n string) string {
		b, err := os.ReadFile(file(n + ".pub"))
		if err != nil {
			f.t.Fatal(err)
		}
		return string(b)
	}
	text("authorized", public("key"))
	text("known", name+" "+public("host"))
	text("wrong", name+" "+public("other"))
	text("config", "ListenAddress "+at+"\nHostKey "+file("host")+"\nAuthorizedKeysFile "+file("authorized")+
		"\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv GIT_PROTOCOL\nLogLevel ERROR\n")
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", file("config"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 100 {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return file("key"), file("known")
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatal("sshd does not listen")
	return "", ""
}

// By ssh the daemon signs in, at servers whose keys are known, and what the box has is
// the one repository that was decided about.
func TestGitOverSSH(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}})
	f.repository("plain", map[string]string{"README": "hello\n"})
	key, known := f.sshd(lab.Public+":22", "forge.test")
	w := newWorld(t, gitAgent, `egress:
  hosts:
    forge.test:22: {class: read_only}
    other.test:22: {class: read_only}
  ssh:
    known_hosts: `+known+`
    hosts:
      forge.test: {user: root, key: "file:`+key+`"}
`).init()
	at := func(path string) string { return "ssh://root@forge.test" + filepath.Join(f.root, path) }
	clone := func(url, dir string) outcome {
		return w.call("git_clone", map[string]any{"url": url, "directory": dir})
	}
	if o := clone(at("plain.git"), "plain"); o.code != 0 || w.inWorkspace("plain/README") != "hello\n" {
		t.Fatalf("%+v\n%s", o, w.must("", "egress", "log"))
	}
	if c := w.inWorkspace("plain/.git/config"); !strings.Contains(c, "url = "+at("plain.git")+"\n") {
		t.Errorf("the clone does not remember where it is from:\n%s", c)
	}
	// The same key, out of the store.
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	w.edit(`key: "file:`+key+`"`, `key: "store:deploy"`)
	w.must("", "config", "reload")
	if o := clone(at("plain.git"), "early"); o.code == 0 || !strings.Contains(o.out, "the key for forge.test:22 is not to be had; an operator runs 'writ secret check'") {
		t.Errorf("a key that is not there: %+v", o)
	}
	if o := w.by("alice", []string{string(text)}, "secret", "set", "deploy"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	if o := clone(at("plain.git"), "stored"); o.code != 0 || w.inWorkspace("stored/README") != "hello\n" {
		t.Errorf("by a key in the store: %+v", o)
	}
	if o := w.run("", "secret", "remove", "deploy"); o.code != 0 || !strings.Contains(o.err, "without it these do not work: egress.ssh.hosts forge.test:22;") {
		t.Errorf("remove: %+v", o)
	}
	w.edit(`key: "store:deploy"`, `key: "file:`+key+`"`)
	w.must("", "config", "reload")
	if o := clone("root@forge.test:"+filepath.Join(f.root, "plain.git"), "short"); o.code != 0 || w.inWorkspace("short/README") != "hello\n" {
		t.Errorf("short: %+v", o)
	}
	if o := clone(at("none.git"), "none"); o.code == 0 || !strings.Contains(o.out, "does not appear to be a git repository") {
		t.Errorf("what is not there: %+v", o)
	}
	if o := clone(strings.Replace(at("plain.git"), "root@", "daemon@", 1), "d"); o.code == 0 || !strings.Contains(o.out, "there is no key for daemon@forge.test:22") {
		t.Errorf("as somebody else: %+v", o)
	}
	if o := clone(strings.Replace(at("plain.git"), "forge.", "other.", 1), "o"); o.code == 0 || strings.Contains(o.out, "hello") {
		t.Errorf("another server: %+v", o)
	}
	if o := w.call("git_fetch", map[string]any{"url": at("plain.git"), "directory": "plain", "branch": "main"}); o.code != 0 {
		t.Errorf("fetch: %+v", o)
	}
	w.write(filepath.Join(w.ws, "plain/mine"), "mine\n")
	if o := w.call("git_commit", map[string]any{"message": "mine", "paths": []string{"plain/mine"}, "directory": "plain"}); o.code != 0 {
		t.Fatalf("commit: %+v", o)
	}
	if o := w.agreed("git_push", map[string]any{"url": at("plain.git"), "branch": "main", "to": "topic", "directory": "plain"}); o.code != 0 {
		t.Errorf("push: %+v", o)
	}
	if o := f.git(filepath.Join(f.root, "plain.git"), "log", "-1", "--format=%s", "topic"); o != "mine\n" {
		t.Errorf("what was pushed is %q", o)
	}
	// The key is out of every box's sight, and a shell has nothing of what git's tools have.
	if o := w.shell("cat " + key + " " + known + "; ls -d /run/sshd /tmp/ssh-*; echo over"); strings.Contains(o.out, "PRIVATE") || !strings.Contains(o.out, "over") {
		t.Errorf("%+v", o)
	}
	if o := w.call("shell_command", map[string]any{"command": "exec 3<>/dev/tcp/forge.test/22; timeout 2 head -c 4 <&3", "hosts": []string{"forge.test:22"}}); o.out != "SSH-[exit status 124]\n" && !strings.HasPrefix(o.out, "SSH-") {
		t.Errorf("to others it is a host like any other: %+v", o)
	}
	// A server that shows another key than is known is not talked to.
	text, err = os.ReadFile(strings.TrimSuffix(known, "known") + "wrong")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(known, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := clone(at("plain.git"), "wrong"); o.code == 0 || !strings.Contains(o.out, "shows another key than is known of it") {
		t.Errorf("another key: %+v", o)
	}
	if err := os.WriteFile(known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := clone(at("plain.git"), "unknown"); o.code == 0 || !strings.Contains(o.out, "the key of forge.test:22 is not known; an operator compares") {
		t.Errorf("no key: %+v", o)
	}
	w.verifies()
}

// A hostile repository runs nothing: not when it is cloned, and not when it is looked at
// with a configuration that somebody got into it. The same configuration runs what it
// says for a git that takes it as it is.
func TestGitRunsNothing(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}})
	f.repository("part", map[string]string{"inside": "a part\n"})
	f.repository("hostile", map[string]string{
		".gitattributes": "* filter=lfs diff=evil merge=evil\n*.x filter=evil\n", ".lfsconfig": "[lfs]\n\turl = https://other.test/lfs\n\tcustomtransfer.evil.path = touch ran\n",
		".gitmodules":         "[submodule \"part\"]\n\tpath = part\n\turl = https://other.test/part.git\n\tupdate = !touch ran\n",
		"hooks/post-checkout": "#!/bin/sh\ntouch ran\n", "a.x": "plain\n", "out": "-> /etc", "up": "-> ../..", ".vscode/tasks.json": "{}\n", "dir/.envrc": "touch ran\n",
	})
	dir := filepath.Join(f.work, "hostile")
	f.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(f.git(filepath.Join(f.work, "part"), "rev-parse", "HEAD"))+",part")
	f.git(dir, "commit", "-q", "-m", "a part")
	f.git(dir, "push", "-q", filepath.Join(f.root, "hostile.git"), "main")
	w := newWorld(t, gitAgent, "egress:\n  hosts:\n    forge.test: {class: read_only}\n").init()
	o := w.call("git_clone", map[string]any{"url": "https://forge.test/hostile.git", "directory": "h"})
	if o.code != 0 || w.inWorkspace("h/a.x") != "plain\n" {
		t.Fatalf("%+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "h/part/inside")); err == nil {
		t.Error("the submodule was fetched")
	}
	for _, name := range []string{".gitattributes", ".gitmodules", ".vscode/tasks.json", "dir/.envrc"} {
		if w.inWorkspace("h/"+name) != "" || !strings.Contains(o.out, "[undone, since it is protected: "+filepath.Join(w.ws, "h", strings.Split(name, "/tasks")[0])) {
			t.Errorf("%s is left for other programs to obey:\n%s", name, o.out)
		}
	}
	filepath.WalkDir(w.project, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "ran" {
			t.Errorf("something ran, and left %s", path)
		}
		return nil
	})
	if log := w.must("", "egress", "log"); strings.Contains(log, "other.test") {
		t.Errorf("it went to another host:\n%s", log)
	}

	// Somebody outside put this into a repository's configuration.
	f.git(w.ws, "init", "-q", "-b", "main", "bad")
	bad := filepath.Join(w.ws, "bad")
	mark := filepath.Join(w.ws, "marks")
	run := func(name string) string { return "touch " + filepath.Join(mark, name) + ";cat" }
	for key, value := range map[string]string{
		"core.fsmonitor": run("fsmonitor"), "core.hooksPath": filepath.Join(bad, "hooks"), "core.pager": run("pager"), "core.editor": run("editor"), "core.sshCommand": run("ssh"),
		"diff.external": run("external"), "diff.evil.textconv": run("textconv"), "diff.evil.command": run("command"), "filter.evil.clean": run("clean"), "filter.evil.smudge": run("smudge"),
		"filter.evil.process": run("process"), "credential.helper": "!" + run("helper"), "gpg.program": run("gpg"), "commit.gpgSign": "true", "core.askPass": run("askpass"),
		"protocol.ext.allow": "always", "url.ext::" + run("ext") + ".insteadOf": "https://forge.test/", "core.alternateRefsCommand": run("refs"),
	} {
		f.git(bad, "config", key, value)
	}
	w.own(bad)
	for _, d := range []string{mark, filepath.Join(bad, "hooks")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		w.own(d)
	}
	for _, h := range []string{"pre-commit", "post-commit", "post-checkout", "commit-msg", "prepare-commit-msg", "pre-push", "reference-transaction"} {
		at := filepath.Join(bad, "hooks", h)
		w.write(at, "#!/bin/sh\ntouch "+filepath.Join(mark, h)+"\n")
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.write(filepath.Join(bad, ".gitattributes"), "*.x filter=evil diff=evil\n")
	w.write(filepath.Join(bad, "a.x"), "one\n")
	if out, err := exec.Command("chown", "-R", "nobody:nogroup", bad).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	marks := func() string {
		list, err := os.ReadDir(mark)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	in := func(more map[string]any) map[string]any {
		more["directory"] = "bad"
		return more
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		ok   bool
	}{
		{"git_status", map[string]any{}, true}, {"git_diff", map[string]any{"staged": true}, true}, {"git_branch", map[string]any{"do": "list"}, true},
		{"git_commit", map[string]any{"message": "one", "paths": []string{"bad/a.x"}}, true}, {"git_fetch", map[string]any{"url": "https://forge.test/part.git"}, true},
		{"git_log", map[string]any{"patch": true}, true}, {"git_branch", map[string]any{"do": "create", "name": "topic"}, true},
	} {
		o := w.call(c.tool, in(c.args))
		if got := marks(); got != "" || (o.code == 0) != c.ok {
			t.Errorf("%s: %s ran; %+v", c.tool, got, o)
		}
	}
	// The probe is alive: in the same box, with a shell, git does as it is told.
	w.shell("cd bad && git status; echo more >>a.x; git add a.x; git -c user.name=x -c user.email=x -c commit.gpgSign=false commit -m two")
	if got := marks(); !strings.Contains(got, "fsmonitor") || !strings.Contains(got, "process") || !strings.Contains(got, "pre-commit") {
		t.Errorf("a git that takes the configuration ran only %q", got)
	}
}

// Within one call a server's name is asked about once, and leads where it led at first,
// unless the operator lets it vary.
func TestGitKeepsAddresses(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	names := lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}})
	f.repository("plain", map[string]string{"README": "hello\n"})
	f.git(filepath.Join(f.root, "plain.git"), "config", "uploadpack.allowFilter", "true")
	w := newWorld(t, gitAgent, "egress:\n  hosts: {forge.test: {class: read_only}}\n").init()
	// Without the content of files at first, git goes to the server twice, in two programs.
	asked := func(dir string) int {
		before := len(names.Asked())
		o := w.call("git_clone", map[string]any{"url": "https://forge.test/plain.git", "directory": dir, "blobless": true})
		if o.code != 0 || w.inWorkspace(dir+"/README") != "hello\n" {
			t.Fatalf("%+v", o)
		}
		return len(names.Asked()) - before
	}
	if n := asked("one"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	b, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config, append(b, "tools:\n  git_clone: {dns_rebinding_mitigation: false}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := w.must("", "config", "reload"); !strings.Contains(o, "may lead to another address") {
		t.Errorf("nobody is told of it: %s", o)
	}
	if n := asked("two"); n < 2 {
		t.Errorf("asked %d times, though it may vary", n)
	}
}
