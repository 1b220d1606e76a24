// Package approval asks people. A request is durable, bound to the digest of the
// exact call and its whole reach, answered at most once, used at most once, and
// ends by itself when its time is over; nothing approves by itself.
package approval

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// PendingLimit is how many requests of one agent can wait: a flood of questions
// is a way to get a tired yes.
const PendingLimit = 20

// Options set up a Desk.
type Options struct {
	Store  *store.DB
	Ledger *ledger.Ledger
	Key    []byte               // 32 bytes that seal the arguments of pending calls
	Expiry func() time.Duration // asked for each request
	Now    func() time.Time     // nil: time.Now
}

// Desk is where requests wait for people. It implements writ.Approver and is safe
// for concurrent use.
type Desk struct {
	store  *store.DB
	ledger *ledger.Ledger
	seal   cipher.AEAD
	expiry func() time.Duration
	now    func() time.Time

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever some request's state changes
}

// NewDesk readies a desk.
func NewDesk(o Options) (*Desk, error) {
	if len(o.Key) != 32 {
		return nil, fmt.Errorf("sealing key: it has %d bytes instead of 32", len(o.Key))
	}
	block, err := aes.NewCipher(o.Key)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	d := &Desk{store: o.Store, ledger: o.Ledger, seal: aead, expiry: o.Expiry, now: o.Now, changed: make(chan struct{})}
	if d.now == nil {
		d.now = time.Now
	}
	return d, nil
}

// Shown is a request as a person sees it: everything the digest binds.
type Shown struct {
	Agent    string           `json:"agent"`
	Person   string           `json:"acts_for,omitempty"`
	Session  string           `json:"session"`
	Task     string           `json:"task"`
	Tool     string           `json:"tool"`
	Args     json.RawMessage  `json:"args"`
	Dir      string           `json:"dir"`
	Action   string           `json:"action"`
	Risk     string           `json:"risk"`
	Class    string           `json:"class"`
	Reasons  []writ.Reason    `json:"reasons"`
	Confine  writ.Confinement `json:"confinement"`
	Policy   writ.Digest      `json:"policy"`
	Resolved []ResolvedName   `json:"resolved,omitempty"`
}

// ResolvedName is a path or host of the arguments and what it really names.
type ResolvedName struct {
	Argument string `json:"argument"`
	Is       string `json:"is"`
}

// Approve implements writ.Approver: it finds the request for this exact call, or
// makes one, and waits for its answer. Identical calls wait for one request; the
// answer is good for one of them.
func (d *Desk) Approve(ctx context.Context, c writ.Call, dec writ.Decision) (writ.Approval, error) {
	if dec.Subject.IsZero() {
		return writ.Approval{}, writ.Fail(writ.Internal, "the call has no digest to approve", nil)
	}
	id := ""
	until := d.now().Add(c.Patience)
	for {
		changed := d.watch() // before looking, so that no change is missed
		a, err := d.find(ctx, id, c, dec)
		if err != nil {
			return writ.Approval{ID: id}, err
		}
		id = a.ID
		expires, err := time.Parse(time.RFC3339Nano, a.Expires)
		if err != nil {
			return writ.Approval{ID: id}, err
		}
		switch a.State {
		case "approved":
			if _, err := d.unsealed(a); err != nil { // a row that this desk did not make allows nothing
				return writ.Approval{ID: id}, err
			}
			return writ.Approval{ID: id, Subject: dec.Subject, By: a.By, Expires: expires}, nil
		case "rejected":
			return writ.Approval{ID: id}, writ.Fail(writ.Rejected, rejection(a), nil)
		case "expired":
			return writ.Approval{ID: id}, writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
		case "used":
			return writ.Approval{ID: id}, writ.Fail(writ.Conflict, "an identical call already used this approval", nil)
		case "void":
			return writ.Approval{ID: id}, writ.Fail(writ.Changed, "the request was ended by a stop or by a new configuration; make the call again", nil)
		}
		if err := d.wait(ctx, changed, a, until, expires); err != nil {
			return writ.Approval{ID: id}, err
		}
	}
}

// find is the request by id, once known; else the open one of the subject; else a
// new one.
func (d *Desk) find(ctx context.Context, id string, c writ.Call, dec writ.Decision) (store.Approval, error) {
	for {
		if id != "" {
			a, ok, err := d.store.Approval(ctx, id)
			if err == nil && !ok {
				err = writ.Fail(writ.Internal, "the request is gone", nil)
			}
			return a, d.waitingError(ctx, err, id)
		}
		open, err := d.store.OpenApprovals(ctx, dec.Subject.String())
		if err != nil {
			return store.Approval{}, err
		}
		if len(open) == 0 {
			return d.request(ctx, c, dec)
		}
		if over(open[0].Expires, d.now()) {
			if err := d.expire(ctx, open[0]); err != nil {
				return store.Approval{}, err
			}
			continue
		}
		return open[0], nil
	}
}

func (d *Desk) waitingError(ctx context.Context, err error, id string) error {
	if err != nil && ctx.Err() != nil {
		return pending(id)
	}
	return err
}

func pending(id string) error {
	return &writ.Error{Kind: writ.Pending, Ref: id, Msg: "a person has to approve this call (request " + id + "); make the same call again to wait for the answer"}
}

func over(expires string, now time.Time) bool { return expires <= now.UTC().Format(ledger.TimeFormat) }

// wait returns nil when some request changed, or when this one's time is over and
// it has been ended; and that it is pending when the caller's patience is over.
func (d *Desk) wait(ctx context.Context, changed <-chan struct{}, a store.Approval, until, expires time.Time) error {
	ends := until
	if expires.Before(until) {
		ends = expires
	}
	timer := time.NewTimer(max(0, ends.Sub(d.now())))
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return pending(a.ID)
	case <-timer.C:
	}
	if expires.After(until) {
		return pending(a.ID)
	}
	return d.expire(ctx, a)
}

func (d *Desk) watch() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Changed wakes everybody who waits; also called after a stop ended requests.
func (d *Desk) Changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

func rejection(a store.Approval) string {
	if a.Reason == "" {
		return "a person rejected this call"
	}
	return fmt.Sprintf("a person rejected this call and said: %q", a.Reason)
}

// request makes a new one, and writes down that it was made.
func (d *Desk) request(ctx context.Context, c writ.Call, dec writ.Decision) (store.Approval, error) {
	if err := d.Sweep(ctx); err != nil {
		return store.Approval{}, err
	}
	now := d.now().UTC()
	a := store.Approval{
		ID: "ap_" + strings.ToLower(rand.Text()[:12]), Subject: dec.Subject.String(), Agent: c.Agent, Tool: c.Tool, State: "pending",
		Requested: now.Format(ledger.TimeFormat), Expires: now.Add(d.expiry()).Format(ledger.TimeFormat),
	}
	var err error
	if a.Digest, err = digest(a); err != nil {
		return a, err
	}
	if a.Sealed, err = d.sealed(a.Digest, show(c, dec)); err != nil {
		return a, err
	}
	err = d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.AddApproval(a, PendingLimit)
		if err == nil && !ok {
			err = errNotAdded
		}
		return ledger.Entry{Kind: "approval.requested", Call: c.ID, Agent: c.Agent, Data: []wire.Field{
			wire.Str("approval", a.ID), wire.Str("digest", a.Digest), wire.Str("subject", a.Subject), wire.Str("tool", c.Tool),
			wire.Str("args_sha256", c.ArgsDigest.String()), wire.Str("expires", a.Expires),
		}}, err
	})
	if errors.Is(err, errNotAdded) {
		return d.notAdded(ctx, c, dec)
	}
	if err == nil {
		d.Changed()
	}
	return a, err
}

var errNotAdded = errors.New("not added")

// notAdded tells an identical request made meanwhile, which is joined, from a
// full queue.
func (d *Desk) notAdded(ctx context.Context, c writ.Call, dec writ.Decision) (store.Approval, error) {
	open, err := d.store.OpenApprovals(ctx, dec.Subject.String())
	if err != nil {
		return store.Approval{}, err
	}
	if len(open) > 0 {
		return open[0], nil
	}
	return store.Approval{}, writ.Fail(writ.Conflict, fmt.Sprintf("agent %s already has %d requests waiting for a person; no more are taken until some are answered", c.Agent, PendingLimit), nil)
}

func show(c writ.Call, dec writ.Decision) Shown {
	s := Shown{
		Agent: c.Agent, Person: c.Person, Session: c.Session, Task: c.Task, Tool: c.Tool, Args: json.RawMessage(c.Args), Dir: c.Dir,
		Action: dec.Action, Risk: dec.Risk, Class: dec.Class.String(), Reasons: dec.Reasons, Confine: dec.Confine, Policy: dec.Policy,
	}
	for _, t := range c.Targets {
		is := t.Path
		if t.Kind == writ.TargetHost {
			is = t.Host
		}
		s.Resolved = append(s.Resolved, ResolvedName{t.Pointer, is})
	}
	return s
}

// digest is what an approver echoes: which request, for what, until when.
func digest(a store.Approval) (string, error) {
	canonical, err := wire.Marshal(map[string]string{"id": a.ID, "subject": a.Subject, "expires": a.Expires})
	return wire.Digest(canonical).String(), err
}

// sealed encrypts what is shown, bound to the digest: put beside another id,
// subject or expiry it does not open, and nobody without the key makes another.
func (d *Desk) sealed(digest string, s Shown) ([]byte, error) {
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, d.seal.NonceSize())
	rand.Read(nonce)
	return d.seal.Seal(nonce, nonce, plain, []byte(digest)), nil
}

// unsealed is what an open request shows, nil once it has ended: what it was
// about is then kept as digests only. An open request that does not open is an
// error, so that nobody agrees to what they cannot see.
func (d *Desk) unsealed(a store.Approval) (*Shown, error) {
	if a.State != "pending" && a.State != "approved" {
		return nil, nil
	}
	want, err := digest(a)
	if err != nil {
		return nil, err
	}
	n := d.seal.NonceSize()
	if a.Digest != want || len(a.Sealed) < n {
		return nil, altered(a, nil)
	}
	plain, err := d.seal.Open(nil, a.Sealed[:n], a.Sealed[n:], []byte(want))
	if err != nil {
		return nil, altered(a, err)
	}
	var s Shown
	if err := json.Unmarshal(plain, &s); err != nil {
		return nil, altered(a, err)
	}
	if s.Agent != a.Agent || s.Tool != a.Tool {
		return nil, altered(a, nil)
	}
	return &s, nil
}

func altered(a store.Approval, cause error) error {
	return writ.Fail(writ.Internal, fmt.Sprintf("request %s is not as it was made, and allows nothing; let it expire and check the store", a.ID), cause)
}
