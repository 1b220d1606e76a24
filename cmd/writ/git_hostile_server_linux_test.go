package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/egress/lab"
)

// absent is the hash of an object that nobody has.
var absent = strings.Repeat("1", 40)

// advertises answers as git's server does to the first request.
func advertises(w io.Writer, refs func(line func(string) error)) {
	if h, ok := w.(http.ResponseWriter); ok {
		h.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	}
	fmt.Fprint(w, packet("# service=git-upload-pack\n")+"0000")
	refs(func(s string) error { _, err := fmt.Fprint(w, packet(s)); return err })
	fmt.Fprint(w, "0000")
}

// withoutEnd sends references for as long as somebody reads.
func withoutEnd(line func(string) error) {
	for line(absent+" refs/heads/"+strings.Repeat("x", 60000)+"\n") == nil {
	}
}

// hostile answers for repositories of its own; what it knows nothing of it leaves to git's
// server.
func hostile(w http.ResponseWriter, r *http.Request, head string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	switch name + " " + rest {
	case "dumb info/refs":
		fmt.Fprint(w, head+"\trefs/heads/main\n")
	case "dumb HEAD":
		fmt.Fprint(w, "ref: refs/heads/main\n")
	case "dumb objects/info/http-alternates":
		fmt.Fprint(w, "https://other.test/plain.git/objects\n")
	case "moved info/refs":
		http.Redirect(w, r, "https://other.test/plain.git/info/refs?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	case "circle info/refs":
		http.Redirect(w, r, r.URL.Path+"?again&"+r.URL.RawQuery, http.StatusFound)
	case "names info/refs":
		advertises(w, func(line func(string) error) {
			line(absent + " refs/heads/../../evil\x00symref=HEAD:refs/heads/../../evil\n")
			line(absent + " refs/heads/--upload-pack=touch evil\n")
		})
	case "format info/refs":
		advertises(w, func(line func(string) error) { line(absent + " HEAD\x00object-format=evil\n") })
	case "flood info/refs":
		advertises(w, withoutEnd)
	case "bomb info/refs":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		w.Header().Set("Content-Encoding", "gzip")
		advertises(gzip.NewWriter(w), withoutEnd)
	case "silent info/refs":
		<-r.Context().Done()
	default:
		if name == "dumb" {
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// entry is a tree with one entry, as printf writes it: its mode and name, and what it holds.
func entry(mode, name, of string) string {
	return `$(printf "` + mode + ` ` + name + `\0$(echo ` + of + ` | sed 's/../\\x&/g')" | git hash-object -w -t tree --literally --stdin)`
}

// trees are repositories whose files would land elsewhere than in a clone, or without end.
var trees = map[string]string{
	"up": entry("40000", "..", "$s"), "git": entry("40000", ".git", "$s"), "case": entry("40000", ".GIT", "$s"), "short": entry("40000", "git~1", "$s"), "unseen": entry("40000", ".g\\xe2\\x80\\x8cit", "$s"),
	"slash": entry("100644", ".git/evil", "$b"), "absolute": entry("100644", "/tmp/evil", "$b"), "twice": entry("120000", "a\\0$(echo $l | sed 's/../\\\\x&/g')40000 a", "$s"),
	"many": `$(t=$s; for n in 1 2 3 4 5 6 7 8 9; do t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%s\n' $t $i; done | git mktree); done; echo $t)`,
}

// A server that sends git elsewhere, or sends what would land elsewhere or has no end, comes
// to nothing, and the daemon goes on as before.
func TestGitOfHostileServers(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f, h := newForge(t), &requests{}
	names := lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}})
	f.repository("plain", map[string]string{"README": "one\n"})
	head := strings.TrimSpace(f.git(filepath.Join(f.root, "plain.git"), "rev-parse", "main"))
	f.door = func(w http.ResponseWriter, r *http.Request) { h.note("forge", r); hostile(w, r, head) }
	w := newWorld(t, gitAgent, "egress:\n  hosts: {forge.test: {class: read_only}}\n").init()
	w.shell("true") // so that there is a daemon
	for name, tree := range trees {
		f.git(f.root, "init", "-q", "--bare", "-b", "main", name+".git")
		cmd := exec.Command("bash", "-ec", `b=$(echo bad | git hash-object -w --stdin); l=$(printf .git | git hash-object -w --stdin); s=$(printf '100644 blob %s\tevil\n' $b | git mktree); t=`+tree+`; git update-ref refs/heads/main $(git commit-tree -m x $t)`)
		cmd.Dir, cmd.Env = filepath.Join(f.root, name+".git"), append(cmd.Environ(), "HOME=/nonexistent", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", name, err, out)
		}
	}
	for _, c := range []struct{ name, control, sign, want string }{ // what a git that obeys comes to; what the call says
		{"dumb", "-c http.followRedirects=true clone", "other.test/plain.git", "alternate disabled by http.followRedirects"},
		{"moved", "-c http.followRedirects=true clone", "other.test/plain.git", "307"},
		{"circle", "-c http.followRedirects=true clone", "Maximum (20) redirects followed", "302"},
		{"names", "ls-remote", "refs/heads/../../evil", "Ignoring funny ref 'refs/remotes/origin/../../evil'"},
		{"format", "ls-remote", absent + "\tHEAD", "does not support this repository's object format"},
		{"flood", "", "", "the time limit"}, {"bomb", "", "", "the time limit"}, {"silent", "", "", "the time limit"},
		{"up", "clone --bare", "", "invalid path '../evil'"}, {"git", "clone --bare", "", "invalid path '.git/evil'"}, {"case", "clone --bare", "", "invalid path '.GIT/evil'"},
		{"short", "-c core.protectNTFS=false clone", "", "invalid path 'git~1/evil'"}, {"unseen", "clone", "", "invalid path"},
		{"slash", "clone --bare", "", "invalid path '.git/evil'"}, {"absolute", "clone --bare", "", "invalid path '/tmp/evil'"}, {"twice", "clone --bare", "", ""}, {"many", "", "", "the time limit"},
	} {
		url := "https://forge.test/" + c.name + ".git"
		if c.control != "" {
			if said := plainly(t.TempDir(), append(strings.Fields(c.control), url)...) + h.take(); !strings.Contains(said, c.sign) || strings.Contains(said, "fatal") && c.sign == "" {
				t.Errorf("%s proves nothing: a git that obeys says\n%s", c.name, said)
			}
		}
		asked, before, at := len(names.Asked()), w.most(), time.Now()
		o := w.call("git_clone", map[string]any{"url": url, "directory": c.name, "timeout_seconds": 3})
		if (o.code == 0) != (c.want == "") || !strings.Contains(o.out, c.want) || time.Since(at) > 20*time.Second {
			t.Errorf("%s: %v, want %q: %+v", c.name, time.Since(at), c.want, o)
		}
		if all := strings.Join(names.Asked()[asked:], " ") + h.take(); strings.Contains(all, "other.test") || !strings.Contains(all, "forge.test/"+c.name+".git") {
			t.Errorf("%s: it asked for\n%s", c.name, all)
		}
		if grown := w.most() - before; grown > 100<<10 {
			t.Errorf("%s: the daemon grew by %d KiB", c.name, grown)
		}
	}
	filepath.WalkDir(w.project, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "evil" && path != filepath.Join(w.ws, "twice/a/evil") { // there it is a file of the clone like any other
			t.Errorf("%s was written", path)
		}
		return nil
	})
	w.verifies()
}

// most is the most memory that the daemon ever had, in KiB.
func (w *world) most() int {
	w.t.Helper()
	for _, pid := range processes(filepath.Base(program)) {
		if !strings.Contains(readAll("/proc/"+pid+"/environ"), "HOME="+w.home+"\x00") {
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil {
			w.t.Fatal(err)
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(status(n, "VmHWM"), " kB"))
		if err != nil {
			w.t.Fatal(err)
		}
		return kib
	}
	w.t.Fatal("there is no daemon")
	return 0
}
