package approval

import (
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// Terms are how people are asked.
type Terms struct {
	Expiry     time.Duration
	Timeout    Timeout
	Tiers      map[string]Tier // by risk, with Tiered; one that is left out denies after Expiry
	Escalation []Step
	FourEyes   FourEyes
	Quorum     int // how many distinct people have to agree
	MaxPending int // requests of one agent that may wait: a flood of questions is a way to get a tired yes
	Rate       writ.Quota
}

// Timeout is what becomes of a request that nobody answers. None of them approves.
type Timeout string

const (
	Deny     Timeout = "deny"     // after Expiry
	Wait     Timeout = "wait"     // it waits until somebody answers
	Tiered   Timeout = "tiered"   // by the request's own risk
	Escalate Timeout = "escalate" // through the roles of Escalation, then denied
)

// Tier is how long requests of one risk wait, and what happens then.
type Tier struct {
	After    time.Duration
	Escalate bool // through Escalation; else it is denied
}

// Step is one role that a request is put to, and for how long.
type Step struct {
	Role string
	For  time.Duration
}

// FourEyes is when the person an agent acts for cannot be the one who approves.
type FourEyes string

const (
	Dangerous   FourEyes = "dangerous" // dangerous calls, where two people can approve
	Always      FourEyes = "always"
	UnsafeNever FourEyes = "unsafe_never"
)

// never is when a request expires that waits.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// begin is what a request waits for before it escalates, and whether it does.
func (t Terms) begin(risk string) (wait time.Duration, escalates bool) {
	switch t.Timeout {
	case Escalate:
		return 0, true
	case Tiered:
		if tier, ok := t.Tiers[risk]; ok {
			return tier.After, tier.Escalate
		}
	}
	return t.Expiry, false
}

// expires is when a request that is made now is over.
func (t Terms) expires(risk string, now time.Time) time.Time {
	if t.Timeout == Wait {
		return never
	}
	wait, escalates := t.begin(risk)
	if escalates {
		for _, s := range t.Escalation {
			wait += s.For
		}
	}
	return now.Add(wait)
}

// step is how far a request has escalated by now: 0 before it does, then the number
// of the step of Escalation it is at. Times add up.
func (t Terms) step(risk string, asked, now time.Time) int {
	wait, escalates := t.begin(risk)
	if !escalates {
		return 0
	}
	at := asked.Add(wait)
	n := 0
	for _, s := range t.Escalation {
		if now.Before(at) {
			break
		}
		n++
		at = at.Add(s.For)
	}
	return n
}

// needs is the role that an approver must have now, where it is not any that may
// approve: a chain that begins with admins is theirs alone until it reaches others.
func (t Terms) needs(i store.Invocation, now time.Time) string {
	asked, err := time.Parse(time.RFC3339Nano, i.Requested)
	if err != nil {
		return "admin"
	}
	n := t.step(i.Risk, asked, now)
	for _, s := range t.Escalation[:n] {
		if s.Role != "admin" {
			return ""
		}
	}
	if n > 0 {
		return "admin"
	}
	return ""
}

// notBy is who may not approve a call, by the rule of four eyes.
func (t Terms) notBy(c writ.Call, dec writ.Decision, approvers int) string {
	switch {
	case t.FourEyes == Always, t.FourEyes == Dangerous && dec.Dangerous && approvers > 1:
		return c.Person
	}
	return ""
}
