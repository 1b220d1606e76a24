package prove

import (
	"testing"

	"github.com/writ-run/writ/sandbox"
)

// What gVisor answers otherwise counts for a driver that claims gVisor, and for no other;
// and there, too, an attack that works is one that worked.
func TestVerdictsGVisor(t *testing.T) {
	said := func(code int, out string) Outcome { return Outcome{Out: out, Exit: sandbox.Exit{Code: code}} }
	ok, lacks := said(0, ""), said(1, enosup)
	for _, tc := range []struct {
		name         string
		g            gvisor
		outcomes     []Outcome
		linux, there Verdict
	}{
		{"another errno", gvisor{refusal: []string{eio}}, []Outcome{ok, said(1, eio)}, Inconclusive, Held},
		{"an errno of neither", gvisor{refusal: []string{eio}}, []Outcome{ok, said(1, einval)}, Inconclusive, Inconclusive},
		{"no such thing", gvisor{lacks: enosup}, []Outcome{lacks, lacks}, Inconclusive, Skipped},
		{"no such thing, but it worked", gvisor{lacks: enosup}, []Outcome{lacks, ok}, Inconclusive, Broken},
		{"no such thing, but it was seen", gvisor{lacks: enosup}, []Outcome{lacks, said(1, canary)}, Inconclusive, Broken},
		{"a control that fails otherwise", gvisor{lacks: enosup}, []Outcome{said(1, einval), lacks}, Inconclusive, Inconclusive},
		{"process 1 itself", gvisor{first: true}, []Outcome{ok, said(1, itself)}, Inconclusive, Skipped},
		{"process 1 is another", gvisor{first: true}, []Outcome{ok, ok}, Broken, Broken},
		{"nothing that it has", gvisor{without: "it is so"}, []Outcome{ok, ok}, Broken, Skipped},
		{"refused as on Linux", gvisor{}, []Outcome{ok, said(1, eacces)}, Held, Held},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := row("x", "control", "attack", eacces).onGVisor(tc.g)
			x.Feature = sandbox.FileRead
			has := sandbox.Features{{Feature: sandbox.FileRead, Enforced: true}}
			if r := prover(t, scripted{has, tc.outcomes, new(int)}).Try(t.Context(), x); r.Verdict != tc.linux {
				t.Errorf("on Linux: %s, want %s: %s", r.Verdict, tc.linux, r.Detail)
			}
			has = append(has, sandbox.Finding{Feature: sandbox.GVisor, Enforced: true})
			if r := prover(t, scripted{has, tc.outcomes, new(int)}).Try(t.Context(), x); r.Verdict != tc.there {
				t.Errorf("on gVisor: %s, want %s: %s", r.Verdict, tc.there, r.Detail)
			}
		})
	}
}
