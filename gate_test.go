package writ

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// parts is a gate whose four parts are functions, and what it was seen to do.
type parts struct {
	decide  func(Call) (Decision, error)
	approve func(Call, Decision) (Approval, error)
	record  func(Event) error
	run     func(context.Context, Writ) (Result, error)
	did     []string
}

func (p *parts) Decide(_ context.Context, c Call) (Decision, error) {
	p.did = append(p.did, "decide")
	return p.decide(c)
}
func (p *parts) Approve(_ context.Context, c Call, d Decision) (Approval, error) {
	p.did = append(p.did, "approve")
	return p.approve(c, d)
}
func (p *parts) Record(_ context.Context, e Event) error {
	p.did = append(p.did, string(e.Kind))
	if p.record != nil {
		return p.record(e)
	}
	return nil
}
func (p *parts) Run(ctx context.Context, w Writ) (Result, error) {
	p.did = append(p.did, "run")
	if p.run != nil {
		return p.run(ctx, w)
	}
	return Result{Content: "ran"}, nil
}

var (
	goodCall = Call{ID: "1", Agent: "a", Tool: "t", Definition: Digest{1}, Resolved: true}
	allowed  = func(Call) (Decision, error) { return Decision{Effect: Allow}, nil }
	asking   = func(Call) (Decision, error) { return Decision{Effect: Ask, Subject: Digest{7}}, nil }
	agreeing = func(c Call, d Decision) (Approval, error) {
		return Approval{ID: "ap", Call: c, Subject: d.Subject}, nil
	}
	errBoom = errors.New("boom with a secret")
)

func TestDo(t *testing.T) {
	second := func(first, then func(Call) (Decision, error)) func(Call) (Decision, error) {
		n := 0
		return func(c Call) (Decision, error) {
			if n++; n == 1 {
				return first(c)
			}
			return then(c)
		}
	}
	failOn := func(kind EventKind) func(Event) error {
		return func(e Event) error {
			if e.Kind == kind {
				return errBoom
			}
			return nil
		}
	}
	denying := func(Call) (Decision, error) {
		return Decision{Reasons: []Reason{{Effect: Allow, Text: "not this"}, {Effect: Deny, Text: "because", Where: "writ.yaml:3"}}}, nil
	}
	tests := []struct {
		name string
		p    parts
		did  string
		kind Kind
		msg  string
	}{
		{"allowed", parts{decide: allowed}, "decide call.started run call.finished", "", ""},
		{"denied", parts{decide: denying}, "decide call.refused", Denied, "denied: because"},
		{"zero decision denies", parts{decide: func(Call) (Decision, error) { return Decision{}, nil }}, "decide call.refused", Denied, "denied: nothing allows it"},
		{"deciding fails", parts{decide: func(Call) (Decision, error) { return Decision{Effect: Allow}, errBoom }}, "decide call.refused", Denied, "denied: the decision could not be made"},
		{"asked and agreed", parts{decide: asking, approve: agreeing}, "decide approve decide call.started run call.finished", "", ""},
		{"rejected", parts{decide: asking, approve: func(Call, Decision) (Approval, error) { return Approval{}, Fail(Rejected, "no", nil) }},
			"decide approve call.refused", Rejected, "no"},
		{"pending is not recorded as refused", parts{decide: asking, approve: func(Call, Decision) (Approval, error) { return Approval{}, Fail(Pending, "wait", nil) }},
			"decide approve", Pending, "wait"},
		{"approving fails", parts{decide: asking, approve: func(Call, Decision) (Approval, error) { return Approval{}, errBoom }},
			"decide approve call.refused", Internal, "internal error; the operator's log has the cause"},
		{"denied after approval", parts{decide: second(asking, denying), approve: agreeing}, "decide approve decide call.refused", Denied, "denied: because"},
		{"deciding fails after approval", parts{decide: second(asking, func(Call) (Decision, error) { return Decision{}, errBoom }), approve: agreeing},
			"decide approve decide call.refused", Denied, "denied: the decision could not be made"},
		{"changed after approval", parts{decide: second(asking, func(Call) (Decision, error) { return Decision{Effect: Ask, Subject: Digest{8}}, nil }), approve: agreeing},
			"decide approve decide call.refused", Changed, "what was approved is no longer what would run; ask again"},
		{"made before", parts{decide: asking, approve: func(Call, Decision) (Approval, error) { return Approval{}, &Already{Result: Result{Content: "ran"}} }},
			"decide approve", "", ""},
		{"an approval of no call", parts{decide: asking, approve: func(_ Call, d Decision) (Approval, error) { return Approval{ID: "x", Subject: d.Subject}, nil }},
			"decide approve decide call.refused", Invalid, "the call is incomplete: it has no caller, tool or resolved arguments"},
		{"approval of something else", parts{decide: asking, approve: func(c Call, _ Decision) (Approval, error) { return Approval{ID: "x", Call: c, Subject: Digest{9}}, nil }},
			"decide approve decide call.refused", Changed, "what was approved is no longer what would run; ask again"},
		{"a zero subject is never agreed to", parts{decide: func(Call) (Decision, error) { return Decision{Effect: Ask}, nil }, approve: agreeing},
			"decide approve decide call.refused", Changed, "what was approved is no longer what would run; ask again"},
		{"no record, no run", parts{decide: allowed, record: failOn(EventStarted)}, "decide call.started", StoreUnavailable, "the ledger cannot be written, so nothing runs"},
		{"lost reservation", parts{decide: allowed, record: func(Event) error { return Fail(Conflict, "used", nil) }}, "decide call.started call.refused", Conflict, "used"},
		{"outcome not recorded", parts{decide: allowed, record: failOn(EventFinished)}, "decide call.started run call.finished", Unknown, "the call ran, but its outcome could not be recorded"},
		{"unrecorded refusal is a refusal", parts{decide: denying, record: failOn(EventRefused)}, "decide call.refused", StoreUnavailable, "the ledger cannot be written, so nothing runs"},
		{"tool fails", parts{decide: allowed, run: func(context.Context, Writ) (Result, error) { return Result{}, errBoom }},
			"decide call.started run call.finished", Internal, "internal error; the operator's log has the cause"},
		{"tool panics", parts{decide: allowed, run: func(context.Context, Writ) (Result, error) { panic("secret") }},
			"decide call.started run call.finished", Internal, "the tool failed unexpectedly"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &tt.p
			res, err := NewGate(p, p, p, p).Do(t.Context(), goodCall)
			if got := strings.Join(p.did, " "); got != tt.did {
				t.Errorf("did %q, want %q", got, tt.did)
			}
			if tt.kind == "" {
				if err != nil || res.Content != "ran" {
					t.Errorf("got %+v, %v", res, err)
				}
				return
			}
			kind, msg := Public(err)
			if kind != tt.kind || msg != tt.msg {
				t.Errorf("got %s %q, want %s %q", kind, msg, tt.kind, tt.msg)
			}
			if strings.Contains(msg, "secret") {
				t.Errorf("the public message leaks: %q", msg)
			}
		})
	}
}

// I1, I2: a gate that is not assembled and a call that is not complete run nothing.
func TestIncomplete(t *testing.T) {
	p := &parts{decide: allowed}
	gates := map[string]*Gate{"nil": nil, "zero": {}, "no decider": NewGate(nil, p, p, p), "no approver": NewGate(p, nil, p, p), "no recorder": NewGate(p, p, nil, p), "no runner": NewGate(p, p, p, nil)}
	for name, g := range gates {
		if _, err := g.Do(t.Context(), goodCall); KindOf(err) != Internal {
			t.Errorf("%s gate: %v", name, err)
		}
	}
	for name, strip := range map[string]func(*Call){
		"id": func(c *Call) { c.ID = "" }, "agent": func(c *Call) { c.Agent = "" }, "tool": func(c *Call) { c.Tool = "" },
		"definition": func(c *Call) { c.Definition = Digest{} }, "targets": func(c *Call) { c.Resolved = false },
	} {
		c := goodCall
		strip(&c)
		if _, err := NewGate(p, p, p, p).Do(t.Context(), c); KindOf(err) != Invalid {
			t.Errorf("call without %s: %v", name, err)
		}
	}
	if len(p.did) > 0 {
		t.Errorf("did %v", p.did)
	}
}

// A writ is good while its run lasts, and no longer.
func TestWritEnds(t *testing.T) {
	var kept Writ
	p := &parts{decide: func(Call) (Decision, error) {
		return Decision{Effect: Allow, Confine: Confinement{Read: []string{"/"}}}, nil
	}}
	p.run = func(_ context.Context, w Writ) (Result, error) {
		if !w.Valid() || w.Call().Agent != "a" || !slices.Equal(w.Confinement().Read, []string{"/"}) {
			t.Error("the writ is not good while it runs")
		}
		kept = w
		return Result{}, nil
	}
	if _, err := NewGate(p, p, p, p).Do(t.Context(), goodCall); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]Writ{"kept": kept, "zero": {}} {
		if w.Valid() || w.Confinement().Read != nil {
			t.Errorf("the %s writ orders something", name)
		}
	}
	if (Writ{}).Decision().Effect != Deny || (Writ{}).Call().Resolved || (Writ{}).Approval().ID != "" {
		t.Error("the zero writ says something")
	}
}

// The outcome is recorded even when the caller has gone.
func TestCallerGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &parts{decide: allowed}
	p.run = func(context.Context, Writ) (Result, error) { cancel(); return Result{}, ctx.Err() }
	var recorded error = errBoom
	p.record = func(e Event) error {
		if e.Kind == EventFinished {
			recorded = e.Err
		}
		return nil
	}
	NewGate(p, p, p, p).Do(ctx, goodCall)
	if !errors.Is(recorded, context.Canceled) {
		t.Errorf("finished was recorded with %v", recorded)
	}
}

func TestDigest(t *testing.T) {
	d := Digest{0xab, 1}
	back, err := ParseDigest(d.String())
	if err != nil || back != d || d.IsZero() || !(Digest{}).IsZero() {
		t.Errorf("%v %v", back, err)
	}
	for _, s := range []string{"", "ab", d.String() + "00", strings.Repeat("x", 64)} {
		if _, err := ParseDigest(s); err == nil {
			t.Errorf("%q parsed", s)
		}
	}
}

// Whoever made a call is told the id that something is written down under.
func TestDoAs(t *testing.T) {
	before := &Already{Call: "2", Result: Result{Content: "ran"}}
	waits := &Error{Kind: Pending, Msg: "wait", Ref: "3"}
	when := func(kind EventKind, err error) func(Event) error {
		return func(e Event) error {
			if e.Kind == kind {
				return err
			}
			return nil
		}
	}
	refusing := func(a Approval, err error) func(Call, Decision) (Approval, error) {
		return func(Call, Decision) (Approval, error) { return a, err }
	}
	failing := func(err error) func(context.Context, Writ) (Result, error) {
		return func(context.Context, Writ) (Result, error) { return Result{}, err }
	}
	for _, tt := range []struct {
		name string
		p    parts
		id   string
		did  string
	}{
		{"its own", parts{decide: allowed}, "1", "decide call.started run call.finished"},
		{"denied", parts{decide: func(Call) (Decision, error) { return Decision{}, nil }}, "1", "decide call.refused"},
		{"agreed to", parts{decide: asking, approve: agreeing}, "ap", "decide approve decide call.started run call.finished"},
		{"rejected", parts{decide: asking, approve: refusing(Approval{ID: "ap"}, Fail(Rejected, "no", nil))}, "ap", "decide approve call.refused"},
		{"asked about", parts{decide: asking, approve: refusing(Approval{}, waits)}, "3", "decide approve"},
		{"ran before, says the approver", parts{decide: asking, approve: refusing(Approval{}, before)}, "2", "decide approve"},
		{"ran before, says the recorder", parts{decide: allowed, record: when(EventStarted, before)}, "2", "decide call.started"},
		{"runs, says the recorder", parts{decide: allowed, record: when(EventStarted, waits)}, "3", "decide call.started"},
		{"a tool that made another call", parts{decide: allowed, run: failing(waits)}, "1", "decide call.started run call.finished"},
		{"and another that ran before", parts{decide: allowed, run: failing(before)}, "1", "decide call.started run call.finished"},
	} {
		id, _, _ := NewGate(&tt.p, &tt.p, &tt.p, &tt.p).DoAs(t.Context(), goodCall)
		if did := strings.Join(tt.p.did, " "); id != tt.id || did != tt.did {
			t.Errorf("%s: %s and %q, want %s and %q", tt.name, id, did, tt.id, tt.did)
		}
	}
}
