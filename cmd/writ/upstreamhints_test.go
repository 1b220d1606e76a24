package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// TestUpstreamHints: a server that does not come up says what is wrong with it in words that
// lead on.
func TestUpstreamHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated", "").init()
	w.must("", "doctor") // which starts the daemon
	dir := filepath.Join(w.home, "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		w.write(path, text)
		return path
	}
	url, _ := webServer(t, "k3y")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"a banner": {[]string{"--", "sh", script("banner.sh", "printf 'Welcome to \\033[1mthe server\\n'\ncat >/dev/null\n")},
			`it wrote the line "Welcome to \x1b[1mthe server" on its standard output, which is for messages of the protocol alone (`},
		"an echo":     {[]string{"--", "/bin/cat"}, "it repeats what it is sent, so it is not an MCP server; see that the command is the server's own"},
		"no proof":    {[]string{"--url", url}, "note      the server wants credentials (401): keep them with 'writ secret set NAME', then: writ upstream set bad --bearer store:NAME, or --secret-header 'HEADER: store:NAME'"},
		"no network":  {[]string{"--", "sh", script("net.sh", "echo 'Error: getaddrinfo EAI_AGAIN api.example.com' >&2\nexit 1\n")}, "note      its box has no network; where it needs a host: writ upstream set bad --host HOST"},
		"the control": {[]string{"--", "sh", script("quiet.sh", "echo 'it is late' >&2\nexit 1\n")}, "it is late"},
	} {
		o := w.run("", append([]string{"upstream", "add", "bad"}, c.args...)...)
		if o.code != 1 || !strings.Contains(o.out, c.want) {
			t.Errorf("%s: %+v", what, o)
		}
		if what == "the control" && strings.Contains(o.out, "note ") {
			t.Errorf("something to say of nothing:\n%s", o.out)
		}
		o = w.run("", "upstream", "test", "bad")
		if hint, ok := strings.CutPrefix(c.want, "note      "); ok && !strings.Contains(o.out, "note: "+hint) || o.code != 1 {
			t.Errorf("%s, tested: %+v", what, o)
		}
		w.must("", "upstream", "remove", "bad", "--yes")
	}
}

// TestUpstreamClash: servers whose tools take each other's names away say so when it happens.
func TestUpstreamClash(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgramFor(t, "role: developer\nlevel: standard\nautonomy: semi", map[string]string{"look": "", "find": "", "seek": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	add := func(name string) outcome {
		return w.run("", "upstream", "add", name, "--prefix", "none", "--read", filepath.Dir(list), "--", bin, list)
	}
	o := add("one")
	contains(t, o.out, `no agent may use its tools: an operator adds allowed: ["find", "look", "seek"] to agents.coder`)
	if strings.Contains(o.err, "warning") {
		t.Errorf("%+v", o)
	}
	o = add("two")
	contains(t, o.err, "warning: 3 tools of two have the names of tools of one, and neither server's can be used; have their servers' names before them: ", " upstream set two --prefix name\n")
	contains(t, o.out, "tool look: its name look is that of a tool of server one too, and neither can be used")
	o = w.run("", "upstream", "set", "two", "--prefix", "name", "--yes")
	contains(t, o.out, "two__look")
	w.eventually("the first has its own again", func() bool { return strings.Contains(w.must("", "upstream", "show", "one"), "find  write") })
	// One that is in the configuration as well does not hold, and is removed all the same.
	w.edit("version: 1", "version: 1\nupstreams: {two: {url: 'http://127.0.0.1:9/'}}")
	o = w.run("", "upstream", "remove", "two", "--yes")
	contains(t, o.out, "--- "+w.serverFile("two")+"\n(its content is not shown: the configuration does not hold with it)\nupstreams/two.yaml: the server two is in writ.yaml:", "removed two")
}

// TestUpstreamRefusedHost: what a server was not let through to is told where it is looked
// at, with what would let it.
func TestUpstreamRefusedHost(t *testing.T) {
	t.Parallel()
	w, _ := withServer(t, "    hosts: [open.example]\n", map[string]string{"dial": ""})
	w.takeUp("srv__dial")
	if out := w.must("", "upstream", "show", "srv"); strings.Contains(out, "not let through") {
		t.Errorf("before it wanted anything:\n%s", out)
	}
	w.call("srv__dial", map[string]any{"to": "closed.example:443"})
	w.eventually("it is told", func() bool {
		return strings.Contains(w.must("", "upstream", "show", "srv"), "note      it was not let through to closed.example (host_not_allowed); where that is meant: writ upstream set srv --host closed.example")
	})
}

// TestUpstreamOfRoot: what is root's can be read from, and what cannot be written says so in
// one sentence.
func TestUpstreamOfRoot(t *testing.T) {
	t.Parallel()
	need.Root(t)
	w, bin, list := serverProgram(t, map[string]string{"look": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	data := filepath.Join(w.home, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	contains(t, w.must("", "upstream", "add", "srv", "--dir", data, "--read", filepath.Dir(list), "--", bin, list), "srv: ready", "starts in "+data)
	o := w.run("", "upstream", "add", "puts", "--write", data, "--", bin, list)
	contains(t, o.out, "failed    start "+bin+" in a box: sandbox_unavailable: "+data+" is to be written and belongs to root, and nothing runs as root; give it to an unprivileged user (chown -R USER: "+data+")\n")
}

// TestUpstreamCompletes: flags of servers are completed.
func TestUpstreamCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated", "").init()
	w.must("", "doctor") // which starts the daemon
	contains(t, w.must("", "__complete", "upstream", "add", "x", "--read-action", ""), "code:read\n", "web:read\n")
	contains(t, w.must("", "__complete", "upstream", "set", "x", "--unset", ""), "call_timeout\n", "read\n")
	made := w.must(pass+"\n", "agent", "token", "coder", "--passphrase-stdin")
	id := strings.Fields(made)[1]
	contains(t, w.must("", "__complete", "agent", "revoke", ""), id+"\tcoder\n")
	w.must("", "agent", "revoke", id)
	if out := w.must("", "__complete", "agent", "revoke", ""); strings.Contains(out, id) {
		t.Errorf("one that is revoked: %s", out)
	}
}
