package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whatever ends a request that nobody answered is said in words, where it is shown and
// where calls are listed, and what has ended does not expire any more.
func TestWhyARequestEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.write(filepath.Join(w.ws, "other"), "x")
	ended := func(id, why, listed string) {
		t.Helper()
		show, list := w.must("", "approval", "show", id), w.must("", "invocation", "list")
		if !regexp.MustCompile(`(?m)^`+why+`$`).MatchString(show) || strings.Contains(show, "expires") {
			t.Errorf("want %q:\n%s", why, show)
		}
		if !regexp.MustCompile(`(?m)^` + id + ` +cancelled .* ` + listed + `$`).MatchString(list) {
			t.Errorf("%s: want %q:\n%s", id, listed, list)
		}
		if all := w.must("", "approval", "list", "--state", "all"); !regexp.MustCompile(`(?m)^` + id + ` +void .* ago +- *$`).MatchString(all) {
			t.Errorf("%s expires:\n%s", id, all)
		}
	}

	id := w.asks("a")
	if show := w.must("", "approval", "show", id); !strings.Contains(show, "ago, expires in 23h59m") && !strings.Contains(show, "ago, expires in 24h00m") {
		t.Errorf("the control:\n%s", show)
	}
	w.must("", "invocation", "cancel", id)
	ended(id, `ended     \d+s ago: cancelled`, "cancelled")

	id = w.asks("b")
	w.must(pass+"\n", "approval", "edit", id, "--args", `{"path":"other"}`, "--passphrase-stdin")
	ended(id, "edited    into "+id+"e", "edited into "+id+"e")

	id = w.asks("c")
	w.must("", "stop", "coder")
	ended(id, `ended     \d+s ago: the agent was stopped`, "the agent was stopped")
	w.must(pass+"\n", "stop", "--lift", "coder", "--passphrase-stdin")

	covered := w.asks("d")
	w.write(filepath.Join(w.ws, "e"), "x")
	w.call("delete_file", map[string]any{"path": "e"})
	for _, id := range w.waitingIDs() {
		if id != covered {
			w.must(pass+"\n", "approval", "grant", id, "--match", "path=*", "--passphrase-stdin")
		}
	}
	w.ok(w.call("delete_file", map[string]any{"path": "d"}))
	ended(covered, `ended     \d+s ago: a grant covers it`, "a grant covers it")
	if out := w.must("", "approval", "grants"); !strings.Contains(out, "live ") || !strings.Contains(out, " in 59m") && !strings.Contains(out, " in 1h00m") {
		t.Errorf("the control: %s", out)
	}

	w.must("", "stop", "coder") // which ends the grant
	w.must(pass+"\n", "stop", "--lift", "coder", "--passphrase-stdin")
	if out := w.must("", "approval", "grants", "--all"); !regexp.MustCompile(`1 of 20 +- +alice`).MatchString(out) {
		t.Errorf("a grant that has ended expires: %s", out)
	}
	id = w.asks("f")
	w.edit("level: standard", "level: restricted")
	if out := w.must("", "config", "reload"); !strings.Contains(out, "1 requests and unused approvals ended") {
		t.Errorf("reload: %s", out)
	}
	ended(id, `ended     \d+s ago: the configuration changed`, "the configuration changed")
}

// A quorum of more people than may approve is warned of, where people are known.
func TestQuorumOfMoreThanThereAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "approvals: {quorum: 2}\ntools: {delete_file: {quorum: 3}}\n").init()
	w.add("vera", "viewer")
	warning := func(key, n string) string {
		return regexp.QuoteMeta(key+" is "+n) + `, and \d may approve, so nothing that takes it is ever approved; add somebody: writ person add NAME approver`
	}
	both := regexp.MustCompile(warning("approvals.quorum", "2") + `\n.*` + warning("tools.delete_file.quorum", "3"))
	for _, command := range [][]string{{"doctor"}, {"config", "reload"}} {
		if out := w.must("", command...); !both.MatchString(out) || !strings.Contains(out, "writ.yaml:") || !strings.Contains(out, ", and 1 may approve") {
			t.Errorf("%v:\n%s", command, out)
		}
	}
	w.add("bob", "approver")
	if out := w.must("", "doctor"); strings.Contains(out, "approvals.quorum") || !strings.Contains(out, "tools.delete_file.quorum is 3, and 2 may approve") {
		t.Errorf("with two:\n%s", out)
	}
	w.add("carol", "approver")
	if out := w.must("", "config", "reload"); strings.Contains(out, "quorum") {
		t.Errorf("with three:\n%s", out)
	}
}
