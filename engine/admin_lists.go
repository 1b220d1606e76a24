package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool/admin"
)

// How much of a record one list looks through, and how much of it at once. What is the
// caller's is picked from what is everybody's, and a total is of all of it or not said.
const (
	mostSeen = 10000
	seenPage = 1000
)

// gather picks from a record that is read backwards in pages: next reads the page
// after the last row, at is when a row was made, mine whether it is wanted.
func gather[T any](what string, a admin.Args, next func(last *T) ([]T, error), at func(T) string, mine func(T) bool) ([]T, error) {
	var out []T
	var last *T
	since, until := moment(a.Since), moment(a.Until)
	for seen := 0; seen < mostSeen; seen += seenPage {
		page, err := next(last)
		if err != nil {
			return nil, err
		}
		for _, row := range page {
			if at(row) < since {
				return out, nil // and so is all that follows
			}
			if (until == "" || at(row) < until) && mine(row) {
				out = append(out, row)
			}
		}
		if len(page) < seenPage {
			return out, nil
		}
		last = &page[len(page)-1]
	}
	return nil, writ.Fail(writ.Invalid, fmt.Sprintf("there are more than %d %s to look through; ask for later ones with since, where the list takes it, or have a person look", mostSeen, what), nil)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(ledger.TimeFormat)
}

func (a *administration) invocations(ctx context.Context, c writ.Call, args admin.Args, state string) ([]store.Invocation, error) {
	mine, err := a.scope(c, args)
	if err != nil {
		return nil, err
	}
	of := store.InvocationsOf{Agent: args.Text("agent"), State: state, Now: a.e.ledger.Now()}
	return gather("calls", args, func(last *store.Invocation) ([]store.Invocation, error) {
		var before int64
		if last != nil {
			before = last.N
		}
		return a.e.store.InvocationsBefore(ctx, of, before, seenPage)
	}, func(i store.Invocation) string { return i.Requested }, func(i store.Invocation) bool { return mine(i.Agent) })
}

func (a *administration) listInvocations(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	rows, err := a.invocations(ctx, c, args, args.Text("state"))
	now := a.e.ledger.Now()
	return paged(rows, args, func(i store.Invocation) invocationView { return invocationOf(approval.AsOf(i, now)) }), err
}

func (a *administration) listApprovals(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	state := args.Text("state")
	if state == "" {
		state = "asked"
	}
	rows, err := a.invocations(ctx, c, args, state)
	return paged(rows, args, a.approvalOf), err
}

// paged makes a page of rows, and shows those on it.
func paged[T, V any](rows []T, args admin.Args, view func(T) V) admin.List {
	l := admin.Page(rows, args)
	out := []V{}
	for _, r := range l.Items.([]T) {
		out = append(out, view(r))
	}
	return admin.List{Items: out, Total: l.Total}
}

func (a *administration) listSessions(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	mine, err := a.scope(c, args)
	if err != nil {
		return nil, err
	}
	rows, err := gather("sessions", args, func(last *store.Session) ([]store.Session, error) {
		if last == nil {
			last = &store.Session{}
		}
		return a.e.store.SessionsBefore(ctx, "", last.Opened, last.ID, seenPage)
	}, func(s store.Session) string { return s.Opened }, func(s store.Session) bool { return mine(s.Agent) })
	return paged(rows, args, sessionOf), err
}

func (a *administration) listTasks(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	mine, err := a.scope(c, args)
	if err != nil {
		return nil, err
	}
	rows, err := gather("tasks", args, func(last *store.Task) ([]store.Task, error) {
		if last == nil {
			last = &store.Task{}
		}
		return a.e.store.TasksBefore(ctx, "", last.Opened, last.ID, seenPage)
	}, func(t store.Task) string { return t.Opened }, func(t store.Task) bool { return mine(t.Agent) })
	return admin.Page(rows, args), err
}

func (a *administration) listGrants(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	all, err := a.e.store.Grants(ctx)
	var rows []store.Grant
	for _, g := range all { // the newest first
		if a.e.Below(g.Agent, c.Agent) {
			rows = append(rows, g)
		}
	}
	return paged(rows, args, a.grantOf), err
}

// listEntries goes back from the newest entry, or through those of one call.
func (a *administration) listEntries(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	mine, err := a.scope(c, args)
	if err != nil {
		return nil, err
	}
	call, kind := args.Text("call"), args.Text("kind")
	rows, err := gather("entries of the ledger", args, func(last *store.Entry) ([]store.Entry, error) {
		switch {
		case call != "" && last == nil:
			return reversed(a.e.store.OfCall(ctx, call))
		case call != "":
			return nil, nil // that was all
		case last == nil:
			return a.e.store.EntriesBefore(ctx, 0, seenPage)
		}
		return a.e.store.EntriesBefore(ctx, last.Seq, seenPage)
	}, func(e store.Entry) string { return e.At }, func(e store.Entry) bool { return mine(e.Agent) && (kind == "" || e.Kind == kind) })
	return paged(rows, args, func(e store.Entry) entryView { return entryView{e.Hash.String(), json.RawMessage(e.Body)} }), err
}

func reversed[T any](all []T, err error) ([]T, error) {
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all, err
}
