package writ

import "sync/atomic"

// A Writ is the order without which nothing runs: proof that its call was
// decided, agreed to where a person had to agree, and written down. Only Gate
// makes one. The zero Writ, and one whose run has ended, order nothing.
//
// Copies share their end: a tool that keeps its writ cannot start anything with
// it later.
type Writ struct{ order *order }

type order struct {
	call     Call
	decision Decision
	approval Approval
	spent    atomic.Bool
}

func issue(c Call, d Decision, approval Approval) Writ {
	return Writ{&order{call: c, decision: d, approval: approval}}
}

func (w Writ) spend() { w.order.spent.Store(true) }

// Valid reports whether the writ orders anything now. Whatever starts something
// on behalf of a call asks first.
func (w Writ) Valid() bool { return w.order != nil && !w.order.spent.Load() }

// Call is the call that was decided; the zero Call for the zero Writ.
func (w Writ) Call() Call {
	if w.order == nil {
		return Call{}
	}
	return w.order.call
}

// Decision is what was decided; the zero Decision, which denies, for the zero Writ.
func (w Writ) Decision() Decision {
	if w.order == nil {
		return Decision{}
	}
	return w.order.decision
}

// Confinement is all that the run may reach; nothing once the writ is spent.
func (w Writ) Confinement() Confinement {
	if !w.Valid() {
		return Confinement{}
	}
	return w.order.decision.Confine
}

// Approval is what it rests on; the zero Approval where nobody had to be asked.
func (w Writ) Approval() Approval {
	if w.order == nil {
		return Approval{}
	}
	return w.order.approval
}
