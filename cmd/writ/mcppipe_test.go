package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// begun are the lines that begin a session.
const begun = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// alone is what a request of 2026-07-28 has in its params.
const alone = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// piped gives 'writ mcp' a whole input, and has its answers by id.
func (w *world) piped(input string, args ...string) map[string]map[string]any {
	w.t.Helper()
	o := w.run(input, append([]string{"mcp", "--agent", "coder"}, args...)...)
	if o.code != 0 || o.err != "" {
		w.t.Errorf("exit %d: %s", o.code, o.err)
	}
	got := map[string]map[string]any{}
	for line := range strings.Lines(o.out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			w.t.Fatalf("%v: %q", err, line)
		}
		if _, asks := m["method"]; !asks {
			id, _ := json.Marshal(m["id"])
			got[string(id)] = m
		}
	}
	return got
}

// states are those of all calls of a tool.
func (w *world) states(tool string) []string {
	w.t.Helper()
	var list []struct{ Tool, Status string }
	if err := json.Unmarshal([]byte(w.must("", "invocation", "list", "--state", "all", "--json")), &list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, i := range list {
		if i.Tool == tool {
			out = append(out, i.Status)
		}
	}
	return out
}

// TestPipeAnswersWhatItRead has the input end before the answers are there.
func TestPipeAnswersWhatItRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"shell_command","arguments":{"command":"sleep 1; echo made > %s; echo over"}%s}}` + "\n"
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s}}` + "\n"
	for name, input := range map[string]string{
		"session": begun + fmt.Sprintf(call, 1, "session", "") + fmt.Sprintf(list, ""),
		"alone":   fmt.Sprintf(call, 1, "alone", ","+alone) + strings.TrimSuffix(fmt.Sprintf(list, alone), "\n"),
	} {
		got := w.piped(input)
		if text, failed := textOf(got["1"]); failed || !strings.Contains(text, "over") {
			t.Errorf("%s: the call: %v", name, got["1"])
		}
		if tools, _ := dig(got["2"], "result", "tools").([]any); len(tools) < 5 {
			t.Errorf("%s: the list: %v", name, got["2"])
		}
		if _, err := os.Stat(filepath.Join(w.ws, name)); err != nil {
			t.Error(err)
		}
	}
	if got := w.states("shell_command"); !slices.Equal(got, []string{"completed", "completed"}) {
		t.Errorf("recorded: %v", got)
	}
	got := w.piped(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	if text, _ := textOf(got["3"]); !strings.HasPrefix(text, "there is no session: send initialize first") {
		t.Errorf("without a session: %v", got)
	}
	listen := fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`+"\n", alone)
	if got := w.piped(listen + fmt.Sprintf(list, alone)); got["2"] == nil { // what never ends is not waited for
		t.Errorf("beside a stream: %v", got)
	}
}

// TestPipeLeavesRequests has a client end while a person is asked: its input, or the
// process. What was asked stays, and is answered when somebody agrees.
func TestPipeLeavesRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	w.write(filepath.Join(w.ws, "a.txt"), "x")
	w.write(filepath.Join(w.ws, "b.txt"), "x")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_file","arguments":{"path":%q}}}` + "\n"
	got := w.piped(begun+fmt.Sprintf(call, "a.txt"), "--wait", "1s")
	id := w.pending()
	if text, failed := textOf(got["1"]); !failed || !strings.HasPrefix(text, "approval_pending: ") || !strings.Contains(text, id) {
		t.Errorf("the input ended: %v", got)
	}
	w.must(pass+"\n", "approval", "reject", id, "--passphrase-stdin", "--reason", "keep it")

	end := w.began(begun + fmt.Sprintf(call, "b.txt"))
	w.eventually("it waits", func() bool { return strings.Contains(w.must("", "approval", "list", "--state", "pending"), "call_") })
	end()
	w.must(pass+"\n", "approval", "approve", w.pending(), "--passphrase-stdin")
	w.eventually("it runs", func() bool { _, err := os.Stat(filepath.Join(w.ws, "b.txt")); return os.IsNotExist(err) })
}

// TestPipeIsEnded has a signal end the pipe while a call runs. In a session it goes on
// to its end; one that stands alone is cancelled with its request. Neither was denied.
func TestPipeIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell_command","arguments":{"command":"echo on > on-%s; sleep 3; echo over"}%s}}` + "\n"
	for i, c := range []struct{ name, input, want string }{
		{"session", begun + fmt.Sprintf(call, "session", ""), "completed"},
		{"alone", fmt.Sprintf(call, "alone", ","+alone), "cancelled"},
	} {
		end := w.began(c.input)
		w.eventually("it runs", func() bool { _, err := os.Stat(filepath.Join(w.ws, "on-"+c.name)); return err == nil })
		end()
		w.eventually(c.name+" is "+c.want, func() bool {
			got := w.states("shell_command")
			if len(got) != i+1 {
				t.Fatalf("%s: recorded %v", c.name, got)
			}
			return slices.Contains(got, c.want)
		})
	}
}

// began gives 'writ mcp' the beginning of an input; end has it end by a signal.
func (w *world) began(input string) (end func()) {
	w.t.Helper()
	cmd := exec.Command(program, "mcp", "--agent", "coder")
	cmd.Env, cmd.Dir, cmd.Stderr = w.env(), w.home, os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = io.WriteString(in, input)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			w.t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("it ended with %v", err)
		}
	}
}

// TestPipeRefusesNonsense has everything answered that could be waited for, and
// nothing else.
func TestPipeRefusesNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "").init()
	const ping = `{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n"
	for line, code := range map[string]float64{
		`garbage`: -32700,
		`{"jsonrpc":"2.0","id":7,"method":"ping"`:    -32700,
		`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`: -32600,
		`7`:  -32600,
		`{}`: -32600,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`: -32600,
	} {
		got := w.piped(begun + line + "\n" + ping)
		if dig(got["null"], "error", "code") != code {
			t.Errorf("%s: %v, want %v", line, got["null"], code)
		}
		if got["9"]["result"] == nil || len(got) != 3 {
			t.Errorf("%s: the session does not go on: %v", line, got)
		}
	}
	for _, line := range []string{`{"jsonrpc":"2.0","method":"notifications/unheard"}`, `{"method":"notifications/unheard"}`, `{"jsonrpc":"2.0","id":"writ-7","result":{}}`, `{"id":"writ-7","error":{}}`, ""} {
		if got := w.piped(begun + line + "\n" + ping); got["9"]["result"] == nil || len(got) != 2 {
			t.Errorf("%s: %v", line, got)
		}
	}
	got := w.piped(begun + `{"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}` + "\n" + ping)
	if dig(got["7"], "error", "code") != float64(-32700) || len(got) != 3 {
		t.Errorf("an id that can be told: %v", got)
	}
}

// TestPipeTellsOfARestart has a client learn that what it knows may not be so any more:
// when it asks something, and when it does not.
func TestPipeTellsOfARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "").init()
	w.run("", "serve", "--stop")
	w.daemonGone()
	_, kill := w.serve()
	p := w.speak("2025-06-18", `{}`, "--agent", "coder")
	p.names()
	if len(p.aside) != 0 {
		t.Errorf("before: %v", p.aside)
	}
	told := func() {
		t.Helper()
		for _, list := range []string{"tools", "resources", "prompts"} {
			p.until("notifications/" + list + "/list_changed")
		}
	}
	kill()
	p.names()
	told()
	w.run("", "serve", "--stop")
	w.daemonGone()
	w.serve()
	told()
}
