package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
)

// definedTool is a definition that prints a word, of a class and with more keys.
func definedTool(name, word, class, more string) string {
	return fmt.Sprintf(`name: %s
description: Prints %s.
category: analytics
action_type: code:read
egress_class: %s
policy: {risk: low}
%srunner: {process: {argv: [echo, %s]}}
`, name, word, class, more, word)
}

func (w *world) accept(names ...string) {
	w.t.Helper()
	w.must("", "config", "reload")
	for _, name := range names {
		w.must(pass+"\n", "tool", "accept", name, "--passphrase-stdin")
	}
}

// unplace takes a file away again.
func (w *world) unplace(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(filepath.Dir(w.config), name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) waive(name string, flags ...string) outcome {
	w.t.Helper()
	return w.run(pass+"\n", slices.Concat([]string{"tool", "waive", name, "--reason", "looked at", "--passphrase-stdin"}, flags)...)
}

// waitsFor demands that a call of a tool waits for a person.
func (w *world) waitsFor(what, name string) {
	w.t.Helper()
	if o := w.call(name, map[string]any{}); o.code != cli.ExitPending {
		w.t.Errorf("%s: %s does not ask: %+v", what, name, o)
	}
}

// runs demands that a call of a tool runs and prints a word.
func (w *world) runs(what, name, word string) {
	w.t.Helper()
	if o := w.call(name, map[string]any{}); o.code != 0 || o.out != word+"\n" {
		w.t.Errorf("%s: %s does not run: %+v", what, name, o)
	}
}

// counts is what a tool counts as, as the operator sees it.
func (w *world) counts(name string) string {
	w.t.Helper()
	var t client.Tool
	if err := json.Unmarshal([]byte(w.must("", "tool", "show", name, "--json")), &t); err != nil {
		w.t.Fatal(err)
	}
	class, dangerous := t.Class, t.Dangerous
	if t.Counts != nil {
		class, dangerous = t.Counts.Class, t.Counts.Dangerous
	}
	if dangerous {
		class += ", dangerous"
	}
	if t.Counts != nil && t.Counts.Waiver != nil {
		class += " (waived)"
	}
	return class
}

// A tool of class write asks; waived it runs; a changed definition is suspended, and
// asks again once it is accepted, also where it says that it is of class none by now.
func TestWaiveATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "").init()
	w.place("tools/publish.yaml", definedTool("publish", "one", "write", ""))
	w.place("tools/look.yaml", definedTool("look", "seen", "none", ""))
	w.accept("publish", "look")
	w.runs("class none", "look", "seen")
	w.waitsFor("class write", "publish")
	if out := w.must("", "tool", "waivers"); out != "nothing is waived\n" {
		t.Errorf("no waivers: %s", out)
	}

	const usage = "\nRun 'writ tool waive --help' for how it is used."
	says(t, "nothing to waive to", w.run("", "tool", "waive", "publish", "--reason", "x"), 2,
		"say what it counts as: --class none|read_only|write, --not-dangerous, or both; --end ends a waiver"+usage)
	says(t, "no reason", w.run("", "tool", "waive", "publish", "--class", "none"), 2, "say why, for the record: --reason TEXT"+usage)
	says(t, "end and more", w.run("", "tool", "waive", "publish", "--end", "--class", "none"), 2, "--end takes nothing besides; leave the other flags out"+usage)
	says(t, "a wrong passphrase", w.run("wrong wrong\n", "tool", "waive", "publish", "--class", "none", "--reason", "x", "--passphrase-stdin"), 1, wrongPass)
	says(t, "another digest", w.waive("publish", "--class", "none", "--digest", strings.Repeat("0", 64)), 1,
		"the definition of publish is not the one that was shown; look again: writ tool show publish")
	says(t, "no waiver to end", w.run("", "tool", "waive", "publish", "--end"), 1, `tool "publish" has no waiver; 'writ tool waivers' lists them`)
	w.waitsFor("after all that", "publish")

	o := w.waive("publish", "--class", "none")
	if o.code != 0 || !strings.Contains(o.out, "its definition says  write") || !strings.Contains(o.out, "  digest               ") || !strings.HasSuffix(o.out, "waived publish\n") {
		t.Fatalf("%+v", o)
	}
	w.runs("waived", "publish", "one")
	if got := w.counts("publish"); got != "none (waived)" {
		t.Errorf("it counts as %s", got)
	}
	if out := w.must("", "tool", "list"); !strings.Contains(out, "none (waived)") {
		t.Errorf("%s", out)
	}
	if out := w.must("", "tool", "show", "publish"); !strings.Contains(out, "by alice") || !strings.Contains(out, "looked at") {
		t.Errorf("%s", out)
	}

	w.place("tools/publish.yaml", definedTool("publish", "two", "none", ""))
	w.must("", "config", "reload")
	w.denied(w.call("publish", map[string]any{}), "tool publish changed and is suspended")
	if out := w.must(pass+"\n", "tool", "accept", "publish", "--passphrase-stdin"); !strings.Contains(out, "accepted, it stays what it was until a person waives that: writ tool waive publish --class none") {
		t.Errorf("%s", out)
	}
	w.waitsFor("changed and accepted", "publish")
	if o := w.run("", "explain", "publish", "--agent", "coder"); o.code != cli.ExitPending || !strings.Contains(o.out, "the higher one holds until a person waives it: writ tool waive publish --class none") {
		t.Errorf("%+v", o)
	}
	w.must("", "serve", "--stop")
	w.daemonGone()
	w.waitsFor("after a restart", "publish")
	if o := w.waive("publish", "--class", "none"); o.code != 0 {
		t.Errorf("%+v", o)
	}
	w.runs("waived anew", "publish", "two")
	w.must("", "tool", "waive", "publish", "--end")
	w.waitsFor("no longer waived", "publish")

	var list []client.Waiver
	if err := json.Unmarshal([]byte(w.must("", "tool", "waivers", "--json")), &list); err != nil || len(list) != 2 || list[0].By != "alice" || list[0].Reason != "looked at" || list[1].Ended == "" {
		t.Errorf("%v, %+v", err, list)
	}
	if out := w.must("", "tool", "waivers"); !strings.Contains(out, "publish") || !strings.Contains(out, "looked at") {
		t.Errorf("%s", out)
	}
	for _, kind := range []string{"tool.registered", "tool.waived", "tool.waiver_ended"} {
		if !slices.Contains(w.ledgerKinds(), kind) {
			t.Errorf("no entry %s", kind)
		}
	}
	w.verifies()
}

// A tool that is taken away and comes back under its name, in these letters or others,
// as one of class none still asks (R5).
func TestClassLaundering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "").init()
	w.place("tools/publish.yaml", definedTool("publish", "one", "write", ""))
	w.accept("publish")
	w.waitsFor("class write", "publish")
	w.unplace("tools/publish.yaml")
	w.must("", "config", "reload")
	w.place("tools/publish.yaml", definedTool("publish", "two", "none", ""))
	w.accept("publish")
	w.waitsFor("come back as none", "publish")
	w.unplace("tools/publish.yaml")
	w.place("tools/Publish.yaml", definedTool("Publish", "three", "none", ""))
	w.place("tools/fresh.yaml", definedTool("fresh", "four", "none", ""))
	w.accept("Publish", "fresh")
	w.waitsFor("come back in other letters", "Publish")
	w.runs("never seen before", "fresh", "four")
}

// What is dangerous asks, by its definition, by its annotations, or by the operator;
// what the operator raised stays so under a waiver.
func TestDangerousAndRaised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "tools: {raised: {egress_class: write}, deadly: {dangerous: true}}\n")
	w.place("tools/declared.yaml", definedTool("declared", "one", "none", "dangerous: true\n"))
	w.place("tools/hinted.yaml", definedTool("hinted", "two", "none", "annotations: {destructive: true}\n"))
	w.place("tools/deadly.yaml", definedTool("deadly", "three", "none", ""))
	w.place("tools/raised.yaml", definedTool("raised", "four", "read_only", ""))
	w.place("tools/plain.yaml", definedTool("plain", "five", "none", ""))
	w.init().accept("declared", "hinted", "deadly", "raised", "plain")
	for name, want := range map[string]string{"declared": "none, dangerous", "hinted": "none, dangerous", "deadly": "none, dangerous", "raised": "write", "plain": "none"} {
		if got := w.counts(name); got != want {
			t.Errorf("%s counts as %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"declared", "hinted", "deadly", "raised"} {
		w.waitsFor("at first", name)
	}
	w.runs("neither", "plain", "five")
	for name, flags := range map[string][]string{"declared": {"--not-dangerous"}, "hinted": {"--not-dangerous"}, "raised": {"--class", "none"}} {
		if o := w.waive(name, flags...); o.code != 0 {
			t.Errorf("%+v", o)
		}
	}
	says(t, "what only the configuration says", w.waive("deadly", "--not-dangerous"), 1,
		"tool deadly is class none, not dangerous; leave --not-dangerous out. What the configuration says is changed there")
	w.runs("waived", "declared", "one")
	w.runs("waived", "hinted", "two")
	w.waitsFor("raised by the operator", "raised")
	w.edit("raised: {egress_class: write}", "raised: {egress_class: read_only}")
	w.must("", "config", "reload")
	w.runs("raised to read_only", "raised", "four")
}

// No agent waives, at either door, nor with a person's passphrase.
func TestAgentsDoNotWaive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "")
	w.place("tools/publish.yaml", definedTool("publish", "one", "write", ""))
	w.init()
	addr, _ := w.serve()
	w.accept("publish")
	outside, err := client.New("http://"+addr, w.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	inside, operator := client.Dial(w.state()), client.Dial(w.state())
	inside.Token = w.token
	tool, err := operator.Tool(t.Context(), "publish")
	if err != nil {
		t.Fatal(err)
	}
	req := client.WaiveRequest{Class: "none", Reason: "because", Digest: tool.Digest, By: client.Credentials{Name: "alice", Passphrase: pass}}
	for what, act := range map[string]func(*client.Client) error{
		"waive": func(c *client.Client) error { return c.WaiveTool(t.Context(), "publish", req) },
		"end":   func(c *client.Client) error { return c.EndWaiver(t.Context(), "publish") },
		"list":  func(c *client.Client) error { _, err := c.Waivers().All(t.Context()); return err },
	} {
		for where, want := range map[*client.Client]writ.Kind{outside: writ.NotFound, inside: writ.Denied} {
			var p *client.Problem
			if err := act(where); !errors.As(err, &p) || p.Kind != want {
				t.Errorf("%s, want %s: %v", what, want, err)
			}
		}
	}
	if v, err := inside.Tool(t.Context(), "publish"); err != nil || v.Counts != nil {
		t.Errorf("an agent is told how a tool counts: %v, %+v", err, v.Counts)
	}
	w.waitsFor("after all that", "publish")
	if err := operator.WaiveTool(t.Context(), "publish", req); err != nil {
		t.Errorf("the same, by the operator: %v", err)
	}
	w.runs("waived", "publish", "one")
}
