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
	Key    []byte // 32 bytes that seal the arguments of pending calls
	Expiry time.Duration
	Now    func() time.Time // nil: time.Now
}

// Desk is where requests wait for people. It implements writ.Approver and is safe
// for concurrent use.
type Desk struct {
	store  *store.DB
	ledger *ledger.Ledger
	seal   cipher.AEAD
	expiry time.Duration
	now    func() time.Time

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever some request's state changes
}

// NewDesk readies a desk.
func NewDesk(o Options) (*Desk, error) {
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
			return writ.Approval{ID: id, Subject: dec.Subject, By: a.By, Expires: expires}, nil
		case "rejected":
			return writ.Approval{ID: id}, writ.Fail(writ.Rejected, rejection(a), nil)
		case "expired":
			return writ.Approval{ID: id}, writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
		case "used":
			return writ.Approval{ID: id}, writ.Fail(writ.Conflict, "an identical call already used this approval", nil)
		case "void":
			return writ.Approval{ID: id}, writ.Fail(writ.Stopped, "the request was ended by a stop", nil)
		}
		if err := d.wait(ctx, changed, id, until, expires); err != nil {
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
func (d *Desk) wait(ctx context.Context, changed <-chan struct{}, id string, until, expires time.Time) error {
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
		return pending(id)
	case <-timer.C:
	}
	if expires.After(until) {
		return pending(id)
	}
	return d.expire(ctx, store.Approval{ID: id})
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
	now := d.now().UTC()
	a := store.Approval{
		ID: "ap_" + strings.ToLower(rand.Text()[:12]), Subject: dec.Subject.String(), Agent: c.Agent, Tool: c.Tool, State: "pending",
		Requested: now.Format(ledger.TimeFormat), Expires: now.Add(d.expiry).Format(ledger.TimeFormat),
	}
	canonical, err := wire.Marshal(map[string]string{"id": a.ID, "subject": a.Subject, "expires": a.Expires})
	if err != nil {
		return a, err
	}
	a.Digest = wire.Digest(canonical).String()
	if a.Sealed, err = d.sealed(a.ID, show(c, dec)); err != nil {
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

func (d *Desk) sealed(id string, s Shown) ([]byte, error) {
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, d.seal.NonceSize())
	rand.Read(nonce)
	return d.seal.Seal(nonce, nonce, plain, []byte(id)), nil
}

func (d *Desk) unsealed(a store.Approval) (*Shown, error) {
	n := d.seal.NonceSize()
	if len(a.Sealed) < n {
		return nil, nil // ended: what it was about is kept as digests only
	}
	plain, err := d.seal.Open(nil, a.Sealed[:n], a.Sealed[n:], []byte(a.ID))
	if err != nil {
		return nil, fmt.Errorf("request %s cannot be unsealed: %w", a.ID, err)
	}
	var s Shown
	return &s, json.Unmarshal(plain, &s)
}
