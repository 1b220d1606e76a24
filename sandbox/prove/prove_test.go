package prove

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
)

// TestSuite: what the suite is made of.
func TestSuite(t *testing.T) {
	all := All()
	names, groups, attacks := map[string]bool{}, map[string]int{}, 0
	for _, p := range all {
		name := p.Group + "/" + p.Name
		if p.Group == "" || p.Name == "" || names[name] {
			t.Errorf("%q is named twice, or not at all", name)
		}
		names[name] = true
		groups[p.Group]++
		switch {
		case p.try != nil:
			if p.Control != "" || p.Attack != "" || p.Refusal != nil {
				t.Errorf("%s is tried and has scripts as well", name)
			}
		case p.Control == "" || p.Attack == "" || len(p.Refusal) == 0:
			t.Errorf("%s lacks a control, an attack or its refusal", name)
		default:
			attacks++
		}
	}
	t.Logf("%d probes, %d of them attacks by script: %v", len(all), attacks, groups)
	if attacks < 120 {
		t.Errorf("%d attacks, fewer than 120", attacks)
	}
}

// scripted is a driver whose boxes say what a test wants.
type scripted struct {
	have     sandbox.Features
	outcomes []Outcome // control, attack
	started  *int
}

func (scripted) Name() string                                      { return "scripted" }
func (d scripted) Probe(context.Context) (sandbox.Features, error) { return d.have, nil }
func (d scripted) Start(_ context.Context, _ writ.Writ, s sandbox.Spec) (sandbox.Box, error) {
	o := d.outcomes[*d.started%len(d.outcomes)]
	*d.started++
	if o.Error != nil {
		return nil, o.Error
	}
	if s.Stdout != nil {
		s.Stdout.Write([]byte(o.Out))
	}
	return ended(o.Exit), nil
}

type ended sandbox.Exit

func (e ended) Wait(context.Context) (sandbox.Exit, error) { return sandbox.Exit(e), nil }

// TestNotStarted: a box that could not be started shows nothing, whatever was to be shown.
func TestNotStarted(t *testing.T) {
	none := writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: no driver", nil)
	for _, tc := range []struct {
		arg  any
		want Verdict
	}{
		{Outcome{Error: none}, Inconclusive}, {none, Inconclusive},
		{Outcome{Error: errors.New("another")}, Broken}, {Outcome{}, Broken}, {"text", Broken}, {nil, Broken},
	} {
		var f *finding
		if err := broken("%v", tc.arg); !errors.As(err, &f) || f.verdict != tc.want {
			t.Errorf("%v: %v", tc.arg, err)
		}
	}
}

// TestVerdicts: nothing but the expected refusal, after a control that worked, holds.
func TestVerdicts(t *testing.T) {
	said := func(code int, out string) Outcome { return Outcome{Out: out, Exit: sandbox.Exit{Code: code}} }
	ok := said(0, "")
	for _, tc := range []struct {
		name     string
		outcomes []Outcome
		want     Verdict
		detail   string
	}{
		{"refused", []Outcome{ok, said(1, "cat: x: Permission denied")}, Held, eacces},
		{"another refusal", []Outcome{ok, said(1, "cat: x: Is a directory")}, Inconclusive, "it failed, but not with"},
		{"it worked", []Outcome{ok, ok}, Broken, "it worked"},
		{"refused, with the secret", []Outcome{ok, said(1, "Permission denied "+canary)}, Broken, "saw what it must not"},
		{"dead control", []Outcome{said(1, "no such program"), said(1, "Permission denied")}, Inconclusive, "the control failed"},
		{"no box", []Outcome{ok, {Error: errors.New("no room")}}, Inconclusive, "the attack was not run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := prover(t, scripted{sandbox.Features{{Feature: sandbox.FileRead, Enforced: true}}, tc.outcomes, new(int)})
			x := row("x", "control", "attack", eacces)
			x.Feature = sandbox.FileRead
			if r := p.Try(t.Context(), x); r.Verdict != tc.want || !strings.Contains(r.Detail, tc.detail) {
				t.Errorf("%s: %q, want %s and %q", r.Verdict, r.Detail, tc.want, tc.detail)
			}
			x.Feature = sandbox.LimitPids
			if r := p.Try(t.Context(), x); r.Verdict != Skipped || r.Detail != "the driver does not enforce limit_pids here" {
				t.Errorf("of a feature that it lacks: %+v", r)
			}
		})
	}
}

func prover(t *testing.T, d sandbox.Driver) *Prover {
	t.Helper()
	if err := Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	p, err := New(t.Context(), d, os.Getenv("WRIT_TEST_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if _, err := os.Stat(p.dir); err == nil {
			t.Errorf("%s is left", p.dir)
		}
	})
	return p
}

// TestUndeclared: what a driver lacks must be refused by name; one that starts it anyway,
// or says something else, is broken.
func TestUndeclared(t *testing.T) {
	refusal := func(msg string) Outcome { return Outcome{Error: writ.Fail(writ.SandboxUnavailable, msg, nil)} }
	for _, tc := range []struct {
		name    string
		outcome Outcome
		want    Verdict
	}{
		{"by name", refusal("sandbox_unavailable: driver x does not enforce host_allowlist"), Held},
		{"without the name", refusal("sandbox_unavailable"), Broken},
		{"as something else", Outcome{Error: writ.Fail(writ.Denied, "denied: host_allowlist", nil)}, Broken},
		{"not at all", Outcome{}, Broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := prover(t, scripted{nil, []Outcome{tc.outcome}, new(int)})
			for _, x := range refuseProbes() {
				if x.Name != string(sandbox.HostAllowlist) {
					continue
				}
				if r := p.Try(t.Context(), x); r.Verdict != tc.want {
					t.Errorf("%+v, want %s", r, tc.want)
				}
			}
		})
	}
}

// TestCancelled: ending the context ends the run with nothing left behind.
func TestCancelled(t *testing.T) {
	if err := Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	parent, err := scratch(os.Getenv("WRIT_TEST_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	ctx, cancel := context.WithCancel(t.Context())
	d := scripted{nil, []Outcome{{}}, new(int)}
	seen := 0
	err = Run(ctx, d, Options{Dir: parent, Parallel: 1}, func(Result) {
		if seen++; seen == 3 {
			cancel()
		}
	})
	left, _ := filepath.Glob(parent + "/*")
	if !errors.Is(err, context.Canceled) || seen != 3 || len(left) > 0 {
		t.Errorf("%v after %d results, left: %v", err, seen, left)
	}
	if os.Getenv(ours[0]) != "" {
		t.Error("the environment still has the canary")
	}
}

// TestScratch: not where every box has its own, and not where boxes cannot get to.
func TestScratch(t *testing.T) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/tmp/x", "relative", "/nowhere-at-all"} {
		if at, err := scratch(dir); err == nil {
			os.RemoveAll(at)
			t.Errorf("%s was taken: %s", dir, at)
		}
	}
	at, err := scratch("")
	if err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(at)
}

// TestMissing: what the suite needs is named, with how to get it.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cat"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	want := "the suite needs bash and python3 in " + dir + "; install it with the system's packages (Debian: apt-get install bash coreutils python3)"
	if err := missingIn([]string{dir}); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"bash", "python3"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := missingIn([]string{dir}); err != nil {
		t.Error(err)
	}
}

// TestRemedies: only what a driver declares and lacks, and somebody could demand, needs one.
func TestRemedies(t *testing.T) {
	last := func(have ...sandbox.Finding) string {
		all := Remedies(have, false)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1]
	}
	const want = "calls that need exec_listed are refused on this driver; sandboxing.default_backend: auto takes the first that has it"
	for _, tc := range []struct {
		finding sandbox.Finding
		want    string
	}{
		{sandbox.Finding{Feature: sandbox.ExecListed, Enforced: true}, ""},
		{sandbox.Finding{Feature: sandbox.ExecListed, Evidence: "this worked: run one that is not listed"}, want},
		{sandbox.Finding{Feature: sandbox.ExecListed, Evidence: "not claimed: never"}, ""},
		{sandbox.Finding{Feature: sandbox.ProcessTable, Evidence: "this worked: see it"}, ""},
	} {
		if got := last(tc.finding); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.finding, got, tc.want)
		}
	}
}
