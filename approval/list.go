package approval

import (
	"context"

	"github.com/writ-run/writ/store"
)

// Request is an invocation that a person was asked about.
type Request struct {
	store.Invocation
	State string // see StateOf
	Votes []store.Vote
	LedTo []store.Invocation // what the agent did just before, in the same task; the newest first
	Needs string             // the role that an approver must have now, where it is not any that may approve
	Shown *Shown             // while it is open
}

// StateOf is a request's state in the words people use: pending, approved (nobody has
// taken it up yet), used, rejected, expired or void.
func StateOf(i store.Invocation, now string) string {
	switch {
	case i.Status == "rejected":
		return "rejected"
	case i.Status == "expired", i.Outcome == "expired", i.Fence == 0 && i.Expires <= now && (i.Status == "pending" || i.Status == "running"):
		return "expired"
	case i.Status == "pending":
		return "pending"
	case i.Fence > 0:
		return "used"
	case i.Status == "running":
		return "approved"
	}
	return "void"
}

// AsOf is an invocation as it counts at a time: a request whose time is over has
// expired, also before anybody ended it.
func AsOf(i store.Invocation, now string) store.Invocation {
	if i.Status == "pending" && i.Expires <= now {
		i.Status, i.Approval, i.Outcome, i.Completed = "expired", "expired", "expired", i.Expires
	}
	return i
}

func (d *Desk) listed(i store.Invocation) Request {
	return Request{Invocation: i, State: StateOf(i, stamp(d.now()))}
}

// ledToMost is how many calls before a request are shown with it.
const ledToMost = 10

// Show gives one request whole.
func (d *Desk) Show(ctx context.Context, id string) (Request, error) {
	i, err := d.request1(ctx, id)
	if err != nil {
		return Request{}, err
	}
	r := d.listed(i)
	r.Needs = d.terms().needs(i, d.now())
	if r.Votes, err = d.store.Votes(ctx, id); err != nil {
		return r, err
	}
	if r.LedTo, err = d.store.LedTo(ctx, i, ledToMost); err != nil {
		return r, err
	}
	if i.Completed == "" {
		r.Shown, err = d.unsealed(i)
	}
	return r, err
}

// Args is the arguments of an open request, for a list; empty once it has ended.
func (d *Desk) Args(ctx context.Context, id string) (string, error) {
	i, err := d.request1(ctx, id)
	if err != nil || i.Completed != "" {
		return "", err
	}
	s, err := d.unsealed(i)
	if err != nil {
		return "", err
	}
	return string(s.Args), nil
}
