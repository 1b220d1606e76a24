package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serverScript is the test's server behind a script that needs what lies beside it, as usual
// entries of clients have it.
func serverScript(t *testing.T, tools map[string]string) (w *world, script string) {
	t.Helper()
	w, bin, _ := serverProgram(t, tools)
	script = filepath.Join(filepath.Dir(bin), "server.sh")
	w.write(script, "exec \"${0%/*}/server\" \"${0%/*}/tools.json\"\n")
	return w, script
}

// TestUpstreamScripts: what a client's usual entry names is in its box where it is the
// program, and said where it is not; a home and what holds secrets is never given.
func TestUpstreamScripts(t *testing.T) {
	t.Parallel()
	w, script := serverScript(t, map[string]string{"look": "", "peek": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	dir, file := filepath.Dir(script), filepath.Join(w.home, "mcp.json")
	notes := filepath.Join(w.home, "notes")
	if err := os.MkdirAll(notes, 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(file, `{"mcpServers":{"srv":{"command":"sh","args":["`+script+`","`+notes+`"]},"other":{"command":"sh","args":["`+script+`"]}}}`)
	o := w.run("", "upstream", "import", file, "srv", "--dry-run")
	contains(t, o.out, `read: ["`+dir+`"]`)
	contains(t, o.err, "note: srv: its box reads "+dir+", for the script server.sh", "note: srv: its command names "+notes+", which is not in its box; where it needs it: --read "+notes+" or --write "+notes)
	w.fails(2, "what the flags say is for one server, and there are 2; name one after the file", "", "upstream", "import", file, "--read", notes, "--yes")
	o = w.run("", "upstream", "import", file, "srv", "--read", notes, "--env", "LEVEL=debug", "--call-timeout", "2m", "--yes")
	contains(t, o.out, "srv: ready", "reads "+notes+", "+dir, "LEVEL=debug", "waits     2m0s for a call")
	if o.code != 0 || strings.Contains(o.err, "is not in its box") {
		t.Errorf("%+v", o)
	}
	w.fails(1, "its command names", "", "upstream", "add", "gone", "--env", "X=1", "--", "/bin/false", notes)

	inHome := filepath.Join(w.home, "alone.sh")
	w.write(inHome, "exec cat\n")
	o = w.run("", "upstream", "add", "alone", "--", "sh", inHome)
	contains(t, o.out, "reads "+inHome+";")
	if err := os.Mkdir(filepath.Join(dir, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	contains(t, w.run("", "upstream", "add", "beside", "--", "sh", script).out, "reads "+script+";") // a directory with secrets

	for what, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"nothing there":    {[]string{"--read", "/not/there", "--", "/bin/true"}, "--read /not/there: there is no such file or directory; make it first, or correct it", 1},
		"writ's own":       {[]string{"--write", filepath.Dir(w.config), "--", "/bin/true"}, "is writ's own, which no box reaches; name another directory", 1},
		"a variable":       {[]string{"--env", "K=${HOME}", "--", "/bin/true"}, "--env K has ${HOME}, which nothing fills in here", 2},
		"one that is not":  {[]string{"--env", "NO_SUCH_VARIABLE", "--", "/bin/true"}, "or NAME alone for a variable that is set here, which one is not", 2},
		"a reference":      {[]string{"--env", "K=store:x", "--", "/bin/true"}, "one that is kept elsewhere is --secret-env 'K=store:x'", 2},
		"a header's":       {[]string{"--header", "X-K: store:x", "--url", "https://a.example"}, "one that is kept elsewhere is --secret-header 'X-K: store:x'", 2},
		"a bearer's":       {[]string{"--header", "Authorization: Bearer store:x", "--url", "https://a.example"}, "a token that is kept elsewhere is --bearer store:x", 2},
		"a box of none":    {[]string{"--read", "/usr", "--url", "https://a.example"}, "--read is for a program in a box", 2},
		"a time":           {[]string{"--call-timeout", "5", "--", "/bin/true"}, `--call-timeout: "5" is not a duration`, 2},
		"what is relayed":  {[]string{"--relay", "sampels", "--", "/bin/true"}, "--relay: unknown request to relay", 2},
		"a value for none": {[]string{"--secret-env", "K=s3cret", "--", "/bin/true"}, "--secret-env K: this is not where a secret is kept", 2},
	} {
		o := w.run("", append([]string{"upstream", "add", "bad"}, c.args...)...)
		if o.code != c.code || !strings.Contains(o.err, c.want) {
			t.Errorf("%s: %+v", what, o)
		}
		if _, err := os.Stat(w.serverFile("bad")); err == nil {
			t.Fatalf("%s: it was written", what)
		}
	}
}

// TestUpstreamRelative: a script that is named from where the caller is starts all the same.
func TestUpstreamRelative(t *testing.T) {
	t.Parallel()
	w, script := serverScript(t, map[string]string{"look": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	o := w.run("", "upstream", "add", "srv", "--", "sh", "server/server.sh", "server/tools.json")
	contains(t, o.err, "note: srv: its script server/server.sh is written out as "+script, "note: srv: its argument server/tools.json is a path from here, and it does not start here")
	contains(t, o.out, "srv: ready", "program   sh "+script)
}

// TestUpstreamSet: a server that is there is changed, shown first, and its tools are
// suspended where it is another one.
func TestUpstreamSet(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"look": `{"readOnlyHint":true}`})
	w.edit("version: 1", "version: 1\nupstreams: {mine: {url: 'http://127.0.0.1:9/'}}")
	w.init()
	w.must("", "doctor") // which starts the daemon
	dir := filepath.Dir(list)
	w.must("", "upstream", "add", "srv", "--read", dir, "--env", "LEVEL=info", "--env", "API_KEY=ghp_one", "--", bin, list)
	w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")

	w.fails(2, "there is no terminal to ask on, and nothing was written; add --yes", "", "upstream", "set", "srv", "--call-timeout", "2m")
	o := w.run("", "upstream", "set", "srv", "--call-timeout", "2m", "--connect-timeout", "20s", "--cacheable", "look", "--read-action", "code:read", "--yes")
	contains(t, o.out, "+ call_timeout: 2m0s", "changed srv: ", "srv: ready", "cacheable look", "read as   code:read")
	if o.code != 0 || strings.Contains(o.out, "suspended") {
		t.Errorf("what an operator says of it suspends nothing: %+v", o)
	}
	contains(t, w.must("", "upstream", "set", "srv", "--call-timeout", "2m", "--yes"), "that is what it is already; nothing was written")

	o = w.run("", "upstream", "set", "srv", "--env", "LEVEL=debug", "--env", "API_KEY=ghp_two", "--yes")
	contains(t, o.out, `-   "LEVEL": "info"`, `+   "LEVEL": "debug"`, "~ env: API_KEY: another value, which is hidden", "srv__look", "suspended (changed)", "- env LEVEL: info\n    + env LEVEL: debug")
	if strings.Contains(o.out+o.err, "ghp_") {
		t.Errorf("a secret is shown: %+v", o)
	}
	contains(t, w.run("wrong\n", "upstream", "accept", "srv", "--passphrase-stdin").out, "- env API_KEY: a value that is hidden\n+ env API_KEY: another one\n- env LEVEL: info\n+ env LEVEL: debug\n")
	w.must("", "upstream", "set", "srv", "--env", "LEVEL=info", "--env", "API_KEY=ghp_one", "--yes")
	contains(t, w.must("", "upstream", "show", "srv"), "srv__look  read_only  accepted")

	w.must("", "upstream", "set", "srv", "--unset", "env=LEVEL", "--unset", "cacheable", "--unset", "call_timeout", "--yes")
	if text := w.read(w.serverFile("srv")); strings.Contains(text, "LEVEL") || strings.Contains(text, "cacheable") || !strings.Contains(text, "API_KEY") {
		t.Errorf("not taken away, or too much:\n%s", text)
	}
	info, err := os.Stat(w.serverFile("srv"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	w.fails(1, "it has no such value", "", "upstream", "set", "srv", "--unset", "read=/nowhere", "--yes")
	w.fails(2, `--unset "reed": there are cacheable, `, "", "upstream", "set", "srv", "--unset", "reed", "--yes")
	w.fails(1, "must be over 0 and at most 10m", "", "upstream", "set", "srv", "--call-timeout", "11m", "--yes")
	w.fails(1, "server mine is written at writ.yaml:", "", "upstream", "set", "mine", "--call-timeout", "1m", "--yes")
	o = w.run("", "upstream", "set", "srv", "--yes", "--", "/bin/false")
	contains(t, o.out, "srv: failed", "program   /bin/false")
	if o.code != 1 {
		t.Errorf("exit %d", o.code)
	}
	for kind, args := range map[string][]string{
		"not_found": {"upstream", "remove", "nosuch", "--yes", "--json"},
		"conflict":  {"upstream", "add", "srv", "--json", "--", bin},
	} {
		var p struct{ Kind, Detail string }
		o := w.run("", args...)
		if err := json.Unmarshal([]byte(o.out), &p); err != nil || p.Kind != kind {
			t.Errorf("%v: %v %+v", args, err, o)
		}
	}
	w.verifies()
}
