package main

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// newDesk is a desk on a store that knows the tool of c and two people.
func newDesk(db *store.DB, l *ledger.Ledger, c writ.Call) (*approval.Desk, error) {
	err := l.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		if _, err := tx.AddPerson(store.Person{Name: "alice", Role: "admin", Passphrase: "$argon2id$", Created: l.Now()}); err != nil {
			return ledger.Entry{}, err
		}
		return ledger.Entry{Kind: "bench"}, tx.Register(store.Registered{Key: c.Tool, Definition: c.Definition.String(), Class: "none", Unwaived: "none", Updated: l.Now()})
	})
	if err != nil {
		return nil, err
	}
	return approval.NewDesk(approval.Options{Store: db, Ledger: l, Key: make([]byte, 32), Terms: func() approval.Terms {
		return approval.Terms{Expiry: 24 * time.Hour, Timeout: approval.Deny, Quorum: 1, MaxPending: 1 << 30}
	}})
}

// asks is a decider that asks about everything.
func asks(c writ.Call) (writ.Decision, error) {
	d := writ.Decision{Effect: writ.Ask, Class: writ.ClassWrite, Risk: "high"}
	var err error
	d.Subject, err = decide.Subject(c, d)
	return d, err
}

// approvals measures the way of a request: asked, approved, claimed; with nothing
// else waiting, and with a hundred thousand others. Bare commits are measured in turns.
func approvals(db *store.DB, l *ledger.Ledger, desk *approval.Desk, c writ.Call, commit func() error) error {
	if err := crowd(l, c, 101); err != nil { // a page to list, and one more
		return err
	}
	few, bare, err := ways(db, l, desk, c, commit)
	if err != nil {
		return err
	}
	row("pending, approved, claimed, p50", few.String(), ratio(few, bare)+" bare commits ("+bare.String()+")")
	listFew, err := listing(db, l)
	if err != nil {
		return err
	}
	const others = 100_000
	if err := crowd(l, c, others); err != nil {
		return err
	}
	many, _, err := ways(db, l, desk, c, commit)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("the same with %d others pending, p50", others), many.String(), ratio(many, few)+" of it alone")
	listMany, err := listing(db, l)
	row(fmt.Sprintf("first page of pending ones, with %d others", others), listMany.String(), ratio(listMany, listFew)+" of it with 100")
	return err
}

// ways takes requests and bare commits in turns, so that both find the machine alike.
func ways(db *store.DB, l *ledger.Ledger, desk *approval.Desk, c writ.Call, commit func() error) (way, bare time.Duration, err error) {
	var ours, theirs []time.Duration
	for range 500 {
		d, err := oneWay(db, l, desk, c)
		if err != nil {
			return 0, 0, err
		}
		ours = append(ours, d)
		for range 3 { // as many as a request has
			at := time.Now()
			if err := commit(); err != nil {
				return 0, 0, err
			}
			theirs = append(theirs, time.Since(at))
		}
	}
	return middle(ours), middle(theirs), nil
}

// oneWay takes one request from asking to its claim. Deciding, and what a person looks
// at in between, are not part of it.
func oneWay(db *store.DB, l *ledger.Ledger, desk *approval.Desk, c writ.Call) (spent time.Duration, err error) {
	ctx := context.Background()
	c.ID = approval.NewID(l.Time())
	c.Task = c.ID // no two are the same
	d, err := asks(c)
	if err != nil {
		return 0, err
	}
	at := time.Now()
	if _, err := desk.Approve(ctx, c, d); writ.KindOf(err) != writ.Pending {
		return 0, fmt.Errorf("not pending: %w", err)
	}
	spent = time.Since(at)
	i, _, err := db.Standing(ctx, c.ID)
	if err != nil {
		return 0, err
	}
	at = time.Now()
	if err := desk.Decide(ctx, approval.Answer{ID: c.ID, Digest: i.Digest, Approve: true, Person: "alice", Factor: "passphrase"}); err != nil {
		return 0, err
	}
	agreed, err := desk.Approve(ctx, c, d)
	if err != nil {
		return 0, err
	}
	err = desk.Record(ctx, writ.Event{Kind: writ.EventStarted, Call: agreed.Call, Decision: d, Approval: agreed})
	return spent + time.Since(at), err
}

func listing(db *store.DB, l *ledger.Ledger) (time.Duration, error) {
	return median(200, func() error {
		got, err := db.InvocationsBefore(context.Background(), store.InvocationsOf{State: "pending", Now: l.Now()}, 0, 101)
		if err == nil && len(got) != 101 {
			err = fmt.Errorf("%d listed", len(got))
		}
		return err
	})
}

// crowd adds requests of many agents that wait.
func crowd(l *ledger.Ledger, c writ.Call, n int) error {
	for done := 0; done < n; done += 1000 {
		err := l.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
			for i := range min(1000, n-done) {
				id := approval.NewID(l.Time())
				ok, err := tx.AddInvocation(&store.Invocation{
					ID: id, Tool: c.Tool, Definition: c.Definition.String(), Agent: fmt.Sprint("crowd_", i%997), Session: "s", Task: "t", Risk: "high", Class: "write",
					ArgsDigest: c.ArgsDigest.String(), Asked: id, Subject: id, Digest: id, Quorum: 1, Requested: l.Now(), Expires: "2999", Status: "pending", Approval: "pending", Sealed: make([]byte, 1500),
				})
				if err != nil || !ok {
					return ledger.Entry{}, fmt.Errorf("%v %w", ok, err)
				}
			}
			return ledger.Entry{Kind: "bench"}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
