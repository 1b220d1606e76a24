package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// hub tells those who listen what changed for them. Safe for concurrent use.
type hub struct {
	mu   sync.Mutex
	subs map[*subscriber]bool
}

// subscriber is one stream of news: the GET of a session, or a subscriptions/listen.
type subscriber struct {
	who   engine.Caller
	in    func() string   // the engine's session, by now
	id    json.RawMessage // of the subscription; nil: a session's stream
	wants map[news]bool
	told  func(uri string) bool // whether it is told of a resource

	mu      sync.Mutex
	waiting [][]byte
	has     map[string]bool // what waits, so that nothing waits twice
	wake    chan struct{}
	over    chan struct{} // closed when its caller may be told nothing more
}

// news is what one can be told of.
type news string

const (
	toolsChanged     news = "notifications/tools/list_changed"
	promptsChanged   news = "notifications/prompts/list_changed"
	resourcesChanged news = "notifications/resources/list_changed"
	resourceUpdated  news = "notifications/resources/updated"
)

// mostWaiting bounds what is kept for a listener that does not read. It looks anew
// when it does, so that what is dropped is not lost to it.
const mostWaiting = 256

func (h *hub) add(s *subscriber) (leave func()) {
	s.has, s.wake, s.over = map[string]bool{}, make(chan struct{}, 1), make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[*subscriber]bool{}
	}
	h.subs[s] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, s)
	}
}

// tell sends news to those whom it is meant for. params has what goes with it.
func (h *hub) tell(what news, params map[string]any, meant func(*subscriber) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if s.wants[what] && (meant == nil || meant(s)) {
			s.put(what, params)
		}
	}
}

func (s *subscriber) put(what news, params map[string]any) {
	p := map[string]any{}
	for k, v := range params {
		p[k] = v
	}
	if s.id != nil {
		p["_meta"] = map[string]any{"io.modelcontextprotocol/subscriptionId": s.id}
	}
	msg, err := notification(string(what), p)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[string(msg)] || len(s.waiting) >= mostWaiting {
		return
	}
	s.has[string(msg)] = true
	s.waiting = append(s.waiting, msg)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscriber) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.waiting
	s.waiting = nil
	clear(s.has)
	return out
}

// follow sends a listener its news until it goes away, may be told nothing more, or the
// door closes; only then, the stream is to be ended in order.
func (x *exchange) follow(ctx context.Context, s *subscriber) (ended bool) {
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.over:
			return false
		case <-x.closing:
			return true
		case <-beat.C:
			if x.unwelcome() != nil {
				return false
			}
			x.reply.beat()
		case <-s.wake:
			for _, msg := range s.take() {
				if x.unwelcome() != nil || x.reply.say(msg) != nil {
					return false
				}
			}
		}
		if x.reply.gone() {
			return false
		}
	}
}

// counted takes a place among the streams of the caller, or refuses the request.
func (x *exchange) counted() (left func(), ok bool) {
	if x.guard.Stream == nil {
		x.refuse(fault(codeRequest, "streams are not served here"))
		return nil, false
	}
	left, err := x.guard.Stream()
	if err != nil {
		e := protocolFault(err)
		e.status = http.StatusConflict
		x.refuse(e)
		return nil, false
	}
	return left, true
}

// news is the GET of a session: what the server says by itself.
func (x *exchange) news() {
	if _, stream := accepts(x.r); !stream {
		x.refuse(&rpcError{Code: codeRequest, Message: "send Accept: text/event-stream", status: http.StatusNotAcceptable})
		return
	}
	left, ok := x.counted()
	if !ok {
		return
	}
	defer left()
	s := &subscriber{who: x.who, in: x.session.scope, told: x.session.watches,
		wants: map[news]bool{toolsChanged: true, promptsChanged: true, resourcesChanged: true, resourceUpdated: true}}
	defer x.hub.add(s)()
	x.reply = newReply(x.w, x.r)
	x.reply.start()
	x.follow(x.r.Context(), s)
}

// listen is subscriptions/listen: the same for a request that stands alone.
func (x *exchange) listen() {
	if !x.modern {
		x.refuse(&rpcError{Code: codeMethod, Message: "in a session, news come on the stream of GET", status: http.StatusOK})
		return
	}
	asked, ok := object(x.msg.params["notifications"])
	if !ok {
		x.refuse(fault(codeParams, "params.notifications is an object"))
		return
	}
	scope, err := x.scope(x.r.Context())
	if err != nil {
		x.refuse(fault(codeRequest, "%s", publicly(err)))
		return
	}
	left, ok := x.counted()
	if !ok {
		return
	}
	defer left()
	agreed := map[string]any{}
	s := &subscriber{who: x.who, in: func() string { return x.engine.SessionOf(x.who, scope) }, id: x.msg.id, wants: map[news]bool{}}
	for key, what := range map[string]news{"toolsListChanged": toolsChanged, "promptsListChanged": promptsChanged, "resourcesListChanged": resourcesChanged} {
		if string(asked[key]) == "true" {
			agreed[key], s.wants[what] = true, true
		}
	}
	if uris := x.watched(asked["resourceSubscriptions"]); len(uris) > 0 {
		agreed["resourceSubscriptions"], s.wants[resourceUpdated] = uris, true
		s.told = func(uri string) bool { return slices.Contains(uris, uri) }
	}
	defer x.hub.add(s)()
	ack, err := notification("notifications/subscriptions/acknowledged", map[string]any{
		"notifications": agreed, "_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": x.msg.id}})
	if err != nil || x.reply.say(ack) != nil {
		return
	}
	if len(s.wants) > 0 && !x.follow(x.r.Context(), s) {
		x.reply.drop()
		return
	}
	end, err := wire.Plain(map[string]any{"resultType": "complete", "_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": x.msg.id}})
	if err == nil {
		x.reply.end(answer(x.msg.id, end), http.StatusOK)
	}
}

// watched has servers tell of resources, and returns those that the caller may be told of.
func (x *exchange) watched(asked json.RawMessage) []string {
	var uris, out []string
	if len(asked) == 0 || json.Unmarshal(asked, &uris) != nil {
		return nil
	}
	for _, uri := range uris[:min(len(uris), 100)] {
		server, err := x.engine.WhoseResource(x.who.Agent, uri)
		if err != nil {
			continue
		}
		args, err := wire.Plain(map[string]string{"uri": uri})
		if err == nil {
			_, err = x.engine.Do(x.r.Context(), engine.Call{Agent: x.who.Agent, Token: x.who.Token, Tool: engine.WatchResource.Of(server), Args: args, Door: "mcp"})
		}
		if err == nil {
			out = append(out, uri)
		}
	}
	return out
}

func publicly(err error) string {
	_, msg := writ.Public(err)
	return msg
}

// owns reports whether a resource is a server's, for a caller: no server speaks for
// another's.
func (d *Door) owns(server, uri string, who engine.Caller) bool {
	whose, err := d.engine.WhoseResource(who.Agent, uri)
	return err == nil && whose == server
}

// hear has listeners told what is loaded in their sessions, and what servers say of
// their resources.
func (d *Door) hear() {
	d.engine.OnLoaded(func(session string) {
		d.hub.tell(toolsChanged, nil, func(s *subscriber) bool { return s.in() == session })
	})
	d.engine.OnNotice(func(server, method string, params json.RawMessage) {
		m, _ := object(params)
		if uri := text(m["uri"]); method == string(resourceUpdated) && uri != "" {
			d.hub.tell(resourceUpdated, map[string]any{"uri": uri}, func(s *subscriber) bool {
				return s.told != nil && s.told(uri) && d.owns(server, uri, s.who)
			})
		}
	})
}

// watch tells listeners when the rules changed: what they may use may be another list.
func (d *Door) watch() {
	for {
		changed := d.engine.RulesChanged()
		select {
		case <-changed:
		case <-d.closing:
			return
		}
		for _, what := range []news{toolsChanged, resourcesChanged, promptsChanged} {
			d.hub.tell(what, nil, nil)
		}
	}
}
