package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// How many sessions there may be, and how long one may lie unused.
const (
	maxSessions   = 4096
	sessionsOfOne = 1024 // of one agent
	sessionIdle   = time.Hour
)

// sessions are those of clients that have them: of versions before 2026-07-28.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

// session is one client's.
type session struct {
	id      string
	who     engine.Caller
	name    string // what its client calls itself, or the session
	version string
	can     abilities // what its client can be asked
	ss      *mcp.ServerSession

	mu     sync.Mutex
	writs  string // the engine's session; empty: none yet
	used   time.Time
	asked  map[string]chan json.RawMessage // our requests to the client, by id
	nextID int
	uris   map[string]bool // resources it is told of
	level  string          // of what it wants to hear of the work of tools
}

// add takes up a session that was negotiated.
func (s *sessions) add(v *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := 0
	for id, o := range s.byID {
		if o.idle() {
			delete(s.byID, id)
			go o.ss.Close() // it waits for what runs, and nothing does
		} else if o.who.Agent == v.who.Agent {
			mine++
		}
	}
	if len(s.byID) >= maxSessions || mine >= sessionsOfOne {
		return writ.Fail(writ.Conflict, "too many MCP sessions are open; end some", nil)
	}
	if s.byID == nil {
		s.byID = map[string]*session{}
	}
	v.used = time.Now()
	s.byID[v.id] = v
	return nil
}

func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.used) > sessionIdle
}

// find is an owner's session. Another's is not there, for all that can be told.
func (s *sessions) find(id string, who engine.Caller) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byID[id]
	if v == nil || owner(v.who) != owner(who) {
		return nil
	}
	v.mu.Lock()
	v.used = time.Now()
	v.mu.Unlock()
	return v
}

// end forgets a session. What waits for a person in it goes on waiting: its client
// comes back for it in another.
func (s *sessions) end(e *engine.Engine, v *session, why string) {
	s.mu.Lock()
	delete(s.byID, v.id)
	s.mu.Unlock()
	if writs := v.scope(); writs != "" {
		e.LeaveSession(context.Background(), v.who, writs, why)
	}
}

// inSession finds the session of a request, where its version has them.
func (x *exchange) inSession() *rpcError {
	id := x.r.Header.Get("Mcp-Session-Id")
	if id == "" && x.r.Method == http.MethodPost && x.msg.method == "initialize" {
		return nil
	}
	if id == "" {
		return fault(codeRequest, "there is no session: send initialize first and then its Mcp-Session-Id; or use protocol %s, which has none", modernFrom)
	}
	if x.session = x.sessions.find(id, x.who); x.session == nil {
		if err := x.engine.Welcome(x.who); err != nil && x.msg.method == "tools/call" {
			return nil // the gate refuses it, and writes that down
		} else if err != nil && x.r.Method == http.MethodPost {
			return x.asAnswer(protocolFault(err))
		}
		return &rpcError{Code: codeRequest, Message: "there is no such session; send initialize again", status: http.StatusNotFound}
	}
	return nil
}

// scope is the engine's session that a call is made in. A client can name it
// (Writ-Session), and then finds it again after a restart; otherwise a client's
// session is one of its own, and a request that stands alone is in its token's of the day.
func (x *exchange) scope(ctx context.Context) (string, error) {
	if x.who.Session != "" { // a delegated agent works in the one it was made in
		return x.who.Session, nil
	}
	named := x.r.Header.Get("Writ-Session")
	if x.session == nil {
		if named == "" {
			return "", nil
		}
		return x.engine.SessionNamed(ctx, x.who, named)
	}
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	var err error
	switch {
	case named != "":
		x.session.writs, err = x.engine.SessionNamed(ctx, x.who, named)
	case x.session.writs == "" || !x.engine.SessionOpen(x.session.writs):
		x.session.writs, err = x.engine.NewSession(ctx, x.who, x.session.name)
	}
	return x.session.writs, err
}

// scope is the engine's session of this one; empty: none yet.
func (s *session) scope() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writs
}

// watch has the session told of a resource, or no more.
func (s *session) watch(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uris == nil {
		s.uris = map[string]bool{}
	}
	if s.uris[uri] = on; !on {
		delete(s.uris, uri)
	}
}

func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

func (s *session) watches(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uris[uri]
}

// ask sends the client a request of ours on the stream of the one it waits for, and
// returns its whole answer.
func (s *session) ask(ctx context.Context, to *reply, method string, params any) (json.RawMessage, error) {
	s.mu.Lock()
	if s.asked == nil {
		s.asked = map[string]chan json.RawMessage{}
	}
	s.nextID++
	id := "writ-" + strconv.Itoa(s.nextID)
	answer := make(chan json.RawMessage, 1)
	s.asked[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
	}()
	msg, err := wire.Plain(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
	if err != nil {
		return nil, err
	}
	if err := to.say(msg); err != nil {
		return nil, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answered hands a client's answer to whoever asked; false: nobody here did.
func (s *session) answered(body []byte, id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, ok := s.asked[text(id)]
	if ok {
		delete(s.asked, text(id))
		to <- body
	}
	return ok
}

// calls are those under way, so that a client can cancel its own.
type calls struct {
	mu sync.Mutex
	by map[string]*under
}

type under struct {
	cancel    context.CancelCauseFunc
	cancelled bool
}

// errTakenBack is why a call ends that its client cancelled. What one waits for that only
// went away goes on waiting.
var errTakenBack = errors.New("cancelled by its client")

// begin takes a call up under its client's id for it. done is never nil.
func (c *calls) begin(key string, cancel context.CancelCauseFunc) (u *under, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*under{}
	}
	if c.by[key] != nil {
		return nil, func() {}
	}
	u = &under{cancel: cancel}
	c.by[key] = u
	return u, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.by, key)
	}
}

func (c *calls) cancel(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.by[key]; u != nil {
		u.cancelled = true
		u.cancel(errTakenBack)
	}
}

// cancelAll ends everything of a session that its client ended.
func (c *calls) cancelAll(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, u := range c.by {
		if strings.HasPrefix(key, session+"\x00") {
			u.cancelled = true
			u.cancel(nil)
		}
	}
}

func (c *calls) wasCancelled(u *under) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return u.cancelled
}
