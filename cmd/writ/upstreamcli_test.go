package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ/client"
)

// serverProgram is a world with the test's MCP server built and behind nothing yet, and
// the file of what it offers.
func serverProgram(t *testing.T, tools map[string]string) (w *world, bin, list string) {
	t.Helper()
	return serverProgramFor(t, "level: elevated\nautonomy: full\nallowed: [\"@srv\"]", tools)
}

// serverProgramFor is that for another agent.
func serverProgramFor(t *testing.T, agent string, tools map[string]string) (w *world, bin, list string) {
	t.Helper()
	w = newWorld(t, agent, "")
	dir := filepath.Join(w.home, "server")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.own(dir)
	bin, list = filepath.Join(dir, "server"), filepath.Join(dir, "tools.json")
	build := exec.Command("go", "build", "-o", bin, "./testdata/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.offer(list, tools)
	return w, bin, list
}

func (w *world) serverFile(name string) string {
	return filepath.Join(filepath.Dir(w.config), "upstreams", name+".yaml")
}

// contains demands texts of an output.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(out, s) {
			t.Errorf("there is no %q in\n%s", s, out)
		}
	}
}

// fails demands that a command fails with a text.
func (w *world) fails(code int, text, stdin string, args ...string) {
	w.t.Helper()
	o := w.run(stdin, args...)
	if o.code != code || !strings.Contains(o.out+o.err, text) {
		w.t.Errorf("writ %v: exit %d, want %d and %q\n%s%s", args, o.code, code, text, o.out, o.err)
	}
}

// TestUpstreamCommands takes a server in a box from nothing to nothing: added, accepted,
// used, changed, broken, removed.
func TestUpstreamCommands(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"look": `{"readOnlyHint":true}`, "wipe": `{"destructiveHint":true}`})
	add := []string{"upstream", "add", "srv", "--read", filepath.Dir(list), "--env", "API_TOKEN=s3cret", "--", bin, list}

	out := w.must("", add...)
	contains(t, out, "added srv: "+w.serverFile("srv"), "no daemon runs; the next one takes it up", " upstream accept srv\nand an agent may use them once its allowed has \"@srv\"")
	info, err := os.Stat(w.serverFile("srv"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	w.fails(1, "is there already; ", "", add...)
	w.init()
	w.must("", "upstream", "remove", "srv", "--yes")
	if got := w.must("", "upstream", "list"); !strings.HasPrefix(got, "there are no servers") {
		t.Errorf("it is still there: %s", got)
	}

	out = w.must("", add...) // a daemon runs now
	contains(t, out, "srv: ready, protocol 2025-06-18", "program   "+bin+" "+list, "reads "+filepath.Dir(list)+"; writes nothing; reaches no network", "env       API_TOKEN=…",
		"2 suspended; a person accepts them:")
	if strings.Contains(out, "s3cret") {
		t.Errorf("a secret is shown:\n%s", out)
	}
	contains(t, strings.Join(strings.Fields(w.must("", "upstream", "list")), " "), "srv stdio ready 0 2 0 2025-06-18 upstreams/srv.yaml")
	contains(t, strings.Join(strings.Fields(out), " "), "srv__look read_only suspended (new)", "srv__wipe write, dangerous suspended (new)")

	p := w.speak("2025-11-25", `{}`, "--agent", "coder", "--wait", "1s")
	if text, failed := p.call("srv__look", `{}`); !failed || !strings.Contains(text, "suspended") {
		t.Errorf("called before it was accepted: %q", text)
	}
	w.fails(1, `the server srv has no tool "lok"`, "", "upstream", "accept", "srv", "lok", "--passphrase-stdin")
	w.fails(1, "passphrase", "not this\n", "upstream", "accept", "srv", "--passphrase-stdin")
	out = w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	contains(t, out, "== srv__look: class read_only\n   it says that it only reads", "== srv__wipe: class write, dangerous\n   it says that it destroys", `+ description: "does wipe"`, "accepted 2 of srv")
	if text, failed := p.call("srv__look", `{}`); failed {
		t.Errorf("accepted, and not callable: %s", text)
	}
	if n := len(slices.DeleteFunc(w.ledgerKinds(), func(k string) bool { return k != "tool.accepted" })); n != 2 {
		t.Errorf("%d entries about what was accepted", n)
	}
	contains(t, w.must("", "upstream", "accept", "srv", "--passphrase-stdin"), "nothing of srv is suspended")

	w.offer(list, map[string]string{"look": ""}) // not said to only read any more
	changed := w.run("", "upstream", "test", "srv")
	contains(t, changed.out, "ok: started "+bin+"; it speaks protocol 2025-06-18", "ok: it offers 1 tools", "changed: srv__look; they are suspended until a person looks and accepts them: ", " upstream accept srv\n")
	if changed.code != 1 {
		t.Errorf("a tool that is not what people accepted: exit %d", changed.code)
	}
	w.eventually("it is suspended", func() bool { return strings.Contains(w.must("", "upstream", "show", "srv"), "suspended (changed)") })
	w.denied(w.call("srv__look", map[string]any{}), "tool srv__look changed and is suspended until a person accepts it: writ upstream accept srv")
	out = w.must(pass+"\n", "upstream", "accept", "srv", "look", "--passphrase-stdin")
	contains(t, out, "== srv__look: class write", "changed since alice accepted it", "- egress_class: \"read_only\"", "+ egress_class: \"write\"")

	if err := os.Rename(bin, bin+".gone"); err != nil {
		t.Fatal(err)
	}
	o := w.run("", "upstream", "test", "srv")
	if o.code != 1 || !strings.HasPrefix(o.out, "failed: ") {
		t.Errorf("a program that is gone: %+v", o)
	}
	var said client.UpstreamTest
	if o := w.run("", "upstream", "test", "srv", "--json"); json.Unmarshal([]byte(o.out), &said) != nil || o.code != 1 || said.OK || said.Failed == "" {
		t.Errorf("as JSON: %+v", o)
	}
	if err := os.Rename(bin+".gone", bin); err != nil {
		t.Fatal(err)
	}
	w.must("", "upstream", "test", "srv")

	w.fails(2, "there is no terminal to ask on, and nothing was removed; add --yes", "", "upstream", "remove", "srv")
	out = w.must("", "upstream", "remove", "srv", "--yes")
	contains(t, out, "--- "+w.serverFile("srv"), `"API_TOKEN": "…"`, "removed srv")
	if text, failed := p.call("srv__look", `{}`); !failed || !strings.Contains(text, "there is no tool") {
		t.Errorf("called after it was removed: %q", text)
	}
	w.fails(1, `there is no server "srv"`, "", "upstream", "show", "srv")
	w.verifies()
}

// A server at a URL, and one that does not answer there.
func TestUpstreamCommandsHTTP(t *testing.T) {
	t.Parallel()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "query", Description: "Look it up."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "drop"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	w := newWorld(t, "", "").init()
	w.must("", "doctor") // which starts the daemon
	out := w.must("", "upstream", "add", "web", "--url", web.URL+"/mcp?key=abc", "--header", "Authorization: Bearer s3cret", "--disabled", "drop")
	contains(t, out, "web: ready", "url       "+web.URL+"/mcp?…", "headers   Authorization=…", "web__query")
	if strings.Contains(out, "s3cret") || strings.Contains(out, "drop  ") {
		t.Errorf("more than there is to see:\n%s", out)
	}
	o := w.run("", "upstream", "add", "stranger", "--url", web.URL+"/mcp")
	contains(t, o.out, "stranger: failed", "failed    ", "next try  in ")
	contains(t, o.err, "writ: stranger is not connected, and stays as it was written in "+w.serverFile("stranger")+"; ")
	if _, err := os.Stat(w.serverFile("stranger")); err != nil || o.code != 1 {
		t.Errorf("exit %d, %v", o.code, err)
	}
	w.fails(1, "failed: ", "", "upstream", "test", "stranger")
	w.must("", "upstream", "test", "web")
}

// Servers of a client's file are taken over as they are, and only whole.
func TestUpstreamImport(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"look": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	file := filepath.Join(w.home, "mcp.json")
	put := func(text string) { w.write(file, text) }
	entry := fmt.Sprintf(`"My Server": {"type":"stdio","command":%q,"args":[%q],"env":{"GITHUB_TOKEN":"ghp_s3cret"},"cwd":%q}`, bin, list, filepath.Dir(list))

	put(`{"mcpServers":{` + entry + `,"writ":{"command":"/usr/bin/writ","args":["mcp"]},"old":{"url":"http://127.0.0.1:1/x","disabled":true}}}`)
	before, _ := os.ReadFile(file)
	o := w.run("", "upstream", "import", file)
	if o.code != 2 || !strings.Contains(o.err, "there is no terminal to ask on, and nothing was written; add --yes") {
		t.Errorf("without being told to: %+v", o)
	}
	contains(t, o.err, "note: My Server is named my-server here", "note: writ is left out: it is writ itself", "note: old is left out: it is disabled in the client")
	contains(t, o.out, "+++ "+w.serverFile("my-server"), `"GITHUB_TOKEN": "…"`)
	contains(t, w.must("", "upstream", "import", file, "--dry-run"), "nothing was written (--dry-run)")
	if _, err := os.Stat(w.serverFile("my-server")); err == nil {
		t.Fatal("it was written")
	}
	o = w.run("", "upstream", "import", file, "--yes")
	if o.code != 0 || strings.Contains(o.out+o.err, "s3cret") {
		t.Fatalf("%+v", o)
	}
	contains(t, o.out, "added my-server: ", "my-server: ready, protocol 2025-06-18", "my-server__look")
	after, _ := os.ReadFile(file)
	if string(before) != string(after) {
		t.Error("the client's file changed")
	}
	text, err := os.ReadFile(w.serverFile("my-server"))
	if err != nil || !strings.Contains(string(text), `"GITHUB_TOKEN": "ghp_s3cret"`) {
		t.Errorf("%v\n%s", err, text)
	}

	good := `"good":{"url":"https://good.example/mcp"}`
	for what, c := range map[string]struct{ text, want string }{
		"sse":              {`{"mcpServers":{` + good + `,"a":{"type":"sse","url":"https://a.example/sse"}}}`, "a: its transport is sse"},
		"a variable":       {`{"mcpServers":{` + good + `,"a":{"command":"x","env":{"K":"${HOME_TOKEN}"}}}}`, "a: its env.K refers to ${HOME_TOKEN}, which only its client fills in"},
		"an env variable":  {`{"servers":{` + good + `,"a":{"type":"http","url":"https://a.example","headers":{"X":"b ${env:T}"}}}}`, "a: its headers.X refers to ${env:T}"},
		"an argument":      {`{"servers":{` + good + `,"a":{"command":"x","args":["1","${input:k}"]}}}`, "a: its args[1] refers to ${input:k}"},
		"an unknown key":   {`{"servers":{` + good + `,"a":{"command":"x","envFile":".env"}}}`, "a: its key envFile is not known here"},
		"two of a name":    {`{"mcpServers":{` + good + `,"A b":{"command":"x"},"a B":{"command":"x"}}}`, "A b and a B would both be named a-b"},
		"one that is here": {`{"mcpServers":{` + good + `,"my-server":{"command":"x"}}}`, "is there already"},
		"a plain address":  {`{"mcpServers":{` + good + `,"a":{"url":"http://a.example"}}}`, "upstreams/a.yaml:1: url: "},
		"neither":          {`{"mcpServers":{` + good + `,"a":{}}}`, "a: it has to have a command or a url"},
		"a relative place": {`{"mcpServers":{` + good + `,"a":{"command":"./x"}}}`, "a: its command is a relative path"},
		"two of one key":   {`{"mcpServers":{` + good + `},"mcpServers":{}}`, "JSON: "},
		"comments":         {"{ // servers\n\"servers\":{}}", "a file with comments has to be without them"},
		"no servers":       {`{"x":1}`, "it has neither mcpServers nor servers at its top"},
	} {
		put(c.text)
		o := w.run("", "upstream", "import", file, "--yes")
		if o.code != 1 || !strings.Contains(o.err, c.want) {
			t.Errorf("%s: exit %d, want %q\n%s%s", what, o.code, c.want, o.out, o.err)
		}
		if _, err := os.Stat(w.serverFile("good")); err == nil {
			t.Fatalf("%s: part of it was written", what)
		}
	}
	put(`{"mcpServers":{` + good + `,"a":{"type":"sse","url":"https://a.example/sse"}}}`)
	w.fails(1, `the file has no server "godo"; did you mean good?; it has a, good`, "", "upstream", "import", file, "godo", "--yes")
	pipe := filepath.Join(w.home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w.fails(1, "pipe is not a file; name a client's JSON file", "", "upstream", "import", pipe, "--yes") // and does not wait for a writer
	text, err = os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Name string }
	o = w.run(string(text), "upstream", "import", "-", "good", "--yes", "--json") // which nobody answers for
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 1 || rows[0].Name != "good" || o.code != 1 {
		t.Errorf("the one that is named: %v %v, exit %d", rows, err, o.code)
	}
}

// What is written in the configuration is a person's to edit; what does not hold is not
// written, and what does not hold can be removed.
func TestUpstreamEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "upstreams:\n  mine: {url: 'https://mine.example/mcp'}\ntools: {other__put: {requires_approval: true}}\n")
	if err := os.MkdirAll(filepath.Dir(w.serverFile("x")), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(w.serverFile("other"), "command: [/opt/other]\n")
	w.fails(1, "server mine is written at writ.yaml:", "", "upstream", "remove", "mine", "--yes")
	w.fails(1, "the server mine is in writ.yaml:", "", "upstream", "add", "mine", "--", "/bin/true")
	w.fails(1, "without other the configuration does not hold, and nothing was removed:", "", "upstream", "remove", "other", "--yes")
	w.write(w.serverFile("broken"), "command: [/opt/x]\nreed: [/]\n")
	w.fails(1, "upstreams/broken.yaml:2: reed: unknown key; did you mean read?", "", "config", "check")
	w.fails(1, "upstreams/broken.yaml:2", "", "upstream", "add", "new", "--", "/bin/true")
	if _, err := os.Stat(w.serverFile("new")); err == nil {
		t.Error("it was written beside what does not hold")
	}
	w.must("", "upstream", "remove", "broken", "--yes")
	w.must("", "upstream", "add", "new", "--", "/bin/true")
	w.must("", "config", "check")
	w.fails(2, "expected a server's name", "", "upstream", "remove", "../writ", "--yes")
}
