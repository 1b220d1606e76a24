package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Request is a request as it is listed.
type Request struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Agent     string `json:"agent"`
	Tool      string `json:"tool"`
	Requested string `json:"requested_at"`
	Expires   string `json:"expires_at"`
	Decided   string `json:"decided_at,omitempty"`
	By        string `json:"decided_by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Digest    string `json:"digest"`
	Preview   string `json:"preview,omitempty"` // in a list, while it is open
	Shown     *Shown `json:"call,omitempty"`    // of one, while it is open
}

// List gives the requests in a state, or all when state is empty.
func (d *Desk) List(ctx context.Context, state string) ([]Request, error) {
	as, err := d.store.Approvals(ctx, state)
	if err != nil {
		return nil, err
	}
	out := make([]Request, 0, len(as))
	for _, a := range as {
		if (a.State == "pending" || a.State == "approved") && over(a.Expires, d.now()) {
			if state != "" {
				continue
			}
			a.State = "expired"
		}
		r := listed(a)
		switch s, err := d.unsealed(a); {
		case err != nil:
			r.Preview = "(altered: it cannot be approved)"
		case s != nil:
			r.Preview = preview(string(s.Args))
		}
		out = append(out, r)
	}
	return out, nil
}

// preview is the beginning of the arguments, to tell requests apart in a list; it
// says how much there is. Nobody approves by it: 'show' has them whole.
func preview(args string) string {
	const most = 60
	if len(args) <= most {
		return args
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(args[:most], ""), len(args))
}

func listed(a store.Approval) Request {
	return Request{ID: a.ID, State: a.State, Agent: a.Agent, Tool: a.Tool, Requested: a.Requested, Expires: a.Expires,
		Decided: a.Decided, By: a.By, Reason: a.Reason, Digest: a.Digest}
}

// Show gives one request whole.
func (d *Desk) Show(ctx context.Context, id string) (Request, error) {
	a, ok, err := d.store.Approval(ctx, id)
	if err != nil {
		return Request{}, err
	}
	if !ok {
		return Request{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", id), nil)
	}
	r := listed(a)
	r.Shown, err = d.unsealed(a)
	return r, err
}

// Answer is a person's decision. Digest is the one that was displayed: whoever
// approves says what they saw.
type Answer struct {
	ID      string
	Digest  string
	Approve bool
	Reason  string
	Person  string // authenticated by the caller of Decide
}

// Decide records an answer. Of two answers to one request, one counts.
func (d *Desk) Decide(ctx context.Context, ans Answer) error {
	if ans.Person == "" {
		return writ.Fail(writ.Unauthenticated, "only a person decides", nil)
	}
	state, kind := "rejected", "approval.rejected"
	if ans.Approve {
		state, kind = "approved", "approval.approved"
	}
	before, err := d.Show(ctx, ans.ID)
	if err != nil {
		return err
	}
	err = d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.DecideApproval(ans.ID, ans.Digest, state, ans.Person, ans.Reason, d.now().UTC().Format(ledger.TimeFormat))
		if err == nil && !ok {
			err = errNotDecided
		}
		return ledger.Entry{Kind: kind, Agent: before.Agent, Person: ans.Person, Data: []wire.Field{
			wire.Str("approval", ans.ID), wire.Str("digest", ans.Digest), wire.Str("factor", "passphrase"), wire.Str("tool", before.Tool),
		}}, err
	})
	if errors.Is(err, errNotDecided) {
		return d.undecidable(ctx, ans) // now that whoever was first shows
	}
	if err == nil {
		d.Changed()
	}
	return err
}

var errNotDecided = errors.New("not decided")

// undecidable says why a request did not take an answer.
func (d *Desk) undecidable(ctx context.Context, ans Answer) error {
	a, ok, err := d.store.Approval(ctx, ans.ID)
	switch {
	case err != nil:
		return err
	case !ok:
		return writ.Fail(writ.NotFound, "there is no such request", nil)
	case a.State != "pending" && a.State != "expired":
		return writ.Fail(writ.Conflict, fmt.Sprintf("request %s is already %s", a.ID, a.State), nil)
	case a.State == "pending" && a.Digest != ans.Digest:
		return writ.Fail(writ.Changed, "the digest is not that of the request as it stands; look at it again", nil)
	}
	return writ.Fail(writ.Expired, fmt.Sprintf("request %s has expired", a.ID), nil)
}

// Sweep ends every open request whose time is over, so that what was sealed with
// it goes. Each new request does this first; call it at start and now and then,
// for a desk that nobody asks.
func (d *Desk) Sweep(ctx context.Context) error {
	for _, state := range []string{"pending", "approved"} {
		as, err := d.store.Approvals(ctx, state)
		if err != nil {
			return err
		}
		for _, a := range as {
			if !over(a.Expires, d.now()) {
				continue
			}
			if err := d.expire(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// expire ends a request whose time is over. Losing the race to an answer is fine.
func (d *Desk) expire(ctx context.Context, a store.Approval) error {
	err := d.ledger.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.ExpireApproval(a.ID, d.now().UTC().Format(ledger.TimeFormat))
		if err != nil || !ok {
			return ledger.Entry{}, err
		}
		return ledger.Entry{Kind: "approval.expired", Agent: a.Agent, Data: []wire.Field{wire.Str("approval", a.ID)}}, nil
	})
	if err == nil {
		d.Changed()
	}
	return err
}
