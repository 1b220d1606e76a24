package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
)

// Approvals sets how approvals behave. Whatever is chosen, nothing approves by
// itself: a request that nobody answers ends denied.
type Approvals struct {
	Expiry     Duration             `yaml:"expiry"`
	Timeout    TimeoutPolicy        `yaml:"timeout"`
	Tiers      map[action.Risk]Tier `yaml:"tiers"`      // with TimeoutTiered; one that is left out denies after Expiry
	Escalation []Step               `yaml:"escalation"` // in order; when it is exhausted the request is denied
	FourEyes   FourEyes             `yaml:"four_eyes"`
	Quorum     int                  `yaml:"quorum"`
	MaxPending int                  `yaml:"max_pending"` // requests of one agent that may wait
	Rate       Rate                 `yaml:"rate"`        // requests that one agent may make
	Address    string               `yaml:"address"`     // where people reach this daemon over HTTP: links in messages begin with it
	Webhooks   map[string]Webhook   `yaml:"webhooks"`    // who is told what happens to calls
}

// TimeoutPolicy is what becomes of a request that nobody answers.
type TimeoutPolicy string

const (
	TimeoutDeny     TimeoutPolicy = "deny"
	TimeoutWait     TimeoutPolicy = "wait"
	TimeoutTiered   TimeoutPolicy = "tiered"
	TimeoutEscalate TimeoutPolicy = "escalate"
)

// Tier is what becomes of requests of one risk.
type Tier struct {
	After Duration `yaml:"after"`
	Then  TierEnd  `yaml:"then"`
}

// TierEnd is what a tier does when its time is over.
type TierEnd string

const (
	ThenDeny     TierEnd = "deny"
	ThenEscalate TierEnd = "escalate"
)

// Step is one step of the escalation: whom a request is put to, and after how long it
// goes on to the next step, or is denied after the last.
type Step struct {
	Role  StepRole `yaml:"role"`
	After Duration `yaml:"after"`
}

func (s Step) String() string { return fmt.Sprintf("{role: %s, after: %s}", string(s.Role), s.After) }

// StepRole is a role of people who may approve.
type StepRole string

// FourEyes is when the person that an agent acts for may not be the one who approves.
type FourEyes string

const (
	FourEyesDangerous FourEyes = "dangerous"
	FourEyesAlways    FourEyes = "always"
	FourEyesNever     FourEyes = "unsafe_never"
)

// Rate is a quota over time, written 60/1h.
type Rate struct{ writ.Quota }

func (r Rate) String() string { return tool.QuotaText(r.Quota) }

// Shape says how a rate is written to somebody who wrote a number alone.
func (r *Rate) Shape(k strict.Kind) (any, string) {
	if k == strict.Text {
		return (*writtenRate)(r), ""
	}
	return nil, "a number over a time, such as 60/1h"
}

// writtenRate is a Rate without its Shape.
type writtenRate Rate

func (r *writtenRate) UnmarshalText(b []byte) error { return (*Rate)(r).UnmarshalText(b) }

// UnmarshalText reads a number over a time.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	r.Quota, err = tool.ParseRate(string(b))
	return err
}

// word takes one of the words there are.
func word[T ~string](v *T, what string, b []byte, known ...string) error {
	if !slices.Contains(known, string(b)) {
		return &action.UnknownError{What: what, Got: string(b), Known: known}
	}
	*v = T(b)
	return nil
}

func (p *TimeoutPolicy) UnmarshalText(b []byte) error {
	return word(p, "timeout policy", b, "deny", "wait", "tiered", "escalate")
}

// UnmarshalText refuses approve by name, because somebody will try it.
func (e *TierEnd) UnmarshalText(b []byte) error {
	if string(b) == "approve" {
		return fmt.Errorf("nothing approves by itself; write deny or escalate")
	}
	return word(e, "end of a tier", b, "deny", "escalate")
}

func (r *StepRole) UnmarshalText(b []byte) error {
	return word(r, "role of people who approve", b, "approver", "admin")
}

func (f *FourEyes) UnmarshalText(b []byte) error {
	return word(f, "value of four_eyes", b, "dangerous", "always", "unsafe_never")
}

// maxWait is the longest that a request can wait at one step.
const maxWait = 30 * day

const maxQuorum = 10

func (c *Config) checkApprovals(d *strict.File) {
	a := c.File.Approvals
	c.wait(d, "approvals.expiry", a.Expiry)
	if a.Quorum < 1 || a.Quorum > maxQuorum {
		d.Reject("approvals.quorum", "must be 1 to %d people", maxQuorum)
	}
	if a.MaxPending < 1 || a.MaxPending > 1000 {
		d.Reject("approvals.max_pending", "must be 1 to 1000 requests")
	}
	if a.FourEyes == FourEyesNever {
		c.Warnings = append(c.Warnings, c.At("approvals.four_eyes")+": four_eyes is unsafe_never: whoever an agent acts for may approve its dangerous calls alone")
	}
	c.checkTiers(d)
	c.checkEscalation(d)
}

func (c *Config) checkTiers(d *strict.File) {
	a := c.File.Approvals
	_, given := c.lines["approvals.tiers"]
	switch {
	case d.Unread("approvals.timeout"):
	case given && a.Timeout != TimeoutTiered:
		d.Reject("approvals.tiers", "has no effect with timeout: %s; set timeout: tiered or remove the tiers", string(a.Timeout))
	case a.Timeout == TimeoutTiered && len(a.Tiers) == 0 && !d.Unread("approvals.tiers"):
		d.Reject("approvals.tiers", "is missing; timeout: tiered takes one of low, medium, high and critical, or more")
	}
	for _, r := range c.risks() {
		key := "approvals.tiers." + r.String()
		if r == action.Unknown {
			d.Reject(key, "an unknown risk counts as high; name low, medium, high or critical")
		}
		c.wait(d, key+".after", a.Tiers[r].After)
		if a.Tiers[r].Then == "" {
			d.Reject(key+".then", "is missing; write deny or escalate")
		}
	}
}

// risks are those with a tier, the lowest first.
func (c *Config) risks() []action.Risk {
	var out []action.Risk
	for r := range c.File.Approvals.Tiers {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

func (c *Config) checkEscalation(d *strict.File) {
	const key = "approvals.escalation"
	a := c.File.Approvals
	for i, s := range a.Escalation {
		at := fmt.Sprintf("%s[%d]", key, i)
		if s.Role == "" {
			d.Reject(at+".role", "is missing; write approver or admin")
		}
		c.wait(d, at+".after", s.After)
	}
	needs := c.escalates()
	_, given := c.lines[key]
	switch {
	case d.Unread("approvals.timeout") || d.Unread("approvals.tiers"):
	case len(a.Escalation) == 0 && len(needs) > 0:
		d.Reject(key, "is missing, and %s leads to it; write a list such as [{role: admin, after: 2h}]", strings.Join(needs, ", "))
	case given && len(needs) == 0:
		d.Reject(key, "has no effect: neither timeout: escalate nor a tier with then: escalate leads to it; set one or remove the list")
	}
}

// escalates lists what leads to the escalation.
func (c *Config) escalates() []string {
	var out []string
	if c.File.Approvals.Timeout == TimeoutEscalate {
		out = append(out, "timeout: escalate")
	}
	for _, r := range c.risks() {
		if c.File.Approvals.Tiers[r].Then == ThenEscalate {
			out = append(out, "tier "+r.String())
		}
	}
	return out
}

// wait refuses a time that is missing or longer than anybody waits.
func (c *Config) wait(d *strict.File, key string, v Duration) {
	if v == 0 {
		d.Reject(key, "is missing; write 15m, 8h or 7d")
	} else if time.Duration(v) > maxWait {
		d.Reject(key, "must be at most %dd", maxWait/day)
	}
}
