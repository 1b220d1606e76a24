package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

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

var errNoClient = errors.New("the client takes no requests in the middle of a call")

// Ask puts a tool's request to the client, where it has a session and so can answer.
func (x *exchange) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if x.task != nil {
		return x.task.ask(ctx, "", method, params)
	}
	if x.session == nil {
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
