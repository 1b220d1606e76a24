package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Progress tells the client how far a tool is, under the client's own token for it.
func (x *exchange) Progress(params json.RawMessage) {
	token := x.msg.meta["progressToken"]
	m, ok := object(params)
	if token == nil || !ok {
		return
	}
	m["progressToken"] = token
	delete(m, "_meta") // what it says beside is for nobody here
	x.notify("notifications/progress", m)
}

// Log passes on what a tool says of its work, where the client wants to hear it.
func (x *exchange) Log(params json.RawMessage) {
	m, _ := object(params)
	want := text(x.msg.meta["io.modelcontextprotocol/logLevel"])
	if x.session != nil {
		want = x.session.logLevel()
	}
	if slices.Index(logLevels, want) >= 0 && slices.Index(logLevels, text(m["level"])) >= slices.Index(logLevels, want) {
		x.notify("notifications/message", params)
	}
}

// logLevels are those of the protocol, the least first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Round is what the client sent along for the server behind a tool.
func (x *exchange) Round() tool.Round {
	r := tool.Round{Modern: x.modern}
	if !x.modern {
		return r
	}
	r.Inputs, r.State = x.inputs, x.inner
	meta := members{}
	for _, key := range []string{metaCapabilities, "io.modelcontextprotocol/logLevel"} {
		if v, ok := x.msg.meta[key]; ok {
			meta[key] = v
		}
	}
	r.Meta, _ = wire.Plain(meta) // of what was JSON
	return r
}

func (x *exchange) notify(method string, params any) {
	msg, err := notification(method, params)
	if err == nil {
		_ = x.reply.say(msg) // a client that is gone misses it
	}
}

// abilities are the kinds of requests that a client said it answers.
type abilities map[string]bool

// abilitiesOf keeps of a client's capabilities what is asked about later, and nothing
// else: they can be as large as a message, and are kept as long as a session or a task.
func abilitiesOf(caps members) abilities {
	out := abilities{}
	for _, kind := range []string{"elicitation", "sampling", "roots"} {
		if _, ok := object(caps[kind]); ok {
			out[kind] = true
		}
	}
	return out
}

// be reports whether a client can be asked a method.
func (a abilities) be(method string) bool {
	kind, _, _ := strings.Cut(method, "/")
	return a[kind]
}

// canBegin is what the client of an initialize can be asked.
func (x *exchange) canBegin() abilities {
	caps, _ := object(x.msg.params["capabilities"])
	return abilitiesOf(caps)
}

// unable refuses what a server asks of a client that never said it answers such a thing.
func (x *exchange) unable(questions members) *rpcError {
	can, lacks := abilitiesOf(x.clientCan()), map[string]any{}
	for _, raw := range questions {
		q, _ := object(raw)
		if method := text(q["method"]); !can.be(method) {
			kind, _, _ := strings.Cut(method, "/")
			lacks[kind] = struct{}{}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	data, _ := wire.Plain(map[string]any{"requiredCapabilities": lacks}) // of maps and strings alone
	return &rpcError{Code: codeCapability, Message: "the server asks for what this client did not declare that it can do", Data: data}
}

var errNoClient = errors.New("the client takes no requests in the middle of a call")

// Ask puts a tool's request to the client, where it has a session and so can answer.
func (x *exchange) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if x.task != nil {
		return x.task.ask(ctx, "", method, params)
	}
	if x.session == nil || !x.session.can.be(method) {
		return nil, errNoClient
	}
	got, err := x.session.ask(ctx, x.reply, method, params)
	if err != nil {
		return nil, err
	}
	m, ok := object(got)
	if !ok || m["result"] == nil {
		return nil, errors.New("the client refused")
	}
	return m["result"], nil
}
