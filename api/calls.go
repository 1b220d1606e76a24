package api

import (
	"cmp"
	"errors"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

// maxWait is how long a request waits for a person; the caller comes back.
const maxWait = 5 * time.Minute

// asCall is a call of the exchange's caller. An agent that was delegated works in
// the session it was made in; naming another is refused by the engine.
func (x *exchange) asCall(session, task string) engine.Call {
	return engine.Call{
		Agent: x.who.Agent, Token: x.who.Token, Session: cmp.Or(session, x.who.Session), Task: task,
		Door: "http", Patience: x.wait(),
	}
}

func makeCall(x *exchange) (any, error) {
	in := body[client.CallRequest](x)
	c := x.asCall(in.Session, in.Task)
	c.Tool, c.Args, c.Key, c.Cost = in.Tool, in.Args, in.Key, in.Cost
	out, err := x.engine.Do(x.r.Context(), c)
	x.call = out.CallID
	return client.CallReply{CallID: out.CallID, Content: out.Content, IsError: out.IsError, Metadata: out.Metadata}, err
}

func makeBatch(x *exchange) (any, error) {
	in := body[client.BatchRequest](x)
	b := engine.Batch{Order: engine.Order(in.Order), MaxConcurrency: in.MaxConcurrency}
	for _, one := range in.Calls {
		c := x.asCall(in.Session, in.Task)
		c.Tool, c.Args = one.Tool, one.Args
		b.Calls = append(b.Calls, c)
	}
	answers, err := x.engine.DoAll(x.r.Context(), b)
	if answers == nil {
		return nil, err
	}
	if err != nil { // the calls it happened to say so themselves
		x.log.Error("a call of a batch failed", "request", x.w.Header().Get("X-Request-ID"), "err", err)
	}
	out := client.BatchReply{Results: []client.BatchResult{}}
	for _, a := range answers {
		out.Results = append(out.Results, resultOf(a))
	}
	return out, nil
}

func resultOf(a engine.Answer) client.BatchResult {
	if a.Err == nil {
		return client.BatchResult{CallID: a.CallID, Content: a.Content, IsError: a.IsError, Metadata: a.Metadata}
	}
	kind, msg := writ.Public(a.Err)
	out := client.BatchResult{CallID: a.CallID, Content: msg, IsError: true, Error: &client.BatchError{Kind: kind}}
	var e *writ.Error
	if errors.As(a.Err, &e) {
		out.Error.Approval = e.Ref
	}
	return out
}
