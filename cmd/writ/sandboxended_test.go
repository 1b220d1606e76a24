package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ/client"
)

func (w *world) endedSandboxes() []client.Sandbox {
	w.t.Helper()
	var all []client.Sandbox
	if err := json.Unmarshal([]byte(w.must("", "sandbox", "list", "--ended", "--json")), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// What boxes there were is known after the daemon: one that ended, and one that was there
// when the daemon was killed.
func TestSandboxEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {terminal: full}\n", "sandboxing: {lifecycle: {strategy: per-agent, idle: 1h}}\n").init()
	_, kill := w.serve()
	if got := w.endedSandboxes(); len(got) != 0 {
		t.Fatalf("before anything ran: %+v", got)
	}
	w.shell("true")
	killed := w.settled(1)[0]
	w.must("", "sandbox", "kill", killed.ID)
	w.shell("true")
	w.shell("true")
	left := w.settled(1)[0]
	waitFor(t, func() bool { return len(w.endedSandboxes()) == 1 }) // notes are taken beside the calls
	kill()
	ended := w.endedSandboxes()
	if len(ended) != 2 || ended[0].ID != left.ID || ended[1].ID != killed.ID {
		t.Fatalf("%+v, of %s and %s", ended, left.ID, killed.ID)
	}
	if b := ended[0]; !b.Lost || b.Ended == "" || b.Agent != "coder" || b.Driver != "native" || !b.Kept {
		t.Errorf("the one that was left: %+v", b)
	}
	if b := ended[1]; b.Lost || b.Ended == "" || b.Calls != 1 {
		t.Errorf("the one that was killed: %+v", b)
	}
	if slices.ContainsFunc(w.sandboxes(), func(b client.Sandbox) bool { return b.ID == left.ID }) {
		t.Error("one of a daemon before is said to be there")
	}
	var shown client.Sandbox
	if err := json.Unmarshal([]byte(w.must("", "sandbox", "show", left.ID, "--json")), &shown); err != nil || !shown.Lost || shown.Session != left.Session {
		t.Errorf("%+v, %v", shown, err)
	}
	if o := w.run("", "sandbox", "logs", left.ID); o.code != 0 || !strings.Contains(o.err, "is not kept any more") {
		t.Errorf("its log: %+v", o)
	}
	if o := w.run("", "sandbox", "kill", left.ID); o.code != 1 || !strings.Contains(o.err, "has ended already") {
		t.Errorf("killing it: %+v", o)
	}
}
