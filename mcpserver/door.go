// Package mcpserver is the MCP front door: streamable HTTP, which 'writ mcp' carries
// over standard input and output too. It speaks protocol 2026-07-28, where every
// request stands alone, and the versions before it, which have sessions.
//
// Every method is a call through the gate, a list of what the caller may use, or
// refused; methods.go has the table. A tools/call is parsed here, once and strictly,
// and goes to the engine as the bytes that arrived; negotiation, sessions and
// everything rare is the SDK's work.
package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

// Door serves one engine over MCP. It is safe for concurrent use.
type Door struct {
	engine   *engine.Engine
	log      *slog.Logger
	server   *mcp.Server
	legacy   http.Handler // with sessions: versions before 2026-07-28
	modern   http.Handler // without
	sessions sessions
	calls    calls
	hub      hub
	tasks    tasks
	states   states
	closing  <-chan struct{} // ends streams
}

// New is a door of an engine, until closing is closed.
func New(e *engine.Engine, log *slog.Logger, closing <-chan struct{}) *Door {
	d := &Door{engine: e, log: log, closing: closing}
	d.server = d.newServer()
	get := func(*http.Request) *mcp.Server { return d.server }
	// The host, the origin and the size of a request are held by whoever mounts the
	// door; the SDK would look at a loopback address only.
	d.legacy = known(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: -1}))
	d.modern = known(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, Stateless: true, PropagateRequestCancellation: true,
	}))
	d.hear()
	go d.watch()
	go d.attend()
	return d
}

// modernFrom is the first version in which every request stands alone.
const modernFrom = "2026-07-28"

// versions are those that are spoken, the newest first.
var versions = []string{modernFrom, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Serve answers one request of an authenticated caller.
func (d *Door) Serve(w http.ResponseWriter, r *http.Request, who engine.Caller, g Guard) {
	x := &exchange{Door: d, w: w, r: r, who: who, guard: g}
	defer x.survive()
	switch r.Method {
	case http.MethodPost:
		x.post()
	case http.MethodGet, http.MethodDelete:
		x.stream()
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		x.refuse(&rpcError{Code: codeRequest, Message: "this path takes GET, POST and DELETE", status: http.StatusMethodNotAllowed})
	}
}

// exchange is one HTTP request on its way.
type exchange struct {
	*Door
	w       http.ResponseWriter
	r       *http.Request
	who     engine.Caller
	guard   Guard
	msg     message
	modern  bool
	session *session // of an older version
	reply   *reply
	task    *task           // what the call has become, or may become; nil: its client knows none
	inputs  json.RawMessage // the client's answers to what a server behind us asked
	inner   json.RawMessage // the state of a server behind us, as the client gave it back
}

// survive answers for what panicked: the SDK's goroutines have a middleware of their own.
func (x *exchange) survive() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		x.log.Error("an MCP request panicked", "panic", p, "stack", string(debug.Stack()))
		x.refuse(&rpcError{Code: codeInternal, Message: "internal error; the operator's log has the cause", status: http.StatusInternalServerError})
	}
}

// refuse answers with an error of the protocol.
func (x *exchange) refuse(e *rpcError) {
	status := e.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	if status == http.StatusAccepted {
		x.w.WriteHeader(status)
		return
	}
	if x.reply == nil {
		x.reply = &reply{w: x.w}
	}
	x.reply.end(refusal(x.msg.id, e), status)
}

// post takes one message.
func (x *exchange) post() {
	body, fail := x.read()
	if fail == nil {
		x.msg, fail = parse(body)
	}
	if fail == nil {
		fail = x.negotiated()
	}
	if fail == nil && !x.modern {
		fail = x.inSession()
	}
	if fail == nil && !x.modern && x.msg.method == "initialize" {
		fail = x.mayBegin()
	}
	if fail != nil {
		x.refuse(fail)
		return
	}
	handle, own := ownMethods[x.msg.method]
	if own && (x.msg.id != nil) == handle.answers {
		x.reply = newReply(x.w, x.r)
		handle.run(x)
		return
	}
	if fail := x.served(own); fail != nil {
		x.refuse(fail)
		return
	}
	if x.msg.method == "" && x.session != nil && x.session.answered(body, x.msg.id) {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	if len(body) > mostForSDK {
		x.refuse(&rpcError{Code: codeRequest, Message: fmt.Sprintf("the message has %d bytes, and one of this method may have %d; send less", len(body), mostForSDK), status: http.StatusRequestEntityTooLarge})
		return
	}
	x.sdk(body)
}

// mostForSDK is how many bytes a message may have that the SDK is handed. It keeps the
// first and the last of each session, several times over, for as long as the session
// lasts, and nothing that it answers needs more.
const mostForSDK = 64 << 10

// served refuses a method that nobody answers. A notification of one is passed over,
// as the protocol wants it.
func (x *exchange) served(own bool) *rpcError {
	_, sdk := sdkMethods[x.msg.method]
	switch {
	case sdk || x.msg.method == "":
		return nil
	case x.msg.id == nil:
		return &rpcError{Code: codeMethod, status: http.StatusAccepted}
	case own:
		return fault(codeRequest, "%s is a notification, and has no id", clip(x.msg.method))
	case x.modern:
		return &rpcError{Code: codeMethod, Message: "method " + clip(x.msg.method) + " is not served", status: http.StatusNotFound}
	}
	return &rpcError{Code: codeMethod, Message: "method " + clip(x.msg.method) + " is not served", status: http.StatusOK}
}

// read takes the body, after what has to hold before it is looked at.
func (x *exchange) read() ([]byte, *rpcError) {
	if media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &rpcError{Code: codeRequest, Message: "send the message as Content-Type: application/json", status: http.StatusUnsupportedMediaType}
	}
	if body, stream := accepts(x.r); !body || !stream {
		return nil, &rpcError{Code: codeRequest, Message: "send Accept: application/json, text/event-stream", status: http.StatusNotAcceptable}
	}
	body, err := io.ReadAll(x.r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &rpcError{Code: codeRequest, Message: "the message is too large", status: http.StatusRequestEntityTooLarge}
	case err != nil:
		return nil, fault(codeParse, "the message did not arrive whole")
	}
	return body, nil
}

// stream is the way of server messages of a session, or its end.
func (x *exchange) stream() {
	said, fail := x.version()
	if fail == nil && said != "" && !slices.Contains(versions, said) {
		fail = unsupported(said)
	}
	if fail != nil {
		x.refuse(fail)
		return
	}
	if said >= modernFrom {
		x.w.Header().Set("Allow", "POST")
		x.refuse(&rpcError{Code: codeRequest, Message: "this version of the protocol has no sessions; use POST", status: http.StatusMethodNotAllowed})
		return
	}
	if fail := x.inSession(); fail != nil {
		x.refuse(fail)
		return
	}
	if x.r.Method == http.MethodGet {
		x.news()
		return
	}
	x.calls.cancelAll(x.session.id)
	x.sdk(nil)
	x.sessions.end(x.engine, x.session, "the client ended its session")
}

// sdk hands the request on, with the body as it was read.
func (x *exchange) sdk(body []byte) {
	r := x.r.WithContext(context.WithValue(x.r.Context(), callerKey{}, x))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer -") // what there was has done its work
	to := x.legacy
	if x.modern {
		to = x.Door.modern
	}
	to.ServeHTTP(&answering{ResponseWriter: x.w, x: x}, r)
}

// callerKey finds the exchange of a request that the SDK has: it is how the SDK learns
// whom a session belongs to.
type callerKey struct{}

// known tells the SDK who calls, so that it lets nobody into another's session.
func known(h http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		x, ok := ctx.Value(callerKey{}).(*exchange)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: owner(x.who), Extra: map[string]any{"exchange": x}}, nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// owner is whom a session belongs to: an agent, with the token it came with.
func owner(who engine.Caller) string { return who.Agent + "\x00" + who.Token }

// exchangeOf is the exchange that a method of the SDK is called in.
func exchangeOf(req mcp.Request) (*exchange, error) {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if x, ok := extra.TokenInfo.Extra["exchange"].(*exchange); ok {
			return x, nil
		}
	}
	return nil, writ.Fail(writ.Unauthenticated, "nobody knows who calls", nil)
}
