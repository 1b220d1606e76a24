package mcpserver

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ/wire"
)

// mayBegin holds an initialize to what it has to be before the SDK makes a session of it,
// which nobody could end if it were refused afterwards.
func (x *exchange) mayBegin() *rpcError {
	if x.session != nil {
		return x.asAnswer(fault(codeRequest, "initialize: this session has begun; send it without Mcp-Session-Id for another"))
	}
	if err := x.engine.Welcome(x.who); err != nil {
		return x.asAnswer(protocolFault(err))
	}
	if text(x.msg.params["protocolVersion"]) == "" {
		return fault(codeParams, "initialize: params.protocolVersion is a string, such as %q", versions[1])
	}
	params, err := wire.Plain(x.msg.params)
	if err == nil {
		err = json.Unmarshal(params, new(mcp.InitializeParams))
	}
	if err != nil {
		return fault(codeParams, "initialize: params are not as the protocol has them; capabilities and clientInfo are objects, names and versions strings")
	}
	return nil
}

// answering is where the SDK writes an answer: no client holds a write of it for ever,
// and an initialize that failed names no session.
type answering struct {
	http.ResponseWriter
	x     *exchange
	begun bool
}

func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answering) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) begin() {
	if id := a.Header().Get("Mcp-Session-Id"); !a.begun && a.x.msg.method == "initialize" && a.x.sessions.find(id, a.x.who) == nil {
		a.Header().Del("Mcp-Session-Id")
	}
	a.begun = true
}

func (a *answering) Write(b []byte) (int, error) {
	a.begin()
	c := http.NewResponseController(a.ResponseWriter)
	c.SetWriteDeadline(time.Now().Add(unread))
	defer c.SetWriteDeadline(time.Time{})
	return a.ResponseWriter.Write(b)
}
