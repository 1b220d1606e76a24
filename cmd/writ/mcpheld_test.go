package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// poster speaks MCP to a daemon over HTTP, with a token.
type poster struct {
	t           testing.TB
	addr, token string
}

// send sends one request, with headers as they are given in pairs; the caller closes
// the answer's body.
func (p poster) send(method, body string, headers ...string) *http.Response {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+"/mcp", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// ask is send, with the whole answer: its status and its message.
func (p poster) ask(body string, headers ...string) (int, map[string]any, http.Header) {
	p.t.Helper()
	resp := p.send("POST", body, headers...)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(b)
	for line := range strings.Lines(text) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			text = data
		}
	}
	var m map[string]any
	_ = json.Unmarshal([]byte(text), &m)
	return resp.StatusCode, m, resp.Header
}

const beginning = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// begin begins a session.
func (p poster) begin() string {
	p.t.Helper()
	status, got, head := p.ask(beginning)
	if status != 200 || head.Get("Mcp-Session-Id") == "" {
		p.t.Fatal(status, got)
	}
	return head.Get("Mcp-Session-Id")
}

// modernly is the params of a 2026-07-28 request, and its headers.
func modernly(method, name, more string) (body string, headers []string) {
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, more)
	headers = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return body, headers
}

// streamEnds reports whether a stream ends within some seconds, and what came before.
func streamEnds(resp *http.Response) (string, bool) {
	over := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(resp.Body)
		over <- string(b)
	}()
	select {
	case said := <-over:
		return said, true
	case <-time.After(5 * time.Second):
		return "", false
	}
}

// newToken makes another token of the agent.
func (w *world) newToken() (token, id string) {
	w.t.Helper()
	out := w.must(pass+"\n", "agent", "token", "coder", "--passphrase-stdin")
	for f := range strings.FieldsSeq(out) {
		switch f = strings.Trim(f, ".,;:()"); {
		case strings.HasPrefix(f, "WRIT_TOKEN="):
			token = strings.TrimPrefix(f, "WRIT_TOKEN=")
		case strings.HasPrefix(f, "writ_"):
			token = f
		case strings.HasPrefix(f, "tok_"):
			id = f
		}
	}
	if token == "" || id == "" {
		w.t.Fatalf("no token in %q", out)
	}
	return token, id
}

// TestMCPHeldByCaller: what waits for a person is its caller's. Another caller of the
// same agent, here the same agent by its token, finds none of it, and whoever stops
// waiting has not taken it back.
func TestMCPHeldByCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	path := filepath.Join(w.ws, "a.txt")
	w.write(path, "x")
	mine := w.speak("2025-11-25", `{}`, "--agent", "coder", "--wait", "1s")
	other := w.speak("2025-11-25", `{}`, "--wait", "1s")
	text, _ := mine.call("delete_file", `{"path":"a.txt"}`)
	id := w.pending()
	if want := fmt.Sprintf(`approval_pending: a person has to approve this call (request %s); a person runs: writ approval approve %s. It stays pending. Call writ_resume with {"id":%q} to wait for the answer.`, id, id, id); text != want {
		t.Errorf("it says %q", text)
	}
	resume := fmt.Sprintf(`{"id":%q}`, id)
	nothing := fmt.Sprintf("there is no request %q of this caller; make the call again", id)
	if text, failed := other.call("writ_resume", resume); !failed || text != nothing {
		t.Errorf("another caller: %q", text)
	}
	if text, failed := mine.call("writ_resume", resume); !failed || !strings.Contains(text, "approval_pending") {
		t.Errorf("the control: %q", text)
	}

	long := w.speak("2025-11-25", `{}`, "--agent", "coder", "--wait", "60s")
	call := long.begin("tools/call", fmt.Sprintf(`{"name":"writ_resume","arguments":%s,"_meta":{"progressToken":"p"}}`, resume))
	if said := fmt.Sprint(dig(long.until("notifications/progress"), "params", "message")); !strings.Contains(said, "a person runs: writ approval approve "+id) {
		t.Errorf("meanwhile: %q", said)
	}
	long.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, call))
	if text, failed := long.call("stat", `{"path":"a.txt"}`); failed {
		t.Error(text)
	}
	w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
	w.eventually("it runs", func() bool { _, err := os.Stat(path); return os.IsNotExist(err) })
	if text, failed := other.call("writ_resume", resume); !failed || text != nothing {
		t.Errorf("another caller, when it is over: %q", text)
	}
	if text, failed := mine.call("writ_resume", resume); failed {
		t.Errorf("its own caller: %q", text)
	}

	keyed := func(p *peer) any {
		got := p.ask("tools/call", `{"name":"write_file","arguments":{"path":"k.txt","content":"1"},"_meta":{"run.writ/idempotency_key":"k"}}`)
		return dig(got, "result", "_meta", "run.writ/call_id")
	}
	first := keyed(mine)
	if again := keyed(mine); again != first || first == nil {
		t.Errorf("the same key again: %v, first %v", again, first)
	}
	if theirs := keyed(other); theirs == first || theirs == nil {
		t.Errorf("another caller's call with the key is %v", theirs)
	}
	w.verifies()
}

// TestMCPJoins: a call that a user was asked about is held when it is made again, so
// that a client that answers by itself does not ask without end.
func TestMCPJoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	w.write(filepath.Join(w.ws, "a.txt"), "x")
	p := w.speak("", `{"elicitation":{}}`, "--agent", "coder", "--wait", "30s")
	const call = `{"name":"delete_file","arguments":{"path":"a.txt"}}`
	if first := p.ask("tools/call", call); dig(first, "result", "inputRequests", "approval") == nil {
		t.Fatalf("the first is answered at once, with a question: %v", first)
	}
	second := p.begin("tools/call", call)
	w.must(pass+"\n", "approval", "approve", w.pending(), "--passphrase-stdin")
	if got := p.answer(second); dig(got, "result", "resultType") != "complete" {
		t.Errorf("the second: %v", got)
	}
}

// TestMCPStreamsEnd: what a token has open ends with it, and what an agent has open with
// its stop; streams are counted.
func TestMCPStreamsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	revoked, id := w.newToken()
	w.run("", "serve", "--stop")
	w.daemonGone()
	addr, _ := w.serve()
	theirs, mine := poster{t, addr, revoked}, poster{t, addr, w.token}
	listen, heads := modernly("subscriptions/listen", "", `"notifications":{"toolsListChanged":true},`)
	session, own := theirs.begin(), mine.begin()
	open := []*http.Response{theirs.send("GET", "", "Mcp-Session-Id", session), theirs.send("POST", listen, heads...)}
	stays, also := mine.send("GET", "", "Mcp-Session-Id", own), mine.send("POST", listen, heads...)
	for _, resp := range append(open, stays, also) {
		if resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	if status, got, _ := mine.ask(listen, heads...); status != 409 || dig(got, "error", "message") != "this agent has too many streams open; close some" {
		t.Errorf("a fifth stream: %d %v", status, got)
	}

	w.must("", "agent", "revoke", id)
	for n, resp := range open {
		if _, over := streamEnds(resp); !over {
			t.Errorf("stream %d of the revoked token is open", n)
		}
	}
	w.must("", "config", "reload")
	if line, err := bufio.NewReader(also.Body).ReadString('\n'); err != nil || line == "" {
		t.Errorf("the control: %q, %v", line, err)
	}
	list := `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
	if _, got, _ := mine.ask(list, "Mcp-Session-Id", own); dig(got, "result", "tools") == nil {
		t.Errorf("the control: %v", got)
	}

	w.must("", "stop", "coder")
	for n, resp := range []*http.Response{stays, also} {
		if _, over := streamEnds(resp); !over {
			t.Errorf("stream %d of the stopped agent is open", n)
		}
	}
	const stopped = "agent coder is stopped; a person lifts it with: writ stop --lift coder --as NAME"
	alone, heads := modernly("tools/list", "", "")
	for what, ask := range map[string]func() (int, map[string]any, http.Header){
		"a list in a session":    func() (int, map[string]any, http.Header) { return mine.ask(list, "Mcp-Session-Id", own) },
		"a list that is alone":   func() (int, map[string]any, http.Header) { return mine.ask(alone, heads...) },
		"the begin of a session": func() (int, map[string]any, http.Header) { return mine.ask(beginning) },
	} {
		_, got, head := ask()
		if dig(got, "error", "message") != stopped || head.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %v", what, got)
		}
	}
	_, got, _ := mine.ask(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"stat","arguments":{"path":"."}}}`, "Mcp-Session-Id", own)
	if text, failed := textOf(got); !failed || text != stopped {
		t.Errorf("a call: %v", got)
	}
	w.must(pass+"\n", "stop", "--lift", "coder", "--passphrase-stdin")
	if status, got, _ := mine.ask(list, "Mcp-Session-Id", own); status != 404 {
		t.Errorf("the session it had: %d %v", status, got)
	}
	if _, got, _ := mine.ask(list, "Mcp-Session-Id", mine.begin()); dig(got, "result", "tools") == nil {
		t.Errorf("a new one: %v", got)
	}
	w.verifies()
}

// TestMCPTasksOverRestart: a task is found after the daemon was killed: what came of it,
// what a person agrees to since, and what is taken back.
func TestMCPTasksOverRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	w.run("", "serve", "--stop")
	w.daemonGone()
	_, kill := w.serve()
	for _, name := range []string{"a.txt", "b.txt"} {
		w.write(filepath.Join(w.ws, name), "x")
	}
	p := w.speak("", takesTasks, "--agent", "coder")
	over := p.task("shell_command", `{"command":"sleep 1; echo all done"}`)
	w.eventually("it completes", func() bool { return dig(p.ofTask("get", over), "result", "status") == "completed" })
	before := dig(p.ofTask("get", over), "result", "result")
	agreed := p.task("delete_file", `{"path":"a.txt"}`)
	request := w.pending()
	if got, want := dig(p.ofTask("get", agreed), "result", "statusMessage"), fmt.Sprintf("waiting for a person to approve the call (request %s); a person runs: writ approval approve %s", request, request); got != want {
		t.Errorf("it says %q", got)
	}
	back := p.task("delete_file", `{"path":"b.txt"}`)
	kill()

	if got := dig(p.ofTask("get", agreed), "result", "status"); got != "working" {
		t.Errorf("what waits is %v", got)
	}
	if after := dig(p.ofTask("get", over), "result", "result"); before == nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("its result is\n%v\nand was\n%v", after, before)
	}
	other := w.speak("", takesTasks)
	for _, id := range []string{over, agreed, "task_none"} {
		if got := other.ofTask("get", id); dig(got, "error", "message") != "there is no such task, or what came of it is not kept any more; make the call again" {
			t.Errorf("another caller: %v", got)
		}
	}
	p.ofTask("cancel", back)
	w.eventually("one is taken back", func() bool { return strings.Count(w.must("", "approval", "list", "--state", "pending"), "call_") == 1 })
	if got := dig(p.ofTask("get", back), "result", "status"); got != "cancelled" {
		t.Errorf("what was taken back is %v", got)
	}
	w.must(pass+"\n", "approval", "approve", request, "--passphrase-stdin")
	w.eventually("it completes", func() bool { return dig(p.ofTask("get", agreed), "result", "status") == "completed" })
	if got := p.ofTask("get", agreed); dig(got, "result", "result", "isError") == true || dig(got, "result", "result", "content") == nil {
		t.Errorf("its result: %v", got)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "a.txt")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	w.verifies()
}

// TestMCPServerStarts: a server that takes its time is waited for by the first list, and
// a call of what a person accepted says that it starts, or cannot be reached.
func TestMCPServerStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated\nautonomy: full\nallowed: [\"@srv\"]", "")
	dir := filepath.Join(w.home, "server")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "server"), "./testdata/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.offer(filepath.Join(dir, "tools.json"), map[string]string{"look": `{"readOnlyHint":true}`})
	how := func(text string) { w.write(filepath.Join(dir, "how"), text) }
	how("")
	w.write(filepath.Join(dir, "start"), fmt.Sprintf(". %s/how\nexec %s/server %s/tools.json\n", dir, dir, dir))
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "upstreams:\n  srv:\n    command: [/bin/sh, %q]\n    read: [%q]\n", filepath.Join(dir, "start"), dir)
	f.Close()
	w.init()
	w.takeUp("srv__look")
	restart := func(text string) *peer {
		w.run("", "serve", "--stop")
		w.daemonGone()
		how(text)
		return w.speak("2025-11-25", `{}`, "--agent", "coder")
	}

	p := restart("sleep 1\n")
	if names := strings.Join(p.names(), " "); !strings.Contains(names, "srv__look") {
		t.Errorf("the first list: %s", names)
	}
	if text, failed := p.call("srv__look", `{}`); failed {
		t.Error(text)
	}
	p = restart("sleep 60\n")
	if text, failed := p.call("srv__look", `{}`); !failed || text != "server srv, whose tool srv__look is, is starting; nothing was done, try again in a moment" {
		t.Errorf("while it starts: %q", text)
	}
	if text, _ := p.call("srv__other", `{}`); !strings.Contains(text, "there is no tool") && !strings.Contains(text, "not connected") {
		t.Errorf("what nobody accepted: %q", text)
	}
	p = restart("exit 1\n")
	w.eventually("it says that it is not there", func() bool {
		text, failed := p.call("srv__look", `{}`)
		return failed && text == "server srv, whose tool srv__look is, is not connected; nothing was done, try again in a moment"
	})
}

// TestMCPHeaders: what a request by hand lacks is named, and how it is sent.
func TestMCPHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	w.run("", "serve", "--stop")
	w.daemonGone()
	addr, _ := w.serve()
	p := poster{t, addr, w.token}
	call, heads := modernly("tools/call", "stat", `"name":"stat","arguments":{"path":"."},`)
	if _, got, _ := p.ask(call, heads...); dig(got, "result", "resultType") != "complete" {
		t.Fatalf("the control: %v", got)
	}
	const spoken = "2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"
	for want, c := range map[string]struct {
		body    string
		headers []string
	}{
		`the header Writ-Wait is "soon"; write seconds, or a number with its unit, such as 90 or 5m`:                               {call, append(heads[:6:6], "Writ-Wait", "soon")},
		"the header Mcp-Method is missing; send Mcp-Method: tools/call":                                                            {call, heads[:2]},
		"the header Mcp-Name is missing; send Mcp-Name: stat":                                                                      {call, heads[:4]},
		"the header MCP-Protocol-Version is missing; send MCP-Protocol-Version: 2026-07-28":                                        {call, heads[2:]},
		`the header Mcp-Name is "delete_file" and the message says "stat"; send the same`:                                          {call, append(heads[:4:4], "Mcp-Name", "delete_file")},
		"the header MCP-Protocol-Version is 2025-11-25 and params._meta says 2026-07-28; send the same":                            {call, append(heads[2:6:6], "Mcp-Protocol-Version", "2025-11-25")},
		`protocol version "2027-01-01" is not spoken here; use one of ` + spoken:                                                   {strings.Replace(call, "2026-07-28", "2027-01-01", 1), append(heads[2:6:6], "Mcp-Protocol-Version", "2027-01-01")},
		`initialize: params.protocolVersion is a string, such as "2025-11-25"`:                                                     {strings.Replace(beginning, `"2025-11-25"`, "5", 1), nil},
		"initialize: params are not as the protocol has them; capabilities and clientInfo are objects, names and versions strings": {strings.Replace(beginning, `{"name":"t","version":"1"}`, `"t"`, 1), nil},
	} {
		status, got, head := p.ask(c.body, c.headers...)
		if status != 400 || dig(got, "error", "message") != want || head.Get("Mcp-Session-Id") != "" {
			t.Errorf("%q: %d %v %q", want, status, got, head.Get("Mcp-Session-Id"))
		}
	}
	list, heads := modernly("tools/list", "", `"cursor":"bogus",`)
	if _, got, _ := p.ask(list, heads...); dig(got, "error", "code") != float64(-32602) {
		t.Errorf("a cursor that is none: %v", got)
	}
}
