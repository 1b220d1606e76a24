// Package api is the HTTP front door. Agents come over TCP with a bearer token:
// they call tools, and see and end what is theirs. Operators come over a Unix
// socket that only the daemon's own user can open; there they look at everything,
// and decide with a person's passphrase. Whoever brings a token there, or names an
// agent, is that agent. Who an agent is can also be shown by an access token of an
// issuer, by a client certificate, and on a socket for agents by the user (auth.go).
//
// One table says what there is (routes.go): requests find their handler in it, and
// the OpenAPI document is made of it. What crosses the door is package client's
// types.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/mcpserver"
	"github.com/writ-run/writ/wire"
)

// Server serves one engine.
type Server struct {
	engine *engine.Engine
	mcp    *mcpserver.Door
	log    *slog.Logger
	limits limits
	stop   context.CancelFunc // ends Serve
	ending <-chan struct{}    // closed when it ends

	rendering chan struct{} // has as many as are at it

	mu      sync.Mutex
	busy    map[string]int // requests under way by token
	streams map[string]int // and streams
}

// limits are what callers may have under way at once, and for how long. The
// operator's socket has slots of its own, so that no agent can keep a stop out.
type limits struct {
	requests, connections, agentRequests int // at a door, at the agents' door, of a token
	streams, agentStreams                int // event streams at a door, of a token
	renderings                           int // of what agents wrote, for people, in the whole process

	body           int64         // bytes of a request: arguments, and a little for what goes around them
	header         int           // bytes of its headers
	readHeader     time.Duration // from the first byte of a request to the end of its headers
	readBody, idle time.Duration // to the end of its body; until the next request
	heartbeat      time.Duration // between signs of life on a stream
	unread         time.Duration // how long a stream's reader may leave a write waiting
}

func usual() limits {
	return limits{
		requests: 512, connections: 512, agentRequests: 128, streams: 32, agentStreams: 4, renderings: 2,
		body: wire.MaxBytes + 64<<10, header: 64 << 10,
		readHeader: 5 * time.Second, readBody: 20 * time.Second, idle: 30 * time.Second,
		heartbeat: 15 * time.Second, unread: 10 * time.Second,
	}
}

// Serve answers until ctx ends, or an operator asks it to end.
func Serve(ctx context.Context, e *engine.Engine, l Listeners, log *slog.Logger) error {
	return serve(ctx, e, l, log, usual())
}

func serve(ctx context.Context, e *engine.Engine, l Listeners, log *slog.Logger, lim limits) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &Server{
		engine: e, mcp: mcpserver.New(e, log, ctx.Done()), log: log, limits: lim, stop: cancel, ending: ctx.Done(), rendering: make(chan struct{}, lim.renderings),
		busy: map[string]int{}, streams: map[string]int{},
	}
	l.Agents, l.Operator = patient{l.Agents}, patient{l.Operator}
	if l.Socket != nil {
		l.Socket = patient{l.Socket}
	}
	agents, err := s.door(agentDoor)
	if err != nil {
		return err
	}
	operators, err := s.door(operatorDoor)
	if err != nil {
		return err
	}
	servers := []*http.Server{s.httpServer(s.fromWhere(l, agents)), s.httpServer(operators)}
	if l.Socket != nil {
		servers = append(servers, s.httpServer(agents))
	}
	failed := make(chan error, 3)
	go func() { failed <- serveAgents(servers[0], l, lim.connections) }()
	go func() { failed <- servers[1].Serve(l.Operator) }()
	if l.Socket != nil {
		go func() { failed <- serveSocket(servers[2], l, lim.connections) }()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	cancel() // streams end
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	for _, srv := range servers {
		if srv.Shutdown(grace) != nil {
			srv.Close() // callers that wait for a person; their requests stay pending
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func serveAgents(srv *http.Server, l Listeners, connections int) error {
	tcp := atMost(l.Agents, connections)
	srv.ConnState = tcp.state
	if l.TLS == nil {
		return srv.Serve(tcp)
	}
	srv.TLSConfig = l.TLS
	return srv.ServeTLS(tcp, "", "")
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: s.bounded(h, make(chan struct{}, s.limits.requests)), MaxHeaderBytes: s.limits.header,
		ReadHeaderTimeout: s.limits.readHeader, ReadTimeout: s.limits.readBody, IdleTimeout: s.limits.idle,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: s.limits.agentRequests},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
