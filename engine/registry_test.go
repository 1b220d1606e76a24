package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store/sqlite"
)

// library is a tool of the program that does nothing.
func library(name string, class writ.Class, change ...func(*Tool)) Tool {
	t := Tool{Name: name, Description: "x", Category: "analytics", Class: class, Run: func(context.Context, json.RawMessage) (writ.Result, error) {
		return writ.Result{Content: "ran"}, nil
	}}
	for _, c := range change {
		c(&t)
	}
	return t
}

// row is how a tool is registered: its class, danger and need of an approval, and the
// first two without a waiver.
func (f *fixture) row(name string) string {
	f.t.Helper()
	all, err := f.Store().Registry(f.t.Context())
	f.must(err)
	for _, r := range all {
		if r.Key == name {
			return fmt.Sprintf("%s %v %v, unwaived %s %v", r.Class, r.Dangerous, r.RequiresApproval, r.Unwaived, r.UnwaivedDangerous)
		}
	}
	return "none"
}

// effect is what would be decided about a call of coder, and every reason.
func (f *fixture) effect(name string) (writ.Effect, string) {
	f.t.Helper()
	d, err := f.Explain(f.t.Context(), Call{Agent: "coder", Tool: name})
	f.must(err)
	var said []string
	for _, r := range d.Reasons {
		said = append(said, r.Source+": "+r.Text)
	}
	return d.Effect, strings.Join(said, "\n")
}

// entries counts the entries of a kind.
func (f *fixture) entries(kind string) (n int, last string) {
	f.t.Helper()
	all, err := f.Store().EntriesBefore(f.t.Context(), 0, 1000)
	f.must(err)
	for _, e := range all {
		if e.Kind == kind {
			if n++; n == 1 {
				last = e.Body
			}
		}
	}
	return n, last
}

func (f *fixture) waive(name string, w Waiver) error {
	f.t.Helper()
	t, err := f.Tool("", name)
	f.must(err)
	if w.Digest == "" {
		w.Digest = t.Digest.String()
	}
	return f.WaiveTool(f.t.Context(), name, w, f.alice())
}

// The registry has every tool as it is served, and says so once.
func TestRegistryInStep(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{library("publish", writ.ClassWrite)}})
	rows, err := f.Store().Registry(t.Context())
	f.must(err)
	got := map[string]string{}
	for _, r := range rows {
		got[r.Key] = r.Definition
	}
	want := map[string]string{}
	for _, x := range f.Tools("") {
		want[x.Name] = x.Digest.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	n, body := f.entries("tool.registered")
	if n != 1 || !strings.Contains(body, `{"class":"write","dangerous":false,"definition":"`+want["publish"]+`","tool":"publish"}`) {
		t.Errorf("%d entries, the last %s", n, body)
	}
	f.reopen(Options{Tools: []Tool{library("publish", writ.ClassWrite)}})
	if n, _ := f.entries("tool.registered"); n != 1 {
		t.Errorf("%d entries after a start that changed nothing", n)
	}
	f.must(f.Register(t.Context(), library("later", writ.ClassNone, func(t *Tool) { t.Constraints.RequiresApproval = true })))
	if n, body := f.entries("tool.registered"); n != 2 || strings.Contains(body, "publish") || f.row("later") != "none false true, unwaived none false" {
		t.Errorf("%d entries, the last %s; %s", n, body, f.row("later"))
	}
}

// A tool that cannot be registered is not served.
func TestNotRegisteredNotServed(t *testing.T) {
	f := newFixture(t, agentsText, Options{})
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, "state", sqlite.Name))
	f.must(err)
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	_, err = raw.Exec("BEGIN IMMEDIATE")
	f.must(err)
	if err := f.Register(t.Context(), library("later", writ.ClassNone)); writ.KindOf(err) != writ.StoreUnavailable {
		t.Errorf("registered: %v", err)
	}
	if _, err := f.Tool("", "later"); writ.KindOf(err) != writ.NotFound {
		t.Errorf("served: %v", err)
	}
	_, err = raw.Exec("ROLLBACK")
	f.must(err)
	f.must(f.Register(t.Context(), library("later", writ.ClassNone)))
	if _, err := f.Tool("", "later"); err != nil {
		t.Error(err)
	}
}

// Neither a new definition of the same name nor another spelling of it lowers a class
// (R5).
func TestClassNeverFalls(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{library("publish", writ.ClassWrite), library("wipe", writ.ClassNone, func(t *Tool) { t.Dangerous = true }), library("look", writ.ClassNone)}})
	f.reopen(Options{Tools: []Tool{library("publish", writ.ClassNone), library("wipe", writ.ClassNone), library("look", writ.ClassNone), library("fresh", writ.ClassNone)}})
	for name, want := range map[string]string{
		"publish": "registry: tool publish was of class write and says none now; the higher one holds until a person waives it: writ tool waive publish --class none",
		"wipe":    "registry: tool wipe was dangerous and does not say so any more; that holds until a person waives it: writ tool waive wipe --not-dangerous",
	} {
		if effect, said := f.effect(name); effect != writ.Ask || !strings.Contains(said, want) {
			t.Errorf("%s: %s\n%s", name, effect, said)
		}
	}
	for _, name := range []string{"look", "fresh"} {
		if effect, said := f.effect(name); effect != writ.Allow {
			t.Errorf("%s: %s\n%s", name, effect, said)
		}
	}
	if got := f.row("publish"); got != "write false true, unwaived write false" {
		t.Error(got)
	}
	f.reopen(Options{Tools: []Tool{library("Publish", writ.ClassNone), library("WIPE", writ.ClassNone)}})
	for _, name := range []string{"Publish", "WIPE"} {
		if effect, said := f.effect(name); effect != writ.Ask {
			t.Errorf("%s: %s\n%s", name, effect, said)
		}
	}
	f.reopen(Options{Tools: []Tool{library("look", writ.ClassWrite)}})
	if effect, _ := f.effect("look"); effect != writ.Ask || f.row("look") != "write false true, unwaived write false" {
		t.Errorf("raised: %s, %s", effect, f.row("look"))
	}
}

func TestWaive(t *testing.T) {
	dangerous := func(t *Tool) { t.Dangerous = true }
	tools := Options{Tools: []Tool{
		library("publish", writ.ClassWrite), library("wipe", writ.ClassReadOnly, dangerous),
		library("kept", writ.ClassWrite), library("deadly", writ.ClassNone, dangerous),
	}}
	f := newFixture(t, agentsText+"tools: {kept: {egress_class: write}, deadly: {dangerous: true}}\n", tools)
	alice, why := f.alice(), "it only touches our own preview"
	f.must(f.AddPerson(t.Context(), NewPerson{"bob", "approver", passphrase}, alice))
	f.must(f.AddPerson(t.Context(), NewPerson{"olga", "operator", passphrase}, alice))
	publish, err := f.Tool("", "publish")
	f.must(err)
	for name, c := range map[string]struct {
		tool string
		w    Waiver
		by   Credentials
		want string
	}{
		"an approver":              {"publish", Waiver{Class: "none", Reason: why}, Credentials{"bob", passphrase}, "bob has the role approver, and this takes operator or admin; an admin changes it with 'writ person role bob ROLE'"},
		"a wrong passphrase":       {"publish", Waiver{Class: "none", Reason: why}, Credentials{"alice", "wrong horse battery"}, "wrong name or passphrase"},
		"no reason":                {"publish", Waiver{Class: "none", Reason: " "}, alice, "say why it may count as less, in a line of at most 500 bytes: --reason TEXT"},
		"a reason that hides":      {"publish", Waiver{Class: "none", Reason: "a\u202eb"}, alice, "say why it may count as less, in a line of at most 500 bytes: --reason TEXT"},
		"no such class":            {"publish", Waiver{Class: "read", Reason: why}, alice, `there is no class "read"; there are none, read_only, write`},
		"nothing":                  {"publish", Waiver{Class: "write", Reason: why}, alice, "tool publish is class write, so there is nothing to waive; name a lower class, or --not-dangerous"},
		"what is not so":           {"publish", Waiver{NotDangerous: true, Reason: why}, alice, "tool publish is class write, not dangerous; leave --not-dangerous out. What the configuration says is changed there"},
		"raising":                  {"wipe", Waiver{Class: "write", NotDangerous: true, Reason: why}, alice, "tool wipe is class read_only and dangerous, and a waiver only lowers; to raise it, write tools.wipe.egress_class: write in the configuration"},
		"another definition":       {"publish", Waiver{Class: "none", Reason: why, Digest: strings.Repeat("0", 64)}, alice, "the definition of publish is not the one that was shown; look again: writ tool show publish"},
		"a tool that is not there": {"publsh", Waiver{Class: "none", Reason: why}, alice, `there is no tool "publsh"; did you mean publish?`},
	} {
		if c.w.Digest == "" {
			c.w.Digest = publish.Digest.String()
			if x, err := f.Tool("", c.tool); err == nil {
				c.w.Digest = x.Digest.String()
			}
		}
		err := f.WaiveTool(t.Context(), c.tool, c.w, c.by)
		if _, msg := writ.Public(err); msg != c.want {
			t.Errorf("%s: %q, want %q", name, msg, c.want)
		}
	}
	if waivers, err := f.Waivers(t.Context()); err != nil || len(waivers) != 0 || f.row("publish") != "write false true, unwaived write false" {
		t.Errorf("%v, %+v, %s", err, waivers, f.row("publish"))
	}

	f.must(f.WaiveTool(t.Context(), "publish", Waiver{Class: "none", Reason: why, Digest: publish.Digest.String()}, Credentials{"olga", passphrase}))
	if effect, said := f.effect("publish"); effect != writ.Allow || !strings.Contains(said, "waiver: a person let tool publish count as class none") {
		t.Errorf("%s\n%s", effect, said)
	}
	if got := f.row("publish"); got != "none false false, unwaived write false" {
		t.Error(got)
	}
	_, body := f.entries("tool.waived")
	for _, part := range []string{`"person":"olga"`, `"factor":"passphrase"`, `"reason":"` + why + `"`, `"class":"none"`, `"was_class":"write"`, `"definition":"` + publish.Digest.String() + `"`} {
		if !strings.Contains(body, part) {
			t.Errorf("the entry lacks %s: %s", part, body)
		}
	}
	if err := f.waive("publish", Waiver{Class: "read_only", Reason: why}); writ.KindOf(err) != writ.Conflict {
		t.Errorf("a second waiver: %v", err)
	}
	f.must(f.waive("wipe", Waiver{NotDangerous: true, Reason: why}))
	if effect, _ := f.effect("wipe"); effect != writ.Allow || f.row("wipe") != "read_only false false, unwaived read_only true" {
		t.Errorf("%s, %s", effect, f.row("wipe"))
	}
	// The operator's own word raises what was waived.
	f.must(f.waive("kept", Waiver{Class: "none", Reason: why}))
	f.must(f.waive("deadly", Waiver{NotDangerous: true, Reason: why}))
	for _, name := range []string{"kept", "deadly"} {
		if effect, said := f.effect(name); effect != writ.Ask {
			t.Errorf("%s: %s\n%s", name, effect, said)
		}
	}
	// It survives a restart, and is over when it ends.
	f.reopen(tools)
	if effect, _ := f.effect("publish"); effect != writ.Allow {
		t.Errorf("after a restart: %s", effect)
	}
	f.must(f.EndWaiver(t.Context(), "publish"))
	if effect, _ := f.effect("publish"); effect != writ.Ask || f.row("publish") != "write false true, unwaived write false" {
		t.Errorf("ended: %s, %s", effect, f.row("publish"))
	}
	if err := f.EndWaiver(t.Context(), "publish"); writ.KindOf(err) != writ.NotFound {
		t.Errorf("ended twice: %v", err)
	}
	f.must(f.waive("publish", Waiver{Class: "read_only", Reason: why}))
	if n, _ := f.entries("tool.waiver_ended"); n != 1 || f.row("publish") != "read_only false false, unwaived write false" {
		t.Errorf("%d, %s", n, f.row("publish"))
	}
}

// What was waived of one definition does not pass to the next, whatever that says of
// itself, and not by the way of accepting it (R5, R8).
func TestWaiverEndsWithItsDefinition(t *testing.T) {
	const text = "name: publish\ndescription: %s\ncategory: analytics\naction_type: code:read\negress_class: %s\nrunner: {process: {argv: [\"true\"]}}\n"
	f := newFixture(t, agentsText, Options{})
	accept := func() {
		t.Helper()
		d, err := f.DiffTool("publish")
		f.must(err)
		f.pass(time.Second)
		f.must(f.AcceptTool(t.Context(), "publish", d.Digest, f.alice()))
	}
	reload := func(description, class string) {
		t.Helper()
		f.write("tools/publish.yaml", fmt.Sprintf(text, description, class))
		_, err := f.Reload(t.Context())
		f.must(err)
	}
	reload("one", "write")
	if err := f.waive("publish", Waiver{Class: "none", Reason: "x"}); writ.KindOf(err) != writ.Conflict {
		t.Errorf("what is suspended was waived: %v", err)
	}
	if f.row("publish") != "none" {
		t.Errorf("what is suspended is registered: %s", f.row("publish"))
	}
	accept()
	f.must(f.waive("publish", Waiver{Class: "none", Reason: "x"}))
	if effect, _ := f.effect("publish"); effect != writ.Allow {
		t.Errorf("waived: %s", effect)
	}
	reload("two", "none")
	if effect, said := f.effect("publish"); effect != writ.Deny {
		t.Errorf("changed: %s\n%s", effect, said)
	}
	d, err := f.DiffTool("publish")
	f.must(err)
	if want := "it was class write and says class none now; accepted, it stays what it was until a person waives that: writ tool waive publish --class none"; d.Stays != want {
		t.Errorf("%q", d.Stays)
	}
	accept()
	if effect, said := f.effect("publish"); effect != writ.Ask || f.row("publish") != "write false true, unwaived write false" {
		t.Errorf("accepted: %s, %s\n%s", effect, f.row("publish"), said)
	}
	f.must(f.waive("publish", Waiver{Class: "none", Reason: "x"}))
	if effect, _ := f.effect("publish"); effect != writ.Allow {
		t.Errorf("waived anew: %s", effect)
	}
	// A waiver is of a digest: the first definition, back and accepted, still has its own.
	reload("one", "write")
	accept()
	if effect, _ := f.effect("publish"); effect != writ.Allow || f.row("publish") != "none false false, unwaived write false" {
		t.Errorf("the first definition, whose waiver is live: %s, %s", effect, f.row("publish"))
	}
	f.must(f.EndWaiver(t.Context(), "publish")) // all of them
	if waivers, err := f.Waivers(t.Context()); err != nil || len(waivers) != 2 || waivers[0].Ended == "" || waivers[1].Ended == "" {
		t.Errorf("%v, %+v", err, waivers)
	}
}

// A tool of class none that calls one of class write does not pass it through (R7).
func TestNestedCallAsks(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{library("publish", writ.ClassWrite), library("look", writ.ClassNone)}})
	var inner map[string]error
	f.must(f.Register(t.Context(), library("helper", writ.ClassNone, func(x *Tool) {
		x.Run = func(ctx context.Context, _ json.RawMessage) (writ.Result, error) {
			inner = map[string]error{}
			for _, name := range []string{"publish", "look"} {
				_, inner[name] = f.Do(ctx, Call{Agent: "coder", Tool: name, Code: true})
			}
			return writ.Result{Content: "done"}, nil
		}
	})))
	out, err := f.call("helper", map[string]any{})
	if err != nil || out.Content != "done" || writ.KindOf(inner["publish"]) != writ.Pending || inner["look"] != nil {
		t.Errorf("%v %+v: %v", err, out, inner)
	}
}
