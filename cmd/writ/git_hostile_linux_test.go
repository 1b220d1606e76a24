package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// requests are what servers of a lab were asked for, one line each.
type requests struct {
	mu    sync.Mutex
	lines []string
}

func (h *requests) note(who string, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf("%s: %s %s%s evil=%q cookie=%q", who, r.Method, r.Host, r.URL.Path, r.Header.Get("Evil"), r.Header.Get("Cookie")))
}

// take is what came since the last time.
func (h *requests) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.lines, "\n")
	h.lines = nil
	return out
}

// plainly runs git as somebody does who obeys a repository's configuration, and gives what
// it says however it ends: with it goes the proof that the configuration works.
func plainly(dir string, args ...string) string {
	cmd := exec.Command("timeout", append([]string{"20", "git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// give hands what the test made in the workspace to the user that boxes run as.
func (w *world) give() {
	w.t.Helper()
	if out, err := exec.Command("chown", "-hR", "nobody:nogroup", w.ws).CombinedOutput(); err != nil {
		w.t.Fatalf("%v %s", err, out)
	}
}

// A fetch or a push gets to the repository of its URL as it is: nothing of a repository's
// configuration leads it to another one, adds to what is said there, or has git believe
// another server. For a git that takes the configuration as it is, each does.
func TestGitGoesWhereItIsSent(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f, h := newForge(t), &requests{}
	f.door = func(w http.ResponseWriter, r *http.Request) {
		h.note("forge", r)
		w.Header().Set("Set-Cookie", "given=yes; Max-Age=10000")
		if rest, ok := strings.CutPrefix(r.URL.Path, "/moved.git"); ok {
			http.Redirect(w, r, "https://forge.test/stolen.git"+rest+"?"+r.URL.RawQuery, http.StatusFound)
		}
	}
	strange := lab.NewAuthority(t) // nobody trusts it
	none := func(who string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.note(who, r); w.WriteHeader(http.StatusNotFound) })
	}
	lab.Serve(t, lab.Public+":8443", strange, none("stranger"))
	lab.Serve(t, lab.Other+":3128", nil, none("proxy"))
	names := lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}})
	for _, name := range []string{"plain", "stolen"} {
		f.repository(name, map[string]string{"README": name + "\n"})
		f.git(filepath.Join(f.root, name+".git"), "config", "receive.advertisePushOptions", "true")
		hook := filepath.Join(f.root, name+".git/hooks/pre-receive")
		if err := os.WriteFile(hook, []byte("#!/bin/sh\necho $GIT_PUSH_OPTION_COUNT options $GIT_PUSH_OPTION_0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, gitAgent, "egress:\n  hosts: {forge.test: {class: read_only}, \"forge.test:8443\": {class: read_only}, \"forge.test:22\": {class: read_only}}\n").init()
	at := func(name string) string { return filepath.Join(w.ws, name) }
	w.write(at("jar"), ".forge.test\tTRUE\t/\tTRUE\t2000000000\tfrom\tfile\n")
	authority, err := os.ReadFile(strange.File)
	if err != nil {
		t.Fatal(err)
	}
	w.write(at("strange.crt"), string(authority))
	w.write(at("more"), "[url \"https://forge.test/stolen.git\"]\n\tinsteadOf = https://forge.test/plain.git\n")
	const forge = "https://forge.test/"
	const to = forge + "stolen.git"
	for i, c := range []struct {
		verb, url string // empty: that of plain
		config    []string
		sign      string // that it works: a server heard it, or git says it
		ok        bool   // whether the call succeeds, without it
	}{
		{"fetch", "", []string{"url." + to + ".insteadOf", forge + "plain.git"}, "/stolen.git", true},
		{"push", "", []string{"url." + to + ".insteadOf", forge + "plain.git"}, "/stolen.git", true},
		{"push", "", []string{"url." + to + ".pushInsteadOf", forge + "plain.git"}, "/stolen.git", true},
		{"push", "", []string{"url." + forge + "stolen.git?.pushInsteadOf", ""}, "/stolen.git", true},
		{"fetch", "", []string{"include.path", "../../more"}, "/stolen.git", true},
		{"fetch", "", []string{"extensions.worktreeConfig", "true", "-worktree", "url." + to + ".insteadOf", forge + "plain.git"}, "/stolen.git", true},
		{"fetch", forge + "moved.git", []string{"http." + forge + ".followRedirects", "true"}, "/stolen.git", false},
		{"push", forge + "moved.git", []string{"http." + forge + "moved.git.followRedirects", "true"}, "/stolen.git", false},
		{"fetch", "", []string{"http." + forge + ".extraHeader", "Evil: yes"}, `evil="yes"`, true},
		{"push", "", []string{"http.https://*.test.extraHeader", "Evil: yes"}, `evil="yes"`, true},
		{"fetch", "", []string{"http." + forge + ".cookieFile", at("jar")}, `cookie="from=file"`, true},
		{"fetch", "", []string{"http." + forge + ".cookieFile", at("written"), "http." + forge + ".saveCookies", "true"}, "a file was written", true},
		{"fetch", "", []string{"http." + forge + ".proxy", "http://other.test:3128"}, "proxy: CONNECT", true},
		{"fetch", "", []string{"http.curloptResolve", "+forge.test:443:" + lab.Other + ",other.test:443:" + lab.Other, "url.https://other.test/.insteadOf", forge}, "other.test", true},
		{"fetch", "https://forge.test:8443/x.git", []string{"http.https://forge.test:8443/.sslVerify", "false"}, "stranger: GET", false},
		{"fetch", "https://forge.test:8443/x.git", []string{"http.sslCAInfo", at("strange.crt")}, "stranger: GET", false},
		{"fetch", "", []string{"http.userAgent", "x\r\nEvil: yes"}, `evil="yes"`, true},
		{"push", "", []string{"http." + forge + ".userAgent", "x\r\nEvil: yes"}, `evil="yes"`, true},
		{"fetch", "", []string{"http.version", "HTTP/1.1", "http.userAgent", "x\r\n\r\nPOST /stolen.git/smuggled HTTP/1.1\r\nHost: forge.test\r\nContent-Length: 3\r\n\r\nabcGET /x HTTP/1.1\r\nHost: forge.test\r\nA: x"}, "/stolen.git", true},
		{"fetch", forge + "%2e%2e/plain.git", []string{"http.extraHeader", "Evil: yes"}, `evil="yes"`, false},
		{"fetch", forge + "x%2f..%2fplain.git", []string{"http.extraHeader", "Evil: yes"}, `evil="yes"`, false},
		{"push", "", []string{"push.negotiate", "true", "protocol.version", "2", "url." + to + ".insteadOf", forge + "plain.git"}, "/stolen.git", true},
		{"push", "", []string{"push.pushOption", "merge"}, "1 options merge", true},
		{"fetch", "ssh://git@forge.test/x", []string{"core.gitProxy", "env", "url.git://forge.test/.insteadOf", "ssh://git@forge.test/"}, "env:", false},
	} {
		dir, url := fmt.Sprintf("r%d", i), cmp.Or(c.url, forge+"plain.git")
		f.git(w.ws, "clone", "-q", filepath.Join(f.root, "plain.git"), dir)
		scope := "--local"
		for j := 0; j < len(c.config); j += 2 {
			if c.config[j] == "-worktree" {
				scope, j = "--worktree", j+1
			}
			f.git(at(dir), "config", scope, c.config[j], c.config[j+1])
		}
		w.give()
		came := func(out string) string {
			if os.Remove(at("written")) == nil {
				out += "a file was written\n"
			}
			return out + h.take()
		}
		if got := came(plainly(at(dir), c.verb, url, "main:refs/heads/control"+dir)); !strings.Contains(got, c.sign) {
			t.Errorf("%s %q proves nothing: a git that obeys comes to\n%s", c.verb, c.config, got)
		}
		before := len(names.Asked())
		var o outcome
		args := map[string]any{"url": url, "directory": dir}
		if c.verb == "push" {
			args["branch"], args["to"] = "main", "agents/"+dir
			o = w.agreed("git_push", args)
		} else {
			o = w.call("git_fetch", args)
		}
		got := came(o.out)
		if strings.Contains(got, c.sign) || (o.code == 0) != c.ok || c.ok && !strings.Contains(got, strings.TrimPrefix(url, "https://")) {
			t.Errorf("%s %q: exit %d\n%s", c.verb, c.config, o.code, got)
		}
		if asked := strings.Join(names.Asked()[before:], " "); strings.Trim(strings.ReplaceAll(asked, "forge.test", ""), " ") != "" {
			t.Errorf("%s %q asked for the names %s", c.verb, c.config, asked)
		}
	}
	w.verifies()
}
