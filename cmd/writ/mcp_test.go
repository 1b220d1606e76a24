package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// peer is an MCP client that speaks to 'writ mcp' by hand, a line a message.
type peer struct {
	t      testing.TB
	in     io.WriteCloser
	lines  chan map[string]any
	modern bool
	caps   string // the client's capabilities, JSON
	id     int
	aside  []map[string]any // notifications, and requests to us, that came before an answer
}

// speak starts a client. version is the one it begins a session with; empty: it speaks
// 2026-07-28, and has none.
func (w *world) speak(version, caps string, args ...string) *peer {
	w.t.Helper()
	cmd := exec.Command(program, append([]string{"mcp"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = w.env(), w.home, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &peer{t: w.t, in: in, lines: make(chan map[string]any, 1000), modern: version == "", caps: caps}
	go func() {
		defer close(p.lines)
		r := bufio.NewScanner(out)
		r.Buffer(nil, 32<<20)
		for r.Scan() {
			var m map[string]any
			if json.Unmarshal(r.Bytes(), &m) == nil {
				p.lines <- m
			}
		}
	}()
	w.t.Cleanup(func() {
		in.Close()
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			w.t.Error("writ mcp does not end with its input")
		}
	})
	if !p.modern {
		got := p.ask("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"test","version":"1"}}`, version, caps))
		if v := dig(got, "result", "protocolVersion"); v != version {
			w.t.Fatalf("negotiated %v, want %v: %v", v, version, got)
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// begin sends a request and does not wait for its answer. params is an object.
func (p *peer) begin(method, params string) int {
	p.t.Helper()
	if p.modern {
		params = strings.Replace(params, "{", `{"_meta":{`+p.meta()[1:]+`},`, 1)
		params = strings.Replace(params, ",}", "}", 1)
	}
	return p.beginWith(method, params)
}

// meta is what a request that stands alone carries in its _meta, with a comma before it.
func (p *peer) meta() string {
	if !p.modern {
		return ""
	}
	return `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + p.caps
}

// beginWith is begin with params as they are.
func (p *peer) beginWith(method, params string) int {
	p.t.Helper()
	p.id++
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, p.id, method, params))
	return p.id
}

// answer waits for the answer to a request.
func (p *peer) answer(id int) map[string]any {
	p.t.Helper()
	for {
		m := p.next()
		if _, asks := m["method"]; !asks && fmt.Sprint(m["id"]) == fmt.Sprint(id) {
			return m
		}
		p.aside = append(p.aside, m)
	}
}

// next is the next message of the server.
func (p *peer) next() map[string]any {
	p.t.Helper()
	select {
	case m, ok := <-p.lines:
		if !ok {
			p.t.Fatal("writ mcp ended")
		}
		return m
	case <-time.After(60 * time.Second):
		p.t.Fatal("no message")
	}
	return nil
}

// until waits for a message of the server's own with a method.
func (p *peer) until(method string) map[string]any {
	p.t.Helper()
	for {
		for i, m := range p.aside {
			if m["method"] == method {
				p.aside = append(p.aside[:i], p.aside[i+1:]...)
				return m
			}
		}
		p.aside = append(p.aside, p.next())
	}
}

func (p *peer) askWith(method, params string) map[string]any {
	return p.answer(p.beginWith(method, params))
}

func (p *peer) ask(method, params string) map[string]any { return p.answer(p.begin(method, params)) }

// call calls a tool: the text of its result and whether it is an error, or the error
// of the protocol.
func (p *peer) call(tool, args string) (text string, failed bool) {
	p.t.Helper()
	return textOf(p.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)))
}

func textOf(m map[string]any) (text string, failed bool) {
	if e := dig(m, "error", "message"); e != nil {
		return fmt.Sprint(e), true
	}
	blocks, _ := dig(m, "result", "content").([]any)
	var parts []string
	for _, b := range blocks {
		parts = append(parts, fmt.Sprint(dig(b, "text")))
	}
	return strings.Join(parts, "\n"), dig(m, "result", "isError") == true
}

// dig follows keys into JSON.
func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

func (p *peer) names() []string {
	p.t.Helper()
	var out []string
	tools, _ := dig(p.ask("tools/list", `{}`), "result", "tools").([]any)
	for _, t := range tools {
		out = append(out, fmt.Sprint(dig(t, "name")))
	}
	return out
}

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Fatalf("it does not come to pass: %s", what)
}

const asksToDelete = "denied: [move_file]\noverrides: {requires_approval: [\"code:delete\"], code_execution: process}"

// eras are the ways a client can speak.
var eras = map[string]string{"2026-07-28": "", "2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05"}

// TestMCPCalls is the plain use, in every version of the protocol: what is listed is
// what may be used, an allowed call has its effect, a denied one has none.
func TestMCPCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	for name, version := range eras {
		t.Run(name, func(t *testing.T) {
			p := w.speak(version, `{}`, "--agent", "coder")
			names := strings.Join(p.names(), " ")
			if !strings.Contains(names, "write_file") || strings.Contains(names, "move_file") {
				t.Errorf("listed: %s", names)
			}
			file := "from-" + name + ".txt"
			if text, failed := p.call("write_file", fmt.Sprintf(`{"path":%q,"content":"hi"}`, file)); failed {
				t.Errorf("write_file: %s", text)
			}
			if b, err := os.ReadFile(filepath.Join(w.ws, file)); string(b) != "hi" {
				t.Errorf("the file is %q, %v", b, err)
			}
			if text, failed := p.call("move_file", fmt.Sprintf(`{"from":%q,"to":"elsewhere"}`, file)); !failed || !strings.Contains(text, "denied: ") {
				t.Errorf("move_file: %q, failed %v", text, failed)
			}
			if text, failed := p.call("read_file", `{"path":"/etc/shadow"}`); !failed || !strings.Contains(text, "denied: ") {
				t.Errorf("read_file: %q, failed %v", text, failed)
			}
			if text, failed := p.call("read_file", `{"path":5}`); !failed || !strings.Contains(text, "path") {
				t.Errorf("a wrong argument: %q", text)
			}
			if text, failed := p.call("raed_file", `{}`); !failed || !strings.Contains(text, "did you mean read_file") {
				t.Errorf("an unknown tool: %q", text)
			}
			if _, err := os.Stat(filepath.Join(w.ws, file)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMCPApproval has a person asked, in each way that a client can wait.
func TestMCPApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	file := func(name string) string {
		path := filepath.Join(w.ws, name)
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.own(path)
		return path
	}
	gone := func(t *testing.T, path string, want bool) {
		t.Helper()
		if _, err := os.Stat(path); os.IsNotExist(err) != want {
			t.Errorf("%s gone: %v, want %v", filepath.Base(path), os.IsNotExist(err), want)
		}
	}
	t.Run("writ_resume, over a restart", func(t *testing.T) {
		w.run("", "serve", "--stop")
		w.daemonGone()
		_, kill := w.serve()
		path := file("a.txt")
		p := w.speak("2025-06-18", `{}`, "--agent", "coder", "--wait", "1s")
		text, failed := p.call("delete_file", `{"path":"a.txt"}`)
		if !failed || !strings.Contains(text, "approval_pending: ") {
			t.Fatal(text, failed)
		}
		id := w.pending()
		if !strings.Contains(text, id) || !strings.Contains(text, "writ_resume") {
			t.Errorf("it does not say how to come back: %s", text)
		}
		gone(t, path, false)
		kill()
		w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
		if text, failed := p.call("writ_resume", fmt.Sprintf(`{"id":%q}`, id)); failed {
			t.Fatalf("resume: %s", text)
		}
		gone(t, path, true)
		if text, failed := p.call("writ_resume", fmt.Sprintf(`{"id":%q}`, id)); !failed || !strings.Contains(text, "handed over already") {
			t.Errorf("a second time: %q", text)
		}
	})
	t.Run("writ_resume, of a daemon that was killed while the call waited", func(t *testing.T) {
		w.run("", "serve", "--stop")
		w.daemonGone()
		_, kill := w.serve()
		path := file("lost.txt")
		p := w.speak("2025-06-18", `{}`, "--agent", "coder", "--wait", "60s")
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for t.Context().Err() == nil && !strings.Contains(w.run("", "approval", "list").out, "delete_file") {
				time.Sleep(100 * time.Millisecond)
			}
			kill()
		}()
		text, failed := p.call("delete_file", `{"path":"lost.txt"}`)
		<-killed
		if !failed || !strings.Contains(text, "approval_pending: ") || !strings.Contains(text, "writ_resume") {
			t.Fatal(text, failed)
		}
		if again := w.pending(); !strings.Contains(text, again) {
			t.Errorf("it does not say how to come back to %s: %s", again, text)
		} else {
			w.must(pass+"\n", "approval", "approve", again, "--passphrase-stdin")
			if text, failed := p.call("writ_resume", fmt.Sprintf(`{"id":%q}`, again)); failed {
				t.Fatalf("resume: %s", text)
			}
		}
		gone(t, path, true)
	})
	t.Run("requestState", func(t *testing.T) {
		path := file("b.txt")
		p := w.speak("", `{}`, "--agent", "coder", "--wait", "1s")
		const call = `{"name":"delete_file","arguments":{"path":"b.txt"}%s}`
		first := p.ask("tools/call", fmt.Sprintf(call, ""))
		state, _ := dig(first, "result", "requestState").(string)
		if dig(first, "result", "resultType") != "input_required" || state == "" {
			t.Fatal(first)
		}
		with := func(s string) string { return fmt.Sprintf(call, fmt.Sprintf(`,"requestState":%q`, s)) }
		if again := p.ask("tools/call", with(state)); dig(again, "result", "resultType") != "input_required" {
			t.Errorf("the control: %v", again)
		}
		w.must(pass+"\n", "approval", "approve", w.pending(), "--passphrase-stdin")
		flip := []byte(state)
		flip[len(flip)/2] ^= 1
		for what, params := range map[string]string{
			"tampered":  with(string(flip)),
			"cut":       with(state[:len(state)-4]),
			"made up":   with("eyJhZ2VudCI6ImNvZGVyIn0"),
			"elsewhere": strings.Replace(with(state), "b.txt", "a.txt", 1),
		} {
			if got := p.ask("tools/call", params); dig(got, "error", "code") != float64(-32602) {
				t.Errorf("%s: %v", what, got)
			}
		}
		if text, failed := textOf(p.ask("tools/call", with(state))); failed {
			t.Errorf("resume: %s", text)
		}
		gone(t, path, true)
		file("b.txt")
		if text, failed := textOf(p.ask("tools/call", with(state))); !failed || !strings.Contains(text, "handed over already") {
			t.Errorf("replayed: %q", text)
		}
		gone(t, path, false)
	})
	t.Run("another agent's state", func(t *testing.T) {
		file("c.txt")
		p := w.speak("", `{}`, "--agent", "coder", "--wait", "1s")
		state, _ := dig(p.ask("tools/call", `{"name":"delete_file","arguments":{"path":"c.txt"}}`), "result", "requestState").(string)
		id := w.pending()
		other := w.speak("", `{}`) // the same agent, by its token: another caller
		got := other.ask("tools/call", fmt.Sprintf(`{"name":"delete_file","arguments":{"path":"c.txt"},"requestState":%q}`, state))
		if dig(got, "error", "code") != float64(-32602) {
			t.Error(got)
		}
		w.must(pass+"\n", "approval", "reject", id, "--passphrase-stdin", "--reason", "keep it")
		text, failed := textOf(p.ask("tools/call", fmt.Sprintf(`{"name":"delete_file","arguments":{"path":"c.txt"},"requestState":%q}`, state)))
		if !failed || !strings.Contains(text, "keep it") {
			t.Errorf("rejected: %q", text)
		}
	})
	t.Run("elicitation", func(t *testing.T) {
		path := file("d.txt")
		p := w.speak("2025-11-25", `{"elicitation":{}}`, "--agent", "coder", "--wait", "60s")
		call := p.begin("tools/call", `{"name":"delete_file","arguments":{"path":"d.txt"}}`)
		asked := p.until("elicitation/create")
		id := w.pending()
		if msg := fmt.Sprint(dig(asked, "params", "message")); !strings.Contains(msg, id) {
			t.Errorf("the question: %s", msg)
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{}}}`, asked["id"]))
		gone(t, path, false) // what the client's user says approves nothing
		w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
		if text, failed := textOf(p.answer(call)); failed {
			t.Error(text)
		}
		gone(t, path, true)
	})
	t.Run("elicitation declined", func(t *testing.T) {
		path := file("e.txt")
		p := w.speak("2025-11-25", `{"elicitation":{}}`, "--agent", "coder", "--wait", "60s")
		call := p.begin("tools/call", `{"name":"delete_file","arguments":{"path":"e.txt"},"_meta":{"progressToken":"tok"}}`)
		asked := p.until("elicitation/create")
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"decline"}}`, asked["id"]))
		if text, failed := textOf(p.answer(call)); !failed || !strings.Contains(text, "approval_pending") {
			t.Errorf("%q, failed %v", text, failed)
		}
		if got := p.until("notifications/progress"); dig(got, "params", "progressToken") != "tok" {
			t.Error(got)
		}
		gone(t, path, false)
	})
}

// TestMCPCancel has a client take back what runs, and what waits.
func TestMCPCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	p := w.speak("2025-11-25", `{}`, "--agent", "coder", "--wait", "60s")
	id := p.begin("tools/call", `{"name":"shell_command","arguments":{"command":"echo on > on; sleep 300; echo over > over"}}`)
	w.eventually("it runs", func() bool { _, err := os.Stat(filepath.Join(w.ws, "on")); return err == nil })
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	w.eventually("it is cancelled", func() bool {
		return strings.Contains(w.must("", "invocation", "list"), "cancelled")
	})
	if text, failed := p.call("stat", `{"path":"on"}`); failed { // the session goes on, and the cancelled call has no answer
		t.Error(text)
	}
	if len(p.aside) != 0 {
		t.Errorf("also came: %v", p.aside)
	}
	if err := os.WriteFile(filepath.Join(w.ws, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	id = p.begin("tools/call", `{"name":"delete_file","arguments":{"path":"f"}}`)
	w.eventually("it waits", func() bool { return strings.Contains(w.must("", "approval", "list", "--state", "pending"), "call_") })
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	w.eventually("nobody is asked any more", func() bool { return !strings.Contains(w.must("", "approval", "list", "--state", "pending"), "call_") })
}
