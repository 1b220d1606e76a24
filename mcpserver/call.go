package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Members of _meta that are writ's own.
const (
	metaCall  = "run.writ/call_id"
	metaError = "run.writ/error"
	metaTask  = "run.writ/task"            // which task a call belongs to
	metaKey   = "run.writ/idempotency_key" // calls with the same key are one
	metaFill  = "run.writ/context_fill"    // how full the model's context is, in percent
)

// callTool is tools/call.
func (x *exchange) callTool() {
	x.run(func(ctx context.Context) (json.RawMessage, *rpcError) {
		if x.knowsTasks() {
			return x.asTask(ctx, x.newTask(), x.outcome)
		}
		return x.outcome(ctx)
	})
}

// run makes a call, which its client may cancel, and answers with what came of it.
func (x *exchange) run(call func(context.Context) (json.RawMessage, *rpcError)) {
	ctx, cancel := context.WithCancelCause(x.lifetime())
	defer cancel(nil)
	under, done := x.calls.begin(x.callKey(x.msg.id), cancel)
	defer done()
	if under == nil {
		x.refuse(fault(codeRequest, "a request with this id is under way"))
		return
	}
	result, fail := call(ctx)
	switch {
	case x.calls.wasCancelled(under):
		x.reply.drop()
	case fail != nil:
		x.refuse(x.asAnswer(fail))
	default:
		x.reply.end(answer(x.msg.id, result), 200)
	}
}

// lifetime is how long a call may go on. Where every request stands alone, a client
// that goes away has cancelled; in a session it says so.
func (x *exchange) lifetime() context.Context {
	if x.modern {
		return x.r.Context()
	}
	return context.WithoutCancel(x.r.Context())
}

// callKey names a request under way: in its session, or by itself.
func (x *exchange) callKey(id json.RawMessage) string {
	if x.session == nil {
		return fmt.Sprintf("%p", x)
	}
	return x.session.id + "\x00" + string(id)
}

// cancelled is the notification of a client that does not want an answer any more.
func (x *exchange) cancelled() {
	if id := x.msg.params["requestId"]; x.session != nil && id != nil {
		x.calls.cancel(x.callKey(id))
	}
	x.w.WriteHeader(202)
}

// outcome makes the call, and is its result as the protocol has it.
func (x *exchange) outcome(ctx context.Context) (json.RawMessage, *rpcError) {
	name := text(x.msg.params["name"])
	if name == "" {
		return nil, fault(codeParams, "params.name is the name of a tool")
	}
	args := x.msg.params["arguments"]
	if string(args) == "null" {
		args = nil
	}
	if name == resumeName && !x.modern {
		return x.resumeTool(ctx, args)
	}
	session, err := x.scope(ctx)
	if err != nil {
		return x.failed(engine.Outcome{}, err)
	}
	before, fail := x.resumed(name, args)
	if fail != nil {
		return nil, fail
	}
	if before != nil && before.Request != "" {
		return x.resumeState(ctx, name, args, before)
	}
	if err := x.disclosed(session, name); err != nil {
		return x.failed(engine.Outcome{}, err)
	}
	if err := x.engine.Absent(ctx, x.who.Agent, name); err != nil {
		return x.failed(engine.Outcome{}, err)
	}
	c := engine.Call{
		Agent: x.who.Agent, Token: x.who.Token, Session: session, Task: text(x.msg.meta[metaTask]),
		Tool: name, Args: args, Door: "mcp",
	}
	for n := range mostRounds {
		c.Key = roundKey(x.onceKey(), n)
		began := x.engine.Ledger().Time()
		out, err := x.engine.Do(tool.WithPeer(ctx, x), c)
		asked, asks := out.Metadata["input_required"]
		switch {
		case writ.KindOf(err) == writ.Pending:
			return x.pending(ctx, name, args, began, out, err)
		case err != nil || !asks || !x.modern:
			return x.finished(out, err)
		case x.task == nil || !x.task.isHanded():
			return x.relayInput(name, args, asked)
		}
		if fail := x.taskInput(ctx, asked); fail != nil {
			return nil, fail
		}
	}
	return nil, fault(codeInternal, "the server asked for input %d times and did not end the call", mostRounds)
}

// mostRounds is how often a server may ask for more in the middle of one call.
const mostRounds = 10

// disclosed refuses a tool that the model has not loaded, and takes the client's word
// for how full its context is.
func (x *exchange) disclosed(session, name string) error {
	session = x.engine.SessionOf(x.who, session)
	if raw, ok := x.msg.meta[metaFill]; ok {
		var percent float64
		if err := json.Unmarshal(raw, &percent); err != nil {
			percent = -1 // it is said what a number must be
		}
		if err := x.engine.ContextFilled(session, percent); err != nil {
			return err
		}
	}
	return x.engine.NotLoaded(x.who.Agent, session, name)
}

// finished is the result of a call that is over.
func (x *exchange) finished(out engine.Outcome, err error) (json.RawMessage, *rpcError) {
	if err != nil {
		return x.failed(out, err)
	}
	if said, ok := out.Metadata["rpc_error"]; ok {
		return nil, asServer(said)
	}
	if result, ok := out.Metadata["mcp_result"]; ok && !x.isTool() {
		return x.passed(result)
	}
	r := callResult{IsError: out.IsError, Meta: map[string]any{metaCall: out.CallID}}
	if blocks, ok := out.Metadata["content_blocks"]; ok {
		r.Content, err = rawOf(blocks)
	} else {
		r.Content, err = wire.Plain([]textBlock{{"text", out.Content}})
	}
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	switch structured, ok := out.Metadata["structured_content"]; {
	case ok:
		if r.Structured, err = rawOf(structured); err != nil {
			return nil, fault(codeInternal, "the result could not be written")
		}
	case !out.IsError && len(out.Content) > 0 && out.Content[0] == '{' && x.structured(text(x.msg.params["name"])):
		r.Structured = json.RawMessage(out.Content)
	}
	return x.complete(r)
}

// asServer is an error of a server's own, as it came.
func asServer(said any) *rpcError {
	b, err := wire.Plain(said)
	e := &rpcError{}
	if err != nil || json.Unmarshal(b, e) != nil {
		return fault(codeInternal, "the server refused the call")
	}
	if data, ok := object(e.Data); ok && data.disown() {
		e.Data, _ = wire.Plain(data) // of what was JSON
	}
	return e
}

// structured reports whether a tool promised its result to be JSON.
func (x *exchange) structured(name string) bool {
	t, err := x.engine.Tool(x.who.Agent, name)
	return err == nil && t.Output != nil
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type callResult struct {
	Type       string          `json:"resultType,omitempty"`
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Meta       map[string]any  `json:"_meta,omitempty"`
}

func (x *exchange) complete(r callResult) (json.RawMessage, *rpcError) {
	if x.modern {
		r.Type = "complete"
		r.Meta[metaServer] = serverInfo()
	}
	b, err := wire.Plain(r)
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	return b, nil
}

// failed says why a call came to nothing, in words that the model can act on. Only a
// name that is no tool's is an error of the protocol.
func (x *exchange) failed(out engine.Outcome, err error) (json.RawMessage, *rpcError) {
	kind, msg := writ.Public(err)
	switch kind {
	case writ.NotFound:
		return nil, fault(codeParams, "%s", msg)
	case writ.Internal, writ.StoreUnavailable:
		x.log.Error("a call failed", "call", out.CallID, "door", "mcp", "err", err)
	}
	return x.said(out.CallID, kind, msg)
}

// isTool reports whether a tool was called: then errors are for its model, and otherwise
// for the client.
func (x *exchange) isTool() bool { return x.msg.method == "tools/call" }

// said is a result that tells the model what is the matter.
func (x *exchange) said(call string, kind writ.Kind, msg string) (json.RawMessage, *rpcError) {
	if !x.isTool() {
		return nil, protocolFault(writ.Fail(kind, msg, nil))
	}
	content, err := wire.Plain([]textBlock{{"text", msg}})
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	return x.complete(callResult{Content: content, IsError: true, Meta: map[string]any{metaCall: call, metaError: kind}})
}
