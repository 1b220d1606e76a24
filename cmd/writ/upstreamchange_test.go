package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/client"
)

// TestUpstreamSays: what is known against a server is said before it is tried, and what it
// says itself afterwards, line by line, with what its box lacks.
func TestUpstreamSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated", "").init()
	w.must("", "doctor") // which starts the daemon
	dir := filepath.Join(w.home, "tools")
	for _, d := range []string{dir, filepath.Join(w.home, "notes"), filepath.Join(w.home, "inside")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "npx")
	w.write(script, "#!/bin/sh\nprintf 'first \\033[31m words\\n' >&2\nprintf 'offline is %s\\n' \"$npm_config_offline\" >&2\nhead -c 4000 /dev/zero | tr '\\000' x >&2\nprintf '\\nlast words\\n' >&2\nexit 7\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	notes, inside := filepath.Join(w.home, "notes"), filepath.Join(w.home, "inside")
	o := w.run("", "upstream", "add", "fs", "--read", inside, "--", script, "-y", "pkg", notes, inside, "--root="+notes, "/not/there")
	if o.code != 1 {
		t.Errorf("exit %d", o.code)
	}
	contains(t, o.err, "warning: fs: npx fetches what it runs over the network, which a box does not have; npm install PACKAGE in a directory of its own, and name its file: ",
		"writ: fs is not connected, and stays as it was written in "+w.serverFile("fs")+"; '")
	contains(t, o.out, "the program ended with code 7, and said:\n            first <U+001B>[31m words\n            offline is true\n", "\n            last words\n",
		"\n            "+notes+" is not in its box; where it needs it: ", " upstream set fs --read "+notes+" (or --write)\n")
	if strings.Count(o.out, "is not in its box") != 1 || strings.Contains(o.out, "<U+003C>") || strings.Contains(o.out, "<U+000A>") {
		t.Errorf("said twice, or spelled out twice:\n%s", o.out)
	}
	o = w.run("", "upstream", "test", "fs")
	contains(t, o.err, "warning: fs: npx fetches")
	contains(t, o.out, "and said:\n        first <U+001B>[31m words\n")
	if o.code != 1 {
		t.Errorf("test: exit %d", o.code)
	}
	file := filepath.Join(w.home, "mcp.json")
	w.write(file, `{"mcpServers":{"u":{"command":"uvx","args":["pkg"]},"d":{"command":"docker","args":["run","x"]},"p":{"command":"pipx","args":["run","x"]},"q":{"command":"pipx","args":["list"]}}}`)
	o = w.run("", "upstream", "import", file, "--dry-run")
	contains(t, o.err, "warning: u: uvx fetches", "warning: d: docker has its containers started outside the box", "warning: p: pipx fetches")
	if strings.Count(o.err, "warning: ") != 3 || o.code != 0 {
		t.Errorf("exit %d: %s", o.code, o.err)
	}
}

// TestUpstreamMoved: another program, place or environment under the same name is shown
// once as what it is, and suspends what was accepted; what an operator says of the same
// server does not.
func TestUpstreamMoved(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"look": `{"readOnlyHint":true}`, "put": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	dir := filepath.Dir(list)
	w.must("", "upstream", "add", "srv", "--read", dir, "--env", "A=one", "--env", "API_KEY=ghp_one", "--", bin, list)
	out := w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	contains(t, out, "server srv: runs "+bin+" "+list+"; its box reads "+dir+", writes nothing, reaches no network\n", `+ description: "does put"`, `+ parameters.properties.to.type: "string"`)
	if strings.Contains(out, "unspecified") || strings.Contains(out, "runner") || strings.Count(out, "\n") > 30 {
		t.Errorf("more than its server says of it:\n%s", out)
	}
	text := w.read(w.serverFile("srv"))
	with := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in\n%s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	ready := func() string {
		said := w.must("", "config", "reload")
		w.eventually("it is ready", func() bool { return strings.HasPrefix(w.must("", "upstream", "show", "srv"), "srv: ready") })
		return said
	}
	for what, c := range map[string]struct {
		text, shown string
	}{
		"an argument":    {with(fmt.Sprintf("%q]", list), fmt.Sprintf("%q, -v]", list)), "- program: " + bin + " " + list + "\n+ program: " + bin + " " + list + " -v\n"},
		"the directory":  {text + "dir: " + dir + "\n", "+ starts in: " + dir + "\n"},
		"a value":        {with(`"one"`, `"1"`), "- env A: one\n+ env A: 1\n"},
		"a hidden value": {with(`"ghp_one"`, `"ghp_two"`), "- env API_KEY: a value that is hidden\n+ env API_KEY: another one\n"},
		"a variable":     {with("  \"A\": \"one\"\n", "  \"A\": \"one\"\n  \"B\": \"x\"\n"), "+ env B: x\n"},
		"what it writes": {text + "write: [" + dir + "]\n", "+ writes: " + dir + "\n"},
		"what it reads":  {with("read: [", "read: [/usr/share, "), "- reads: " + dir + "\n+ reads: /usr/share, " + dir + "\n"},
		"the operator":   {text + "call_timeout: 9s\nread_action: code:read\n", ""},
	} {
		w.write(w.serverFile("srv"), c.text)
		said := ready()
		show := w.must("", "upstream", "show", "srv")
		if held := strings.Contains(show, "suspended (changed)"); held != (c.shown != "") {
			t.Errorf("%s: suspended %v\n%s", what, held, show)
		}
		if c.shown == "" {
			continue
		}
		contains(t, said, "suspended: 2 tools of server srv; a person accepts them: ")
		out := w.run("wrong\n", "upstream", "accept", "srv", "--passphrase-stdin").out
		contains(t, out, "server srv is not what it was when its tools were accepted\n"+c.shown, "as they were accepted, but for the server: srv__look, srv__put\n")
		if strings.Contains(out, "digest") || strings.Contains(out, "two") {
			t.Errorf("%s: hashes, or a value:\n%s", what, out)
		}
	}
	w.write(w.serverFile("srv"), text)
	ready()
	if out := w.must("", "upstream", "show", "srv"); strings.Contains(out, "suspended") || strings.Contains(out, "changed since") {
		t.Errorf("as it was, and not accepted:\n%s", out)
	}
}

// TestUpstreamRestart: trying a server tells what changed since a person accepted it,
// restarting it gives another process, and its box is listed by its name.
func TestUpstreamRestart(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"look": `{"readOnlyHint":true}`, "put": "", "drop": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	w.must("", "upstream", "add", "srv", "--read", filepath.Dir(list), "--", bin, list)
	w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	w.offer(list, map[string]string{"look": "", "put": "", "more": ""})
	out := w.run("", "upstream", "test", "srv").out
	contains(t, out, "ok: 1 tools are as people accepted them; changed: srv__look; new: srv__more; not offered any more: srv__drop\n",
		"ok: the connection that is kept offered something else, and is read again; where that does not help: writ upstream restart srv\n")

	box := func() string {
		w.eventually("one box", func() bool { return len(w.sandboxes()) == 1 })
		b := w.sandboxes()[0]
		if b.Tool != "server srv" {
			t.Errorf("it is listed as %+v", b)
		}
		return b.ID
	}
	before := box()
	contains(t, w.must("", "sandbox", "list"), "server srv  ")
	contains(t, w.must("", "upstream", "restart", "srv"), "srv: ready", "srv__look", "suspended (changed)")
	if box() == before {
		t.Error("it is the same process")
	}
	w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	out = w.must("", "upstream", "test", "srv") // and now nothing differs
	contains(t, out, "ok: it offers 3 tools, 0 resources, 0 prompts; 0 things are refused\nok: 3 tools are as people accepted them; not offered any more: srv__drop\n")
	contains(t, w.must("", "upstream", "show", "srv"), "offers    3 tools, 0 resources, 0 prompts")
	if strings.Contains(out, "offered something else") {
		t.Errorf("nothing changed: %s", out)
	}
	w.fails(1, `there is no server "srb"`, "", "upstream", "restart", "srb")
	if err := os.Rename(bin, bin+".gone"); err != nil {
		t.Fatal(err)
	}
	w.fails(1, "srv: failed", "", "upstream", "restart", "srv")
	w.verifies()
}

// TestUpstreamNotes: the order of what is said, and that it is said once.
func TestUpstreamNotes(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgramFor(t, "level: elevated\nautonomy: full\noverrides: {requires_approval: [\"code:delete\"]}\nallowed: [\"@srv\"]", nil)
	w.write(list, `[{"name":"odd","description":"a \u001b[31m b","inputSchema":{"type":"object"}}]`)
	w.init()
	w.add("bob", "operator")
	add := []string{"upstream", "add", "srv", "--read", filepath.Dir(list), "--", bin, list}
	o := w.run("", add...)
	contains(t, o.out, "a <U+001B>[31m b")
	if strings.Contains(o.out, "<U+003C>") || strings.Contains(o.err, "note:") {
		t.Errorf("spelled out twice, or ending nothing: %+v", o)
	}
	w.fails(1, `there is no server "nope"`, "", "upstream", "accept", "nope")
	w.fails(1, "say who you are", "", "upstream", "accept", "srv") // of two people, and not said who

	w.asks("a")
	const note = "note: 1 open requests and unused approvals, of all agents, end when the daemon takes this up; their calls are decided again when they are made again\n"
	if o := w.run("", "upstream", "remove", "srv"); o.code != 2 || !strings.HasPrefix(o.err, note) {
		t.Errorf("removing it does not say so first: %+v", o)
	}
	w.pending() // still
	w.must("", "upstream", "remove", "srv", "--yes")
	w.asks("b")
	tm := newTerminal(t, 100, 24)
	cmd := w.on(tm, nil, add...)
	tm.waits("does not ask", func() bool { return strings.Contains(tm.raw(), "Go on? [y/N] ") })
	tm.types("n\r")
	if err := cmd.Wait(); err == nil {
		t.Error("a no is taken for a yes")
	}
	if _, err := os.Stat(w.serverFile("srv")); err == nil {
		t.Error("it was written")
	}
	w.pending()
	var all []client.Upstream
	w.decode(&all, "", "upstream", "list", "--json")
	if len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
