package writ

import (
	"errors"
	"strings"
)

// Kind sorts errors by what the caller can do about them. It crosses front
// doors, so the values are part of the contract.
type Kind string

const (
	Invalid            Kind = "invalid_argument"
	Unauthenticated    Kind = "unauthenticated"
	NotFound           Kind = "not_found"
	Denied             Kind = "denied"
	Pending            Kind = "approval_pending"
	Rejected           Kind = "rejected"
	Expired            Kind = "expired"
	Stopped            Kind = "stopped"
	Cancelled          Kind = "cancelled"
	Changed            Kind = "changed" // what was approved is no longer what would run
	Conflict           Kind = "conflict"
	TooLarge           Kind = "too_large"
	SandboxUnavailable Kind = "sandbox_unavailable"
	StoreUnavailable   Kind = "store_unavailable"
	Unknown            Kind = "unknown" // it ran, and how it ended could not be written down
	Internal           Kind = "internal"
)

// Error is the error of the gate. Msg crosses a front door and is written as if
// an attacker reads it; Err is for the operator's log only (I15).
type Error struct {
	Kind Kind
	Msg  string
	Err  error
	Ref  string // the id of what the caller can come back for, such as a pending approval

	Reasons []Reason // of a denial: every source that spoke; for the operator and the embedding program
}

func (e *Error) Error() string {
	if e.Err == nil || strings.HasSuffix(e.Msg, e.Err.Error()) { // which the message says already
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf would invite mixing both audiences into one string, so there is none:
// write the public message and hand the cause over separately.
func Fail(kind Kind, msg string, cause error) *Error {
	return &Error{Kind: kind, Msg: msg, Err: cause}
}

// Public is what may be said of err to whoever called: the message of an Error,
// and nothing at all of any other.
func Public(err error) (Kind, string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind, e.Msg
	}
	return Internal, "internal error; the operator's log has the cause"
}

// KindOf is the kind of err, Internal for errors that are not ours.
func KindOf(err error) Kind {
	kind, _ := Public(err)
	return kind
}

// Refusal is the error that the caller of a denied call gets: every reason that
// denied, in one line, without the configuration lines behind them.
func (d Decision) Refusal() *Error {
	var said []string
	for _, r := range d.Reasons {
		if r.Effect == Deny {
			said = append(said, r.Text)
		}
	}
	if len(said) == 0 {
		said = []string{"nothing allows it"}
	}
	return &Error{Kind: Denied, Msg: "denied: " + strings.Join(said, "; "), Reasons: d.Reasons}
}
