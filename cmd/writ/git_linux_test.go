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

// A repository is cloned, fetched and pushed to over https; what the server or the
// repository say besides is not followed.
func TestGitOverHTTPS(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}, "inner.test": {{lab.Private}}})
	f.repository("plain", map[string]string{"README": "hello\n"})
	w := newWorld(t, "level: elevated\nautonomy: full\n", "egress:\n  hosts:\n    forge.test: {class: read_only}\n").init()
	if o := w.call("git_clone", map[string]any{"url": "https://forge.test/plain.git"}); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	if b, err := os.ReadFile(filepath.Join(w.ws, "plain/README")); string(b) != "hello\n" {
		t.Errorf("%q %v", b, err)
	}
}
