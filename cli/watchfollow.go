package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/writ-run/writ/client"
)

// What happens to a request, as the daemon's stream names it.
const (
	eventAsked     = "tool_invocation_approval_required"
	eventApproved  = "tool_invocation_approved"
	eventRejected  = "tool_invocation_rejected"
	eventExpired   = "tool_invocation_expired"
	eventCancelled = "tool_invocation_cancelled"
	eventDenied    = "tool_invocation_denied"
)

// follower follows the requests that wait. It lists them, and then gives out what
// happens from the moment before that list, so that none is missed; one may be in
// both. After that it goes on from the last event that it saw, and where the daemon
// does not stream it lists again and again.
type follower struct {
	daemon   *client.Client
	relist   bool                          // list after each connection, before what happened meanwhile
	listed   func([]client.Approval) error // the oldest first
	happened func(client.InvocationEvent) error
	lost     func(error) error // nothing is known until the next list
}

// again is how long it waits before it connects anew.
const again = 500 * time.Millisecond

// run returns nil when ctx ends, and the error of a function that has one.
func (f *follower) run(ctx context.Context) error {
	seq, list := int64(-1), true
	for {
		broken, err := f.connected(ctx, &seq, list)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = f.lost(broken)
		}
		if err != nil {
			return err
		}
		var refused *client.Problem
		list = f.relist || seq < 0 || errors.As(broken, &refused)
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil
		}
	}
}

// connected follows until the connection breaks, or until a function has an error.
func (f *follower) connected(ctx context.Context, seq *int64, list bool) (broken, err error) {
	from := *seq
	if from < 0 {
		if from, broken = lastEntry(ctx, f.daemon); broken != nil {
			return broken, nil
		}
	}
	if list {
		waiting, broken := listWaiting(ctx, f.daemon)
		if broken != nil {
			return broken, nil
		}
		if err := f.listed(waiting); err != nil {
			return nil, err
		}
	}
	*seq = from
	for e, broken := range f.daemon.InvocationEvents(ctx, *seq) {
		if broken != nil {
			return broken, nil
		}
		*seq = max(*seq, e.Seq)
		if err := f.happened(e); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// lastEntry is the number of the newest entry of the ledger, 0 where there is none.
func lastEntry(ctx context.Context, daemon *client.Client) (int64, error) {
	last, err := daemon.LedgerTail(ctx, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	var b entryBody
	err = json.Unmarshal(last[0].Body, &b)
	return b.Seq, err
}

// listWithin is how long a list may take.
const listWithin = 30 * time.Second

// listWaiting is all requests that wait, the oldest first.
func listWaiting(ctx context.Context, daemon *client.Client) ([]client.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	rs, err := daemon.Approvals("pending").All(ctx)
	slices.Reverse(rs)
	return rs, err
}
