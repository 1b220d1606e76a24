package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// A new configuration is swapped in whole; one that does not hold changes nothing.
func TestReload(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	before := f.Config().Digest
	_, err := f.call("look", args(1))
	f.must(err)
	for name, text := range map[string]string{
		"version: must be 1":             strings.Replace(agentsText, "version: 1", "version: 2", 1),
		"unknown key":                    agentsText + "toolz: {}\n",
		"there is no such tool":          agentsText + "tools: {lok: {disabled: true}}\n",
		"read at the start only: store":  strings.Replace(agentsText, "$DIR/state", "$DIR/other", 1),
		"read at the start only: listen": strings.Replace(agentsText, "127.0.0.1:0", "127.0.0.1:1", 1),
	} {
		f.write("writ.yaml", text)
		if _, err := f.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "stays in force") {
			t.Errorf("%s: %v", name, err)
		}
		if f.Config().Digest != before {
			t.Fatal("something changed")
		}
	}
	f.write("writ.yaml", agentsText+"tools: {look: {disabled: true}}\n")
	if _, err := f.call("look", args(1)); err != nil {
		t.Errorf("before the reload: %v", err)
	}
	_, err = f.Reload(t.Context())
	f.must(err)
	_, err = f.call("look", args(1))
	wants(t, err, writ.Denied, "tool look is disabled")
	if n := f.kinds()["config.reloaded"]; n != 1 {
		t.Errorf("recorded %d times", n)
	}
}

// A call in flight keeps what it was decided under.
func TestReloadKeepsRunningCalls(t *testing.T) {
	began, hold := make(chan struct{}), make(chan struct{})
	f := newFixture(t, agentsText, Options{Tools: []Tool{probe("long", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) {
		close(began)
		<-hold
		return text("done"), nil
	})}})
	done := make(chan error)
	go func() {
		_, err := f.call("long", args(1))
		done <- err
	}()
	<-began
	f.write("writ.yaml", agentsText+"tools: {long: {disabled: true}}\n")
	_, err := f.Reload(t.Context())
	f.must(err)
	close(hold)
	f.must(<-done)
}

// What people agreed to under the old configuration is decided again: asked anew, or
// denied, or let through without them.
func TestReloadDecidesApprovalsAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		kind   writ.Kind
	}{
		"still asks":   {"tools: {erase: {requires_approval: true}}\n", writ.Pending},
		"now denied":   {"tools: {erase: {disabled: true}}\n", writ.Denied},
		"now free":     {"", ""},
		"same as ever": {"# a comment\n", writ.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			f := newFixture(t, asking, s.options())
			_, err := f.call("erase", args(1))
			wants(t, err, writ.Pending, "")
			old := f.pending()[0]
			text := asking + tt.change
			if name == "now free" {
				text = strings.Replace(asking, `["code:delete"]`, `["deploy"]`, 1)
			}
			f.write("writ.yaml", text)
			_, err = f.Reload(t.Context())
			f.must(err)
			now, err := f.Desk().Show(t.Context(), old.ID)
			f.must(err)
			if want := map[bool]string{true: "pending", false: "void"}[name == "same as ever"]; now.State != want {
				t.Errorf("the request is %s, want %s", now.State, want)
			}
			_, err = f.call("erase", args(1))
			if tt.kind == "" {
				f.must(err)
			} else {
				wants(t, err, tt.kind, "")
			}
			if ran := strings.Count(s.said(), "w1"); (ran == 1) != (err == nil) {
				t.Errorf("ran %d times: %v", ran, err)
			}
		})
	}
}

// Somebody who waits for an answer is told that the question is gone.
func TestReloadWakesWaiting(t *testing.T) {
	s := newStage()
	f := newFixture(t, asking, s.options())
	done := make(chan error)
	go func() {
		_, err := f.call("erase", args(1), func(c *Call) { c.Patience = 1 << 40 })
		done <- err
	}()
	for {
		if len(f.pending()) == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	f.write("writ.yaml", asking+"approvals: {expiry: 2h}\n")
	_, err := f.Reload(t.Context())
	f.must(err)
	wants(t, <-done, writ.Changed, "make the call again")
}

const countTool = `name: count
description: Counts words.
category: file_system
action_type: code:read
egress_class: none
policy: {risk: low, filesystem: {read: ["/**"]}}
parameters: {type: object, properties: {file: {type: string, x-writ-path: read}}, required: [file]}
runner: {process: {argv: [wc, -w, --, {arg: file}]}}
`

// A definition from a file is suspended until a person accepts exactly it, and again
// when it changes, also while the daemon was down (I8).
func TestSuspension(t *testing.T) {
	f := newFixture(t, agentsText, Options{})
	f.write("tools/count.yaml", countTool)
	reload := func() {
		t.Helper()
		_, err := f.Reload(t.Context())
		f.must(err)
	}
	use := func() error {
		d, err := f.Explain(t.Context(), Call{Agent: "coder", Tool: "count", Args: []byte(`{"file":"a"}`)})
		f.must(err)
		for _, r := range d.Reasons {
			if r.Source == "suspended" {
				return writ.Fail(writ.Denied, r.Text, nil)
			}
		}
		return nil
	}
	reload()
	wants(t, use(), writ.Denied, "tool count is new and suspended until a person accepts it: writ tool accept count")
	_, err := f.call("count", map[string]any{"file": "a"})
	wants(t, err, writ.Denied, "suspended")
	d, err := f.DiffTool("count")
	f.must(err)
	if d.Accepted != "" || len(d.Changes) < 10 {
		t.Errorf("%+v", d)
	}
	f.alice()
	wants(t, f.AcceptTool(t.Context(), "count", d.Digest, Credentials{"alice", "wrong wrong"}), writ.Unauthenticated, "")
	wants(t, f.AcceptTool(t.Context(), "count", strings.Repeat("0", 64), f.alice()), writ.Changed, "is not the one that was shown")
	wants(t, f.AcceptTool(t.Context(), "read_file", d.Digest, f.alice()), writ.NotFound, "is part of the program")
	wants(t, f.AcceptTool(t.Context(), "cout", d.Digest, f.alice()), writ.NotFound, "did you mean count?")
	f.must(f.AcceptTool(t.Context(), "count", d.Digest, f.alice()))
	f.must(use())
	wants(t, f.AcceptTool(t.Context(), "count", d.Digest, f.alice()), writ.Conflict, "accepted as it is already")

	f.write("tools/count.yaml", strings.Replace(countTool, "[wc, -w,", "[wc, -c,", 1))
	f.must(use()) // not read yet
	f.reopen(Options{})
	wants(t, use(), writ.Denied, "tool count changed and is suspended")
	d, err = f.DiffTool("count")
	f.must(err)
	if len(d.Changes) != 1 || d.Changes[0].Was != `"-w"` || d.Changes[0].Is != `"-c"` {
		t.Errorf("%+v", d.Changes)
	}
	// Between looking and accepting it changes again.
	f.write("tools/count.yaml", strings.Replace(countTool, "[wc, -w,", "[rm, -f,", 1))
	wants(t, f.AcceptTool(t.Context(), "count", d.Digest, f.alice()), writ.Changed, "is not the one that was shown")
	f.write("tools/count.yaml", countTool)
	reload()
	f.must(use()) // as it was accepted: nothing is left of the change
	f.must(os.Remove(filepath.Join(f.dir, "tools/count.yaml")))
	reload()
	if _, err := f.Tool("", "count"); writ.KindOf(err) != writ.NotFound {
		t.Errorf("%v", err)
	}
}

// What cannot run is refused when the engine opens.
func TestStartUpRefuses(t *testing.T) {
	tests := map[string]struct {
		want  string
		files map[string]string
	}{
		"a name that is taken": {`tool READ_FILE is defined twice (the other is read_file)`, map[string]string{"tools/READ_FILE.yaml": strings.Replace(countTool, "name: count", "name: READ_FILE", 1)}},
		"after nothing":        {`only_after names "nothing", and there is no such tool`, map[string]string{"tools/count.yaml": countTool + "constraints: {only_after: [nothing]}\n"}},
		"after each other": {"a → b → a: each runs only after the next", map[string]string{
			"tools/a.yaml": strings.Replace(countTool, "name: count", "name: a", 1) + "constraints: {only_after: [b]}\n",
			"tools/b.yaml": strings.Replace(countTool, "name: count", "name: b", 1) + "constraints: {only_after: [a]}\n",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, agentsText, Options{})
			for name, text := range tt.files {
				f.write(name, text)
			}
			if _, err := f.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("reload: %v", err)
			}
			f.must(f.Engine.Close())
			e, err := Open(t.Context(), Options{Config: filepath.Join(f.dir, "writ.yaml")})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("open: %v", err)
			}
			if err == nil {
				f.must(e.Close())
			}
		})
	}
}
