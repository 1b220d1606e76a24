package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/writ-run/writ/client"
)

// watchLine is one line of what 'approval watch' writes for programs.
type watchLine struct {
	client.InvocationEvent
	Request *client.Approval `json:"request,omitempty"` // where one waits: as 'approval show' has it
}

// lines writes each request that waits once, and once what became of it.
type lines struct {
	ctx    context.Context
	daemon *client.Client
	out    *json.Encoder
	over   map[string]bool // by id, of each that was written: whether it has an end
}

// watchLines writes lines until ctx ends.
func watchLines(ctx context.Context, daemon *client.Client, out io.Writer) error {
	l := &lines{ctx: ctx, daemon: daemon, out: json.NewEncoder(out), over: map[string]bool{}}
	l.out.SetEscapeHTML(false)
	f := follower{daemon: daemon, listed: l.listed, happened: l.happened, lost: l.lost}
	return f.run(ctx)
}

func (l *lines) listed(waiting []client.Approval) error {
	for _, r := range waiting {
		if err := l.asked(client.InvocationEvent{Name: eventAsked, Invocation: r.ID, Agent: r.Agent, At: r.Requested}); err != nil {
			return err
		}
	}
	return nil
}

// asked writes a request that waits, whole.
func (l *lines) asked(e client.InvocationEvent) error {
	if _, written := l.over[e.Invocation]; written {
		return nil
	}
	r, err := l.daemon.Approval(l.ctx, e.Invocation)
	if err != nil { // the daemon went away just now; the line is not lost for that
		return l.out.Encode(l.mark(e, false, nil))
	}
	return l.out.Encode(l.mark(e, false, &r))
}

func (l *lines) mark(e client.InvocationEvent, over bool, r *client.Approval) watchLine {
	l.over[e.Invocation] = over
	return watchLine{e, r}
}

func (l *lines) happened(e client.InvocationEvent) error {
	over, written := l.over[e.Invocation]
	switch e.Name {
	case eventAsked:
		return l.asked(e)
	case eventApproved, eventRejected, eventExpired:
	case eventCancelled, eventDenied: // also of calls that nobody was asked about
		if !written {
			return nil
		}
	default:
		return nil
	}
	if over {
		return nil
	}
	if from := editOf(e); from != "" {
		l.over[from] = true // an edit ends one request in the name of another
	}
	return l.out.Encode(l.mark(e, true, nil))
}

// editOf is the request that an approval with other arguments was made from.
func editOf(e client.InvocationEvent) string {
	var d struct {
		EditOf string `json:"edit_of"`
	}
	_ = json.Unmarshal(e.Data, &d) // without data it is of none
	return d.EditOf
}

// lost says by itself what became of requests when the daemon is there and does not
// stream; otherwise the stream will say it.
func (l *lines) lost(broken error) error {
	var p *client.Problem
	if !errors.As(broken, &p) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(l.over)) {
		if l.over[id] {
			continue
		}
		r, err := l.daemon.Approval(l.ctx, id)
		if err != nil {
			continue // asked again next time
		}
		if name := ends[r.State]; name != "" {
			if err := l.happened(client.InvocationEvent{Name: name, Invocation: id, Agent: r.Agent, Person: r.By, At: r.Decided}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ends is how a request ended, by its state.
var ends = map[string]string{"approved": eventApproved, "used": eventApproved, "rejected": eventRejected, "expired": eventExpired, "void": eventCancelled}
