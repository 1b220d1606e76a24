package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
)

// own is a method that the SDK does not see.
type own struct {
	answers bool // it is a request; otherwise a notification
	run     func(*exchange)
}

// ownMethods are parsed and answered here.
var ownMethods map[string]own

func init() { // they refer to what looks them up
	ownMethods = map[string]own{
		"tools/call":              {true, (*exchange).callTool},
		"resources/read":          {true, (*exchange).readResource},
		"resources/subscribe":     {true, (*exchange).watchResource},
		"resources/unsubscribe":   {true, (*exchange).unwatchResource},
		"prompts/get":             {true, (*exchange).getPrompt},
		"completion/complete":     {true, (*exchange).complete1},
		"subscriptions/listen":    {true, (*exchange).listen},
		"tasks/get":               {true, (*exchange).getTask},
		"tasks/update":            {true, (*exchange).updateTask},
		"tasks/cancel":            {true, (*exchange).cancelTask},
		"notifications/cancelled": {false, (*exchange).cancelled},
	}
}

// handler answers one method for the SDK, whose own work is next.
type handler func(x *exchange, ctx context.Context, req mcp.Request, next mcp.MethodHandler, method string) (mcp.Result, error)

// sdkMethods is everything else that is answered. What is not here is refused: a
// method that a newer SDK knows, and nobody has thought about, does nothing.
var sdkMethods = map[string]handler{
	"initialize":                       initialize,
	"server/discover":                  pass,
	"ping":                             pass,
	"tools/list":                       listTools,
	"resources/list":                   listResources,
	"resources/templates/list":         listTemplates,
	"prompts/list":                     listPrompts,
	"logging/setLevel":                 setLevel,
	"notifications/initialized":        pass,
	"notifications/progress":           pass,
	"notifications/roots/list_changed": pass,
}

// pass leaves a method that reaches nothing of ours to the SDK.
func pass(_ *exchange, ctx context.Context, req mcp.Request, next mcp.MethodHandler, method string) (mcp.Result, error) {
	return next(ctx, method, req)
}

// setLevel notes what a session wants to hear of the work of tools.
func setLevel(x *exchange, ctx context.Context, req mcp.Request, next mcp.MethodHandler, method string) (mcp.Result, error) {
	//lint:ignore SA1019 older clients set it
	p, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
	if !ok || p == nil || !slices.Contains(logLevels, string(p.Level)) {
		return nil, fault(codeParams, "params.level is one of %s", strings.Join(logLevels, ", "))
	}
	res, err := next(ctx, method, req)
	if err == nil && x.session != nil {
		x.session.mu.Lock()
		x.session.level = string(p.Level)
		x.session.mu.Unlock()
	}
	return res, err
}

func (d *Door) newServer() *mcp.Server {
	caps := &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Completions: &mcp.CompletionCapabilities{},
	}
	//lint:ignore SA1019 older clients use it
	caps.Logging = &mcp.LoggingCapabilities{}
	caps.AddExtension(tasksExtension, nil)
	s := mcp.NewServer(&mcp.Implementation{Name: "writ", Title: "writ", Version: writ.Version()}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: caps,
	})
	s.AddReceivingMiddleware(d.receive)
	return s
}

const instructions = "Tools are run by writ, which decides every call. A call that is denied says why; asking again in other words does not help. " +
	"A call that a person has to approve waits, and says how to come back for its outcome."

// metaServer is where a result says who made it.
const metaServer = mcp.MetaKeyServerInfo

func serverInfo() any {
	return map[string]string{"name": "writ", "version": writ.Version()}
}

// receive is the one way into the SDK's methods.
func (d *Door) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() { // the SDK's goroutines have nobody else to catch it
			if p := recover(); p != nil {
				d.log.Error("an MCP method panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: codeInternal, Message: "internal error; the operator's log has the cause"}
			}
		}()
		x, err := exchangeOf(req)
		if err != nil {
			return nil, protocolError(err)
		}
		h, ok := sdkMethods[method]
		if !ok {
			return nil, &jsonrpc.Error{Code: codeMethod, Message: fmt.Sprintf("method %s is not served", clip(method))}
		}
		res, err = h(x, ctx, req, next, method)
		if err != nil {
			return nil, protocolError(err)
		}
		return res, nil
	}
}

// protocolError lets out only what may be said of an error (I15); the SDK's own are
// about the message that it was sent.
func protocolError(err error) error {
	if e, ok := err.(*jsonrpc.Error); ok {
		return e
	}
	if e, ok := err.(*rpcError); ok {
		return &jsonrpc.Error{Code: int64(e.Code), Message: e.Message, Data: e.Data}
	}
	kind, msg := writ.Public(err)
	code := int64(codeInternal)
	switch kind {
	case writ.Internal:
	case writ.NotFound, writ.Invalid:
		code = codeParams
	default:
		code = codeRequest
	}
	return &jsonrpc.Error{Code: code, Message: msg}
}

// initialize begins a session.
func initialize(x *exchange, ctx context.Context, req mcp.Request, next mcp.MethodHandler, method string) (mcp.Result, error) {
	p, ok := req.GetParams().(*mcp.InitializeParams)
	if !ok || p == nil {
		return nil, fault(codeParams, "initialize has params")
	}
	if p.ProtocolVersion >= modernFrom { // the SDK would take the session for one of a newer kind
		p.ProtocolVersion = versions[1]
	}
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	ss, isServer := req.GetSession().(*mcp.ServerSession)
	out, isInit := res.(*mcp.InitializeResult)
	if !isServer || !isInit {
		return nil, fault(codeInternal, "the session could not be taken up")
	}
	v := &session{id: ss.ID(), ss: ss, who: x.who, version: out.ProtocolVersion, can: x.canBegin()}
	if p.ClientInfo != nil {
		v.name = printable(p.ClientInfo.Name)
	}
	if err := x.sessions.add(v); err != nil {
		go ss.Close() // it waits for this very request; left open, it would stay for ever
		return nil, err
	}
	return res, nil
}

// printable keeps a client's name for itself to what a record takes.
func printable(s string) string {
	out := make([]byte, 0, 64)
	for i := 0; i < len(s) && len(out) < 64; i++ {
		if s[i] >= ' ' && s[i] < 0x7f {
			out = append(out, s[i])
		}
	}
	return string(out)
}
