// Package sandboxtest is the suite of package prove as tests: every sandbox driver
// passes it. It also lets the tests of a driver run one command in one box.
//
// The suite needs bash, coreutils and python3 where boxes find them. A missing one skips
// a test, or fails it when WRIT_NEED=all.
package sandboxtest

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/prove"
)

// Run runs the suite on a driver, or only some groups of it: a test a probe, in the group
// it belongs to. What is broken fails, and so does what shows nothing. WRIT_TEST_DIR says
// where the suite makes its files; empty: it finds a place.
func Run(t *testing.T, d sandbox.Driver, only ...string) {
	if err := prove.Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	p, err := prove.New(t.Context(), d, os.Getenv("WRIT_TEST_DIR"))
	if err != nil {
		t.Fatalf("driver %s cannot be examined here: %v", d.Name(), err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, f := range p.Features() {
		t.Logf("%-16s %-5v %s", f.Feature, f.Enforced, f.Evidence)
	}
	var groups []string
	probes := map[string][]prove.Probe{}
	for _, x := range prove.All() {
		if probes[x.Group] == nil {
			groups = append(groups, x.Group)
		}
		probes[x.Group] = append(probes[x.Group], x)
	}
	for _, g := range groups {
		if len(only) > 0 && !slices.Contains(only, g) {
			continue
		}
		t.Run(g, func(t *testing.T) {
			for _, x := range probes[g] {
				t.Run(x.Name, func(t *testing.T) { try(t, p, x) })
			}
		})
	}
}

func try(t *testing.T, p *prove.Prover, x prove.Probe) {
	if !x.Alone() {
		t.Parallel()
	}
	switch r := p.Try(t.Context(), x); r.Verdict {
	case prove.Held:
		t.Log(r.Detail)
	case prove.Skipped:
		t.Skip(r.Detail) // what the driver does not claim; that it is refused is a probe of its own
	default:
		t.Errorf("%s: %s\ncontrol: %s\nattack: %s", r.Verdict, r.Detail, x.Control, x.Attack)
	}
}

// Outcome is how one command in one box went.
type Outcome = prove.Outcome

// With calls f with a writ for c, as the gate gives one to a tool.
func With(t testing.TB, c writ.Confinement, dir string, f func(context.Context, writ.Writ)) {
	t.Helper()
	if err := prove.With(t.Context(), c, dir, f); err != nil {
		t.Fatalf("the gate refused: %v", err)
	}
}

// Command runs argv in a box and waits for it. Output beyond a mebibyte is cut.
func Command(t testing.TB, d sandbox.Driver, c writ.Confinement, spec sandbox.Spec) Outcome {
	t.Helper()
	return prove.Command(t.Context(), d, c, spec)
}
