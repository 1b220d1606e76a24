package sandbox_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// contained is a driver of containers whose sidecars say something.
type contained struct {
	said func() io.ReadCloser
	spec *sandbox.Spec
}

func (contained) Name() string { return "contained" }
func (contained) Probe(context.Context) (sandbox.Features, error) {
	return sandbox.Features{{Feature: sandbox.ProtectedName, Enforced: true}}, nil
}
func (d contained) Start(_ context.Context, _ writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	*d.spec = spec
	return d, nil
}
func (d contained) Wait(context.Context) (sandbox.Exit, error) {
	io.WriteString(d.spec.Stdout, "four")
	io.WriteString(d.spec.Stderr, "fives")
	return sandbox.Exit{Code: 1, Container: &sandbox.Container{ID: "c", Sidecar: "s", Said: d.said()}}, nil
}

func TestReport(t *testing.T) {
	lines := func() io.ReadCloser { return io.NopCloser(strings.NewReader("{\"a\":1}\nno\n{\"b\":2}\n")) }
	silent := func() io.ReadCloser { r, _ := io.Pipe(); return r }
	for name, tc := range map[string]struct {
		said      func() io.ReadCloser
		raw       bool
		parsed    int
		malformed int
		took      time.Duration
	}{
		"lines":                {lines, false, 2, 1, 0},
		"raw":                  {lines, true, 2, 1, 0},
		"a sidecar that hangs": {silent, false, 0, 0, 3 * time.Second},
		"none":                 {func() io.ReadCloser { return nil }, false, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []sandbox.Run
				d := contained{tc.said, &sandbox.Spec{}}
				b := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{})
				b.Tell(sandbox.Report{IDs: []string{"X"}, Within: 3 * time.Second, Bytes: 7, Raw: tc.raw, Ran: func(r sandbox.Run) { told = append(told, r) }})
				began := time.Now()
				caller{t, b, writ.ClassNone, "/ws"}.call(writ.Call{Agent: "a", Session: "s", Task: "t"})
				if len(told) != 1 || time.Since(began) != tc.took {
					t.Fatalf("after %s: %+v", time.Since(began), told)
				}
				r := told[0]
				l := r.Exit.Container.Lines
				if r.Call != "call" || r.Agent != "a" || r.Session != "s" || r.Task != "t" || r.Driver != "contained" || r.Box == "" || r.Exit.Code != 1 || r.Stdout != 4 || r.Stderr != 5 {
					t.Errorf("%+v", r)
				}
				if len(l.Parsed)+l.Left != tc.parsed || l.Malformed != tc.malformed || (r.Unheard != nil) != (tc.took > 0) {
					t.Errorf("%+v, %v", l, r.Unheard)
				}
				if (r.Output != nil) != tc.raw || tc.raw && r.Output.String() != "urfives" {
					t.Errorf("%v", r.Output)
				}
				if env := d.spec.Env; len(env) != 4 || env["X_AGENT_ID"] != "a" || env["X_REQUEST_ID"] != "call" {
					t.Errorf("%v", env)
				}
			})
		})
	}
}

// What is no agent's call has no ids, and nobody is told where nobody asked.
func TestReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := contained{func() io.ReadCloser { return nil }, &sandbox.Spec{}}
		b := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{})
		caller{t, b, writ.ClassNone, "/ws"}.call(writ.Call{Agent: "a", Session: "s"})
		b.Tell(sandbox.Report{IDs: []string{"X"}})
		caller{t, b, writ.ClassNone, "/ws"}.call(writ.Call{Agent: "program"})
		if len(d.spec.Env) != 0 {
			t.Errorf("%v", d.spec.Env)
		}
	})
}
