package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const takesTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// task calls a tool that takes long, and is the id of what it became.
func (p *peer) task(tool, args string) string {
	p.t.Helper()
	got := p.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	id, _ := dig(got, "result", "taskId").(string)
	if dig(got, "result", "resultType") != "task" || dig(got, "result", "status") != "working" || id == "" {
		p.t.Fatalf("%s: %v", tool, got)
	}
	return id
}

func (p *peer) ofTask(method, id string) map[string]any {
	p.t.Helper()
	return p.ask("tasks/"+method, fmt.Sprintf(`{"taskId":%q}`, id))
}

// TestMCPTasks has calls that take long become tasks: one that waits for a person, one
// that its client takes back while it waits, and one that runs.
func TestMCPTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	p := w.speak("", takesTasks, "--agent", "coder")
	if text, failed := p.call("write_file", `{"path":"a.txt","content":"x"}`); failed {
		t.Fatalf("a call that is short: %s", text)
	}
	path := filepath.Join(w.ws, "a.txt")

	id := p.task("delete_file", `{"path":"a.txt"}`)
	request := w.pending()
	if got := fmt.Sprint(dig(p.ofTask("get", id), "result", "statusMessage")); !strings.Contains(got, request) {
		t.Errorf("it says %q of request %s", got, request)
	}
	other := w.speak("", takesTasks) // the same agent, by its token: another caller
	if got := other.ofTask("get", id); dig(got, "error", "code") != float64(-32602) {
		t.Errorf("another caller: %v", got)
	}
	plain := w.speak("", `{}`, "--agent", "coder")
	if got := plain.ofTask("get", id); dig(got, "error", "code") != float64(-32021) {
		t.Errorf("without the extension: %v", got)
	}
	w.must(pass+"\n", "approval", "approve", request, "--passphrase-stdin")
	w.eventually("it completes", func() bool { return dig(p.ofTask("get", id), "result", "status") == "completed" })
	if got := p.ofTask("get", id); strings.Contains(fmt.Sprint(dig(got, "result", "result", "isError")), "true") {
		t.Errorf("its result: %v", got)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}

	w.write(path, "x")
	id = p.task("delete_file", `{"path":"a.txt"}`)
	if w.pending() == "" {
		t.Error("nobody is asked")
	}
	if got := p.ofTask("cancel", id); dig(got, "result", "resultType") != "complete" {
		t.Errorf("cancelled: %v", got)
	}
	w.eventually("nobody is asked any more", func() bool { return !strings.Contains(w.must("", "approval", "list", "--state", "pending"), "call_") })
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}

	id = p.task("shell_command", `{"command":"echo on > on; sleep 300; echo over > over"}`)
	w.eventually("it runs", func() bool { _, err := os.Stat(filepath.Join(w.ws, "on")); return err == nil })
	p.ofTask("cancel", id)
	w.eventually("it is killed", func() bool { return strings.Contains(w.must("", "invocation", "list"), "cancelled") })
	if got := dig(p.ofTask("get", id), "result", "status"); got != "cancelled" {
		t.Errorf("it is %v", got)
	}
	w.verifies()
}
