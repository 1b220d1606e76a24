package writ

import "time"

// A Quota bounds how often one agent may start calls of one tool.
type Quota struct {
	Max    int           `json:"max"`
	Per    Scope         `json:"per"`
	Window time.Duration `json:"window,omitempty"` // with PerWindow: the last so long, sliding
}

// Scope is over what a quota counts.
type Scope uint8

const (
	PerSession Scope = iota
	PerTask
	PerWindow
)

var scopeNames = []string{"session", "task", "window"}

func (s Scope) String() string                { return name(s, scopeNames) }
func (s Scope) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }
func (s *Scope) UnmarshalText(b []byte) error { return parse(s, scopeNames, b) }

// Reserve is what has to hold at the moment a call is recorded as started: its
// place within every quota, and the tools that must have succeeded before it in
// its task. The recorder checks and takes it in the transaction that records the
// start, so that parallel calls cannot both have the last place; a reservation
// that is lost is a denial.
type Reserve struct {
	Quotas []Quota
	After  []string // each must have succeeded in this task
	Keep   bool     // remember the call and its success: somebody counts it
}
