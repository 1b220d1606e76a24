// Package api is the HTTP front door and its client. Agents come over loopback
// TCP with a bearer token and can call tools and list those they may use.
// Operators come over a Unix socket that only the daemon's own user can open;
// there they can look at everything, and decide with a person's passphrase.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// SocketName is the operator socket's name inside the state directory.
const SocketName = "writ.sock"

// SocketPath is where the operator socket of a state directory is.
func SocketPath(state string) string { return filepath.Join(state, SocketName) }

// maxBody bounds a request: arguments, and a little for what goes around them.
const maxBody = wire.MaxBytes + 64<<10

// Server serves one engine.
type Server struct {
	engine *engine.Engine
	log    *slog.Logger
	stop   context.CancelFunc // ends Serve

	mu   sync.Mutex
	busy map[string]int // requests under way by session
}

// What agents may have under way at once: connections, and requests of one token.
// The operator's socket has slots of its own, so that no agent can keep a stop
// out.
const (
	maxRequests      = 512
	maxConnections   = 512
	maxTokenRequests = 128
)

// Listeners are where a server listens.
type Listeners struct {
	Agents   net.Listener // loopback TCP
	Operator net.Listener // Unix socket
}

// Listen opens both.
func Listen(addr, state string) (Listeners, error) {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return Listeners{}, fmt.Errorf("listen on %s: %w; set 'listen' in the configuration to a free port", addr, err)
	}
	unix, err := listenSocket(SocketPath(state))
	if err != nil {
		tcp.Close()
		return Listeners{}, err
	}
	return Listeners{tcp, unix}, nil
}

func listenSocket(path string) (net.Listener, error) {
	if len(path) > 100 {
		return nil, fmt.Errorf("the socket's path %s is too long for the system; choose a shorter store.path", path)
	}
	// The store's lock is held, so a socket that is there belongs to nobody.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the operator socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return ownUserOnly{l}, nil
}

// Serve answers until ctx ends, or an operator asks it to end.
func Serve(ctx context.Context, e *engine.Engine, l Listeners, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &Server{engine: e, log: log, stop: cancel, busy: map[string]int{}}
	agents := s.httpServer(loopbackOnly(s.agentRoutes(http.NewServeMux())))
	operator := s.httpServer(s.operatorRoutes(s.agentRoutes(http.NewServeMux())))
	failed := make(chan error, 2)
	go func() { failed <- agents.Serve(atMost(l.Agents, maxConnections)) }()
	go func() { failed <- operator.Serve(l.Operator) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	for _, srv := range []*http.Server{agents, operator} {
		if srv.Shutdown(grace) != nil {
			srv.Close() // callers that wait for a person; their requests stay pending
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: s.bounded(h, make(chan struct{}, maxRequests)), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// bounded holds requests of one door to a number and a size.
func (s *Server) bounded(h http.Handler, slots chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "1")
			s.problem(w, r, writ.Fail(writ.Conflict, "too many requests are under way; try again", nil), "")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// loopbackOnly refuses requests that a web page could have caused: a Host that is
// a name somebody else's DNS points here, or an Origin that is not ours.
func loopbackOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			http.Error(w, "this address is served on loopback only", http.StatusMisdirectedRequest)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || u.Host != r.Host {
				http.Error(w, "requests from web pages are not taken", http.StatusForbidden)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

func loopbackHost(hostport string) bool {
	h, _, err := net.SplitHostPort(hostport)
	if err != nil {
		h = strings.Trim(hostport, "[]")
	}
	a, err := netip.ParseAddr(h)
	return h == "localhost" || err == nil && a.IsLoopback()
}

// read decodes a request's JSON body strictly.
func read(r *http.Request, into any) error {
	if ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(ct) != "application/json" {
		return writ.Fail(writ.Invalid, "send the body as Content-Type: application/json", nil)
	}
	body, err := readAll(r)
	if err != nil {
		return err
	}
	return wire.Decode(body, into)
}

func (s *Server) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Debug("reply was not taken", "err", err)
	}
}

// Problem is an error as it crosses the door (RFC 9457).
type Problem struct {
	Title    string    `json:"title"`
	Status   int       `json:"status"`
	Detail   string    `json:"detail"`
	Kind     writ.Kind `json:"kind"`
	CallID   string    `json:"call_id,omitempty"`
	Approval string    `json:"approval,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

var statuses = map[writ.Kind]int{
	writ.Invalid: 400, writ.Unauthenticated: 401, writ.NotFound: 404, writ.Denied: 403, writ.Pending: 202, writ.Rejected: 403,
	writ.Expired: 403, writ.Stopped: 403, writ.Changed: 409, writ.Conflict: 409, writ.TooLarge: 413,
	writ.SandboxUnavailable: 503, writ.StoreUnavailable: 503, writ.Unknown: 500, writ.Internal: 500,
}

// problem answers with what may be said of err (I15); the rest goes to the log.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error, call string) {
	kind, msg := writ.Public(err)
	status, ok := statuses[kind]
	if !ok {
		status = 500
	}
	if status >= 500 {
		s.log.Error("request failed", "path", r.URL.Path, "call", call, "kind", kind, "err", err)
	}
	p := Problem{Title: http.StatusText(status), Status: status, Detail: msg, Kind: kind, CallID: call}
	var e *writ.Error
	if errors.As(err, &e) {
		p.Approval = e.Ref
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(p); err != nil {
		s.log.Debug("reply was not taken", "err", err)
	}
}
