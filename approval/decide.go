package approval

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Answer is a person's decision. Digest is the one that was displayed: whoever
// answers says what they saw.
type Answer struct {
	ID      string
	Digest  string
	Approve bool
	Reason  string // of a rejection; the agent is told, marked as a person's words

	Edit  *Edit  // approve with other arguments
	Grant *Allow // approve, and later calls like it

	Person string // authenticated by the caller of Decide
	Factor string // what they proved themselves with
}

// Edit is arguments that a person gives a call instead of its own. Digest is that of
// the edited call as Preview showed it.
type Edit struct {
	Args   string
	Digest string
}

// Decide records an answer. Of answers that contradict each other, one counts; and
// where several have to agree, each person counts once.
func (d *Desk) Decide(ctx context.Context, ans Answer) error {
	if ans.Person == "" || ans.Factor == "" {
		return writ.Fail(writ.Unauthenticated, "only a person decides", nil)
	}
	if len(ans.Reason) > maxWords {
		return tooLong("reason", ans.Reason)
	}
	look := d.store.AskedInvocation
	if ans.Edit != nil { // another is made of it, for which it takes all
		look = d.store.Invocation
	}
	i, ok, err := look(ctx, ans.ID)
	if err == nil && (!ok || i.Asked == "") {
		err = notFound(ans.ID)
	}
	if err != nil {
		return err
	}
	if ans.Approve && i.Status == "pending" { // nobody agrees to what cannot be shown, or is not as it was
		b, err := d.boundBy(i)
		if err != nil {
			return err
		}
		if err := d.unchanged(b); err != nil {
			return d.drop(ctx, i, "changed", err)
		}
	}
	switch {
	case !ans.Approve:
		err = d.reject(ctx, i, ans)
	case ans.Edit != nil && ans.Grant != nil:
		return writ.Fail(writ.Invalid, "edit the arguments or grant more of the same, not both at once", nil)
	case ans.Edit != nil:
		err = d.approveEdited(ctx, i, ans)
	default:
		err = d.approve(ctx, i, ans)
	}
	if errors.Is(err, errNotDecided) {
		return d.undecidable(ctx, ans) // now that whoever was first shows
	}
	if err == nil {
		if ans.Grant != nil {
			d.mu.Lock()
			d.granted++
			d.mu.Unlock()
		}
		d.Changed()
	}
	return err
}

// maxWords bounds what a person writes about a call: the agent is told all of it.
const maxWords = 2000

func tooLong(what, text string) error {
	return writ.Fail(writ.Invalid, fmt.Sprintf("%s: it has %d bytes and may have %d; say it shorter", what, len(text), maxWords), nil)
}

var errNotDecided = errors.New("not decided")

// request1 is one request by its id.
func (d *Desk) request1(ctx context.Context, id string) (store.Invocation, error) {
	i, ok, err := d.store.Invocation(ctx, id)
	if err == nil && (!ok || i.Asked == "") {
		err = notFound(id)
	}
	return i, err
}

func notFound(id string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", id), nil)
}

func (d *Desk) vote(i store.Invocation, ans Answer, now time.Time) store.Vote {
	v := store.Vote{Invocation: i.ID, Person: ans.Person, Decision: "reject", Digest: ans.Digest, Factor: ans.Factor, At: stamp(now)}
	if ans.Approve {
		v.Decision, v.Role = "approve", d.terms().needs(i, now)
	}
	v.Proof = d.proof(v)
	return v
}

// proof binds an answer to the desk that took it, so that one which somebody wrote into
// the database does not count.
func (d *Desk) proof(v store.Vote) []byte {
	h := hmac.New(sha256.New, d.answers)
	for _, s := range []string{v.Invocation, v.Person, v.Decision, v.Digest, v.Factor, v.At} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return h.Sum(nil)
}

// agreedBy checks that as many people agreed as it takes, the one named among them, each
// before a desk with this key.
func (d *Desk) agreedBy(ctx context.Context, i store.Invocation) error {
	votes, err := d.store.Votes(ctx, i.ID)
	if err != nil {
		return err
	}
	count, named := 0, false
	for _, v := range votes {
		if v.Decision == "approve" && v.Digest == i.Digest && hmac.Equal(v.Proof, d.proof(v)) {
			count++
			named = named || v.Person == i.By
		}
	}
	if count < max(1, i.Quorum) || !named {
		return altered(i, errors.New("its answers were not all given here"))
	}
	return nil
}

func entry(kind string, i store.Invocation, ans Answer, more ...wire.Field) ledger.Entry {
	return ledger.Entry{Kind: kind, Call: i.ID, Agent: i.Agent, Person: ans.Person, Data: append([]wire.Field{
		wire.Str("approval", i.ID), wire.Str("digest", ans.Digest), wire.Str("factor", ans.Factor), wire.Str("tool", i.Tool),
	}, more...)}
}

func (d *Desk) reject(ctx context.Context, i store.Invocation, ans Answer) error {
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		now := d.now()
		if ok, err := tx.AddVote(d.vote(i, ans, now)); err != nil || !ok {
			return ledger.Entry{}, errors.Join(err, errNotDecided)
		}
		ok, err := tx.RejectInvocation(i.ID, ans.Person, ans.Reason, stamp(now))
		if err := whole(ok, err); err != nil {
			return ledger.Entry{}, err
		}
		e := entry("approval.rejected", i, ans)
		if d.awaited(i.ID) {
			return e, nil
		}
		// Nobody is there to hear it: whoever makes the call again does, once.
		i.Reason = ans.Reason
		return e, tx.KeepResult(store.Kept{Invocation: i.ID, Asked: i.Asked, At: stamp(now),
			Sealed: d.sealedOutcome(i.ID, writ.Result{}, writ.Fail(writ.Rejected, rejection(i), nil))})
	})
}

// whole turns the loss of a later step of a change into an error that undoes all of it.
func whole(ok bool, err error) error {
	if err == nil && !ok {
		return writ.Fail(writ.StoreUnavailable, "the request changed in the middle of an answer; nothing was done, answer again", nil)
	}
	return err
}

func (d *Desk) approve(ctx context.Context, i store.Invocation, ans Answer) error {
	var g *store.Grant
	if ans.Grant != nil {
		made, err := d.grant(i, ans)
		if err != nil {
			return err
		}
		g = &made
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		now := d.now()
		voted, err := tx.AddVote(d.vote(i, ans, now))
		if err != nil {
			return ledger.Entry{}, err
		}
		if !voted && ans.Digest != i.Digest {
			return ledger.Entry{}, errNotDecided
		}
		// Somebody who agreed before may be the last one it takes, where another one's
		// word counts again.
		ok, err := tx.ApproveInvocation(i.ID, ans.Person, stamp(now))
		switch {
		case err != nil:
			return ledger.Entry{}, err
		case !voted && !ok:
			return ledger.Entry{}, errNotDecided
		case !ok: // others have to agree as well
			return entry("approval.voted", i, ans), nil
		case g != nil:
			return entry("approval.granted", i, ans, wire.Str("grant", g.ID), wire.Int("max_uses", int64(g.Max)), wire.Str("until", g.Expires)), tx.AddGrant(*g)
		}
		return entry("approval.approved", i, ans), nil
	})
}

// Preview is a request as it would be with other arguments: decided anew, with the
// digest to echo. Nothing is changed.
func (d *Desk) Preview(ctx context.Context, id, args string) (Request, error) {
	i, err := d.request1(ctx, id)
	if err != nil {
		return Request{}, err
	}
	edited, s, err := d.edited(ctx, i, args)
	if err != nil {
		return Request{}, err
	}
	r := d.listed(edited)
	r.Shown = s
	return r, nil
}

// edited is a request with other arguments, gated again as if its agent had made it
// so. What is denied is refused here: a person's word widens nothing (A17).
func (d *Desk) edited(ctx context.Context, i store.Invocation, args string) (store.Invocation, *Shown, error) {
	if d.edit == nil || i.Status != "pending" {
		return i, nil, d.undecidable(ctx, Answer{ID: i.ID, Digest: i.Digest})
	}
	was, err := d.unsealed(i)
	if err != nil {
		return i, nil, err
	}
	original := was.Args
	if was.Original != nil {
		original = was.Original
	}
	c, dec, err := d.edit(ctx, callOf(i, was), args)
	if err != nil {
		return i, nil, err
	}
	if dec.Effect == writ.Deny {
		return i, nil, dec.Refusal()
	}
	if c.ArgsDigest.String() == i.ArgsDigest {
		return i, nil, writ.Fail(writ.Invalid, "the arguments are as they were; approve the request as it is", nil)
	}
	y := invocationOf(c, dec)
	y.ID, y.Key, y.EditOf = editID(i.ID), "", i.ID
	y.Asked, y.Subject, y.Requested, y.Expires = i.Asked, dec.Subject.String(), i.Requested, i.Expires
	y.Status, y.Approval = "pending", "pending"
	y.Quorum, y.NotBy = max(i.Quorum, dec.Quorum), i.NotBy
	if dec.Dangerous && y.NotBy == "" {
		approvers, err := d.store.Approvers(ctx)
		if err != nil {
			return i, nil, err
		}
		y.NotBy = d.terms().notBy(c, dec, approvers)
	}
	if err := d.show(&y, c, dec, original); err != nil {
		return i, nil, err
	}
	s, err := d.unsealed(y)
	return y, s, err
}

// editID is the id of the request that a person makes of another by editing it. It
// follows from the other's, so that what was previewed is what is decided.
func editID(id string) string {
	return "call_" + id[len("call_"):] + "e"
}

// callOf is the call behind a request, as far as the edge needs it to make another.
func callOf(i store.Invocation, s *Shown) writ.Call {
	return writ.Call{ID: i.ID, Agent: i.Agent, Chain: s.Chain, Token: i.Token, Person: i.Person, Session: i.Session, Task: i.Task,
		Door: i.Door, Code: s.Code, Key: i.Key, Tool: i.Tool, Args: string(s.Args), Cost: i.Cost}
}

func (d *Desk) approveEdited(ctx context.Context, i store.Invocation, ans Answer) error {
	y, _, err := d.edited(ctx, i, ans.Edit.Args)
	if err != nil {
		return err
	}
	if y.Digest != ans.Edit.Digest {
		return writ.Fail(writ.Changed, "what the edited call would do is not what was shown; look at it again", nil)
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		now := d.now()
		before := d.vote(i, ans, now)
		if ok, err := tx.CanVote(before); err != nil || !ok {
			return ledger.Entry{}, errors.Join(err, errNotDecided)
		}
		if ok, err := tx.ReplaceInvocation(i.ID, y.ID, stamp(now)); err != nil || !ok {
			return ledger.Entry{}, errors.Join(err, errNotDecided)
		}
		if ok, err := tx.AddInvocation(&y); err != nil || !ok {
			return ledger.Entry{}, whole(ok, err)
		}
		v := before
		v.Invocation, v.Digest = y.ID, y.Digest
		v.Proof = d.proof(v)
		if ok, err := tx.AddVote(v); err != nil || !ok {
			return ledger.Entry{}, whole(ok, err)
		}
		kind := "approval.voted"
		ok, err := tx.ApproveInvocation(y.ID, ans.Person, stamp(now))
		if ok {
			kind = "approval.approved"
		}
		e := entry(kind, y, ans, wire.Str("edit_of", i.ID), wire.Str("args_sha256", y.ArgsDigest), wire.Str("subject", y.Subject))
		return e, err
	})
}

// undecidable says why a request did not take an answer.
func (d *Desk) undecidable(ctx context.Context, ans Answer) error {
	i, err := d.request1(ctx, ans.ID)
	if err != nil {
		return err
	}
	state := StateOf(i, stamp(d.now()))
	switch {
	case state == "expired":
		return writ.Fail(writ.Expired, fmt.Sprintf("request %s has expired", i.ID), nil)
	case state != "pending":
		return writ.Fail(writ.Conflict, fmt.Sprintf("request %s is already %s", i.ID, state), nil)
	case i.Digest != ans.Digest:
		return writ.Fail(writ.Changed, "the digest is not that of the request as it stands; look at it again", nil)
	}
	return d.mayNot(ctx, i, ans)
}

// mayNot says why somebody's answer to an open request does not count.
func (d *Desk) mayNot(ctx context.Context, i store.Invocation, ans Answer) error {
	votes, err := d.store.Votes(ctx, i.ID)
	if err != nil {
		return err
	}
	for _, v := range votes {
		if v.Person == ans.Person {
			return writ.Fail(writ.Conflict, fmt.Sprintf("%s has answered this request already; it takes %d different people", ans.Person, i.Quorum), nil)
		}
	}
	if ans.Approve && i.NotBy == ans.Person {
		return writ.Fail(writ.Denied, fmt.Sprintf("the agent acts for %s, and this call takes four eyes: somebody else has to approve it", ans.Person), nil)
	}
	if role := d.terms().needs(i, d.now()); ans.Approve && role != "" {
		return writ.Fail(writ.Denied, fmt.Sprintf("this request is put to people with the role %s now", role), nil)
	}
	return writ.Fail(writ.Denied, fmt.Sprintf("%s may not answer requests any more; that takes the role approver or admin", ans.Person), nil)
}

// Resolve writes down what a person found out about an unknown outcome.
func (d *Desk) Resolve(ctx context.Context, r store.Resolution, factor string) error {
	if len(r.Note) > maxWords {
		return tooLong("note", r.Note)
	}
	i, ok, err := d.store.Invocation(ctx, r.Invocation)
	if err != nil || !ok {
		return errors.Join(err, notFound(r.Invocation))
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		r.At = stamp(d.now())
		ok, err := tx.AddResolution(r)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, fmt.Sprintf("%s is %s, or was resolved already: only an unknown outcome is resolved, once", i.ID, i.Status), nil)
		}
		return ledger.Entry{Kind: "call.resolved", Call: i.ID, Agent: i.Agent, Person: r.By, Data: []wire.Field{
			wire.Str("happened", r.Happened), wire.Str("factor", factor), wire.Str("tool", i.Tool)}}, err
	})
}
