package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// How long a request is held while a person is asked. Clients give a call up after a
// minute, unless they are told to wait longer, and then say so by Writ-Wait.
const (
	patience    = 45 * time.Second
	maxPatience = 10 * time.Minute
	round       = 25 * time.Second       // where the client asks again by itself
	tell        = 5 * time.Second        // between signs that it still waits
	look        = 250 * time.Millisecond // between looks at whether its user declined
)

// resumeName is the tool by which a client that gave up waiting comes back.
const resumeName = "writ_resume"

// pending is what a call comes to that a person has to agree to. began is when it was
// made: one that joined a request that waits already is held a while, because its user
// was told, and answering at once would have the client ask without end.
func (x *exchange) pending(ctx context.Context, name string, args json.RawMessage, began time.Time, out engine.Outcome, why error) (json.RawMessage, *rpcError) {
	id := refOf(why, out)
	if x.modern {
		return x.round(ctx, name, args, id, !x.engine.AskedBefore(ctx, x.who, id, began))
	}
	out, err := x.await(ctx, id)
	if writ.KindOf(err) == writ.Pending {
		if errors.Is(context.Cause(ctx), errTakenBack) { // nothing is left to come back for
			x.withdraw(id)
		}
		return x.stillPending(out.CallID)
	}
	return x.finished(out, err)
}

func refOf(err error, out engine.Outcome) string {
	var e *writ.Error
	if errors.As(err, &e) && e.Ref != "" {
		return e.Ref
	}
	return out.CallID
}

// await waits for the answer as long as the client does, and tells it meanwhile. A
// user who is asked by the client, and does not want to wait, need not.
func (x *exchange) await(ctx context.Context, id string) (engine.Outcome, error) {
	if x.isTool() && x.r.Header.Get(lostHeader) != "" {
		if result, fail := x.stillPending(id); fail == nil {
			x.reply.leave(answer(x.msg.id, result))
		}
	}
	declined := x.elicit(ctx, id)
	until := time.Now().Add(x.patience())
	var told time.Time
	for n := 1; ; {
		if time.Since(told) >= tell {
			x.progress(n, waiting(id))
			n, told = n+1, time.Now()
		}
		out, err := x.engine.Resume(ctx, x.who, id, min(look, time.Until(until)))
		if writ.KindOf(err) != writ.Pending || ctx.Err() != nil || !time.Now().Before(until) {
			return out, err
		}
		select {
		case <-declined:
			return out, err
		default:
		}
	}
}

// patience is how long the client waits. What it says was looked at (patient).
func (x *exchange) patience() time.Duration {
	if said := x.r.Header.Get(waitHeader); said != "" {
		wait, _ := waits(said)
		return min(wait, maxPatience)
	}
	return patience
}

// waitHeader says how long a client waits: seconds, or a number with its unit (5m).
const waitHeader = "Writ-Wait"

func waits(said string) (time.Duration, bool) {
	if s, err := strconv.ParseUint(said, 10, 31); err == nil {
		return time.Duration(s) * time.Second, true
	}
	wait, err := time.ParseDuration(said)
	return wait, err == nil && wait >= 0
}

// patient refuses a client that says how long it waits in a way that nobody understands:
// it would wait for longer or shorter than it thinks.
func (x *exchange) patient() *rpcError {
	said := x.r.Header.Get(waitHeader)
	if _, ok := waits(said); said != "" && !ok {
		return fault(codeParams, "the header %s is %q; write seconds, or a number with its unit, such as 90 or 5m", waitHeader, clip(said))
	}
	return nil
}

// progress tells the client that there is something to wait for, if it wants to know.
func (x *exchange) progress(n int, message string) {
	token := x.msg.meta["progressToken"]
	if token == nil {
		x.reply.beat()
		return
	}
	msg, err := notification("notifications/progress", map[string]any{"progressToken": token, "progress": n, "message": message})
	if err == nil {
		err = x.reply.say(msg)
	}
	if err != nil {
		x.reply.beat()
	}
}

// elicit has the client tell its user that a person is asked, where it offers that.
// What the user says there decides nothing: an approval takes a person's own factor.
func (x *exchange) elicit(ctx context.Context, id string) (declined <-chan struct{}) {
	no := make(chan struct{})
	if x.session == nil || !x.session.can["elicitation"] {
		return no
	}
	go func() {
		defer x.survive()
		got, err := x.session.ask(ctx, x.reply, "elicitation/create", question(id))
		if err != nil {
			return
		}
		m, _ := object(got)
		result, _ := object(m["result"])
		if text(result["action"]) != "accept" {
			close(no)
		}
	}()
	return no
}

func question(id string) any {
	return map[string]any{
		"mode":            "form",
		"message":         fmt.Sprintf("A person has to approve this call: writ approval show %s, then writ approval approve %s. Accept to go on waiting; nothing is approved here.", id, id),
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	}
}

// stillPending tells the model how to come back, and its user what is waited for.
func (x *exchange) stillPending(id string) (json.RawMessage, *rpcError) {
	return x.said(id, writ.Pending, fmt.Sprintf(`approval_pending: a person has to approve this call (request %s); %s. It stays pending. Call %s with {"id":%q} to wait for the answer.`, id, howTo(id), resumeName, id))
}

// withdraw ends a request that its client does not want any more.
func (x *exchange) withdraw(id string) {
	err := x.engine.Withdraw(context.Background(), x.who, id)
	if err == nil {
		return
	}
	switch writ.KindOf(err) {
	case writ.NotFound, writ.Conflict, writ.Stopped: // it is over, or was ended for the caller
	default:
		x.log.Error("a cancelled request could not be ended", "call", id, "err", err)
	}
}

// resumeTool is a call of writ_resume. It makes no call of its own: it is the rest of
// one that the gate has, and whoever stops waiting here has not taken that back.
func (x *exchange) resumeTool(ctx context.Context, args json.RawMessage) (json.RawMessage, *rpcError) {
	var in struct {
		ID string `json:"id"`
	}
	if err := wire.Decode(args, &in); err != nil || in.ID == "" {
		return x.said("", writ.Invalid, resumeName+`: give the request to wait for: {"id":"call_…"}`)
	}
	out, err := x.await(ctx, in.ID)
	switch writ.KindOf(err) {
	case writ.Pending:
		return x.stillPending(out.CallID)
	case writ.NotFound:
		_, msg := writ.Public(err)
		return x.said("", writ.NotFound, msg)
	}
	return x.finished(out, err)
}
