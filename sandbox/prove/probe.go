package prove

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Verdict is what became of one probe.
type Verdict string

const (
	Held         Verdict = "held"         // refused as it should be, and its control worked
	Broken       Verdict = "broken"       // the attack worked
	Inconclusive Verdict = "inconclusive" // nothing was shown
	Skipped      Verdict = "skipped"      // the driver does not claim it, or this machine cannot show it
)

// Result is what one probe showed.
type Result struct {
	Probe   string          `json:"probe"` // unique within its group
	Group   string          `json:"group"`
	Feature sandbox.Feature `json:"feature,omitempty"` // empty: every box has it
	Verdict Verdict         `json:"verdict"`
	Detail  string          `json:"detail,omitempty"` // why it is not held; of a held one, how it was refused
	Elapsed time.Duration   `json:"elapsed_ns"`
}

// Name is the group and the probe.
func (r Result) Name() string { return r.Group + "/" + r.Probe }

// Probe is one thing that a box must not be able to do, or must do exactly so.
type Probe struct {
	Group, Name string
	Feature     sandbox.Feature // what it proves; empty: what every box has
	Control     string          // a script that must succeed
	Attack      string          // a script that must fail
	Refusal     []string        // one of these must be in what the attack says; they differ by mechanism

	confine func(*world, *writ.Confinement) // what to change in the ordinary confinement
	arrange func(*world) error              // what to attack, besides the ordinary
	env     map[string]string               // added to the environment of both scripts
	try     func(context.Context, *world) error
	gvisor  gvisor
	shared  bool // only where a driver shares the host's processes: elsewhere there is nothing to refuse
	alone   bool // nothing else runs at the same time, since it counts or exhausts something
	free    bool // the attack may change what is outside: it has been given that
}

// All is every probe, in the order of their groups.
func All() []Probe {
	return slices.Concat(refuseProbes(), readProbes(), deviceProbes(), writeProbes(), knobProbes(), hideProbes(), execProbes(), networkProbes(),
		hostProbes(), agentProbes(), kernelProbes(), privilegeProbes(), processProbes(), tableProbes(), treeProbes(), limitProbes(), useProbes(), timeProbes(), environmentProbes(), ioProbes())
}

// Alone reports whether nothing else may run at the same time.
func (p Probe) Alone() bool { return p.alone }

// finding is an error that says which verdict it is for. Other errors mean that nothing
// was shown.
type finding struct {
	verdict Verdict
	text    string
}

func (f *finding) Error() string { return f.text }

// broken says that an attack worked, or that what should work did not. Where no box was
// started nothing was seen.
func broken(format string, args ...any) error {
	for _, a := range args {
		err, _ := a.(error)
		if o, ok := a.(Outcome); ok {
			err = o.Error
		}
		if err != nil && writ.KindOf(err) == writ.SandboxUnavailable {
			return inconclusive(format, args...)
		}
	}
	return &finding{Broken, fmt.Sprintf(format, args...)}
}

func inconclusive(format string, args ...any) error {
	return &finding{Inconclusive, fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) error {
	return &finding{Skipped, fmt.Sprintf(format, args...)}
}

// row is an attack by script, its control, and how it is refused.
func row(name, control, attack string, refusal ...string) Probe {
	return Probe{Name: name, Control: control, Attack: attack, Refusal: refusal}
}

// group completes probes that have a group and a feature in common.
func group(name string, f sandbox.Feature, all []Probe, with ...func(*Probe)) []Probe {
	for i := range all {
		all[i].Group = name
		if all[i].Feature == "" {
			all[i].Feature = f
		}
		for _, w := range with {
			w(&all[i])
		}
	}
	return all
}

func confined(change func(*world, *writ.Confinement)) func(*Probe) {
	return func(p *Probe) { p.confine = change }
}

func arranged(make func(*world) error) func(*Probe) {
	return func(p *Probe) { p.arrange = make }
}
