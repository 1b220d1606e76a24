package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// upstreams are the MCP servers whose tools there are.
type upstreams struct {
	e     *Engine
	own   []Server // of the embedding program
	cache *upstream.Cache

	mu      sync.Mutex
	servers map[string]*server

	telling sync.Mutex // not mu: a server that ends is waited for under that, and may still speak
	told    []func(server, method string, params json.RawMessage)
}

// Server is an MCP server of the embedding program, governed like any other: its tools
// are suspended until a person accepts them.
type Server struct {
	Name string
	Bare bool // its tools have their own names, without the server's before them
	// Connect begins a connection with it, a message a line; both ends are closed.
	Connect func(context.Context) (from io.ReadCloser, to io.WriteCloser, err error)
}

// configured is an embedding program's server as one of the configuration.
func (s Server) configured() config.Upstream {
	c := config.Upstream{Command: []string{s.Name}, Relay: []config.Relay{"elicitation", "sampling", "roots"}}
	if s.Bare {
		c.Prefix = "none"
	}
	return c
}

// wanted is the servers that there are to be.
func (u *upstreams) wanted(cfg *config.Config) map[string]config.Upstream {
	out := maps.Clone(cfg.File.Upstreams)
	if out == nil {
		out = map[string]config.Upstream{}
	}
	for _, s := range u.own {
		out[s.Name] = s.configured()
	}
	return out
}

// server is one of them, as it is configured.
type server struct {
	*upstream.Server
	old  *upstream.Server // as older clients reach it; nil: not needed yet
	name string
	cfg  config.Upstream
	way  *Way   // to where it listens; nil: it is a program
	own  bool   // it is the embedding program's
	is   string // cfg, to tell whether it changed

	secret *credentials // what of it is kept elsewhere
	begun  time.Time
}

// keep starts the servers of a configuration, and ends those that are not in it any
// more, or not so.
func (u *upstreams) keep(cfg *config.Config) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.servers == nil {
		u.servers = map[string]*server{}
	}
	wanted := u.wanted(cfg)
	var errs []error
	for name, s := range u.servers {
		now, there := wanted[name]
		if text, err := wire.Marshal(now); !there || err != nil || text != s.is {
			errs = append(errs, s.end())
			delete(u.servers, name)
		}
	}
	for name, now := range wanted {
		if u.servers[name] != nil {
			continue
		}
		s, err := u.start(name, now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		u.servers[name] = s
	}
	return errors.Join(errs...)
}

func (u *upstreams) start(name string, cfg config.Upstream) (*server, error) {
	is, err := wire.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	ours := func(o Server) bool { return o.Name == name }
	s := &server{name: name, cfg: cfg, is: is, own: slices.ContainsFunc(u.own, ours), begun: time.Now()}
	if s.secret, err = u.e.credentials(name, cfg); err != nil {
		return nil, err
	}
	if cfg.URL != "" {
		to, err := config.Endpoint(cfg.URL)
		if err != nil {
			return nil, err
		}
		if s.way, err = u.e.Reach("upstreams."+name, to); err != nil {
			return nil, err
		}
	}
	s.Server, err = upstream.Start(u.spec(s))
	return s, err
}

// spec is how a server is kept.
func (u *upstreams) spec(s *server) upstream.Spec {
	name, cfg := s.name, s.cfg
	return upstream.Spec{
		Name: name, ConnectTimeout: time.Duration(cfg.InForce().ConnectTimeout), CallTimeout: time.Duration(cfg.InForce().CallTimeout), Enabled: cfg.Enabled, Disabled: cfg.Disabled,
		Options: upstream.Options{Version: writ.Version(), Log: u.e.log, Hide: s.secret.hide,
			Sampling: slices.Contains(cfg.Relay, "sampling"), Elicitation: slices.Contains(cfg.Relay, "elicitation"),
			Notice: func(method string, params json.RawMessage) { u.noticed(name, method, params) }},
		Connect: func(ctx context.Context, o upstream.Options) (*upstream.Conn, error) { return u.connect(ctx, s, o) },
		OnChange: func(upstream.Offer) {
			go func() { // it waits for whoever changes the rules, and may not hold up the server
				if err := u.e.refresh(context.Background()); err != nil && !u.e.closed.Load() {
					u.e.log.Error("the tools of an MCP server could not be taken up", "server", name, "err", err)
				}
			}()
		},
	}
}

// noticed passes on what a server says by itself.
func (u *upstreams) noticed(server, method string, params json.RawMessage) {
	u.telling.Lock()
	told := slices.Clone(u.told)
	u.telling.Unlock()
	for _, f := range told {
		f(server, method, params)
	}
}

// OnNotice has f told of notifications of servers that belong to no call. It may not
// block.
func (e *Engine) OnNotice(f func(server, method string, params json.RawMessage)) {
	e.upstreams.telling.Lock()
	defer e.upstreams.telling.Unlock()
	e.upstreams.told = append(e.upstreams.told, f)
}

// connect reaches a server: over HTTP, or in a box of its own.
func (u *upstreams) connect(ctx context.Context, s *server, o upstream.Options) (*upstream.Conn, error) {
	var conn *upstream.Conn
	var err error
	if s.cfg.URL != "" {
		conn, err = upstream.HTTP(ctx, s.cfg.URL, upstream.Client(s.cfg.Headers, s.secret, s.way.Dial), o)
	} else {
		conn, err = u.stdio(ctx, s, o)
	}
	if err == nil && conn.Version() < modern && conn.Logs() { // what each client wants to hear of it is the front door's to know
		_, _ = conn.Call(ctx, "logging/setLevel", json.RawMessage(`{"level":"debug"}`), nil)
	}
	return conn, err
}

// stdio reaches a program. One that does not answer in time has often said why.
func (u *upstreams) stdio(ctx context.Context, s *server, o upstream.Options) (*upstream.Conn, error) {
	for _, own := range u.own {
		if own.Name == s.name {
			from, to, err := own.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return upstream.Stdio(ctx, from, to, o)
		}
	}
	p, err := u.spawn(ctx, s)
	if err != nil {
		return nil, err
	}
	conn, err := upstream.Stdio(ctx, p.from, p.to, o)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s (connect_timeout)%s", s.cfg.InForce().ConnectTimeout, p.said.after(", and said meanwhile:"))
	}
	return conn, err
}

// Close ends them all.
func (u *upstreams) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for name, s := range u.servers {
		errs = append(errs, s.end())
		delete(u.servers, name)
	}
	return errors.Join(errs...)
}

// at pins which program, or which address, a server is, and all that its operator gives
// it: another environment or directory is another program under the same name.
func (s *server) at() upstream.Place {
	c, shown := s.cfg, s.cfg.Shown()
	p := upstream.Place{
		Command: shown.Command, Dir: c.Dir, Read: c.Read, Write: c.Write, Hosts: c.Hosts, URL: shown.URL, Digest: "?",
		Env: sayable(c.Env, shown.Env), Headers: sayable(c.Headers, shown.Headers), SecretEnv: map[string]string{},
	}
	for name, ref := range c.SecretEnv {
		p.SecretEnv[name] = ref.String()
	}
	if c.InForce().Auth.Type != "none" {
		p.Auth = s.secret.over.Auth.String()
	}
	all := map[string]any{"command": c.Command, "dir": c.Dir, "url": c.URL, "env": c.Env, "headers": c.Headers, "read": c.Read, "write": c.Write, "hosts": c.Hosts}
	if p.Auth != "" || len(p.SecretEnv) > 0 { // by reference: another value of the same is no other server
		all["auth"], all["secret_env"] = c.Auth, c.SecretEnv
	}
	text, err := wire.Marshal(all)
	if err == nil {
		p.Digest = wire.Digest(text).String()
	}
	return p
}

// sayable is values as they are shown. A hidden one has a mark that is another for most other
// values, and that very many have: which of them changed can be told, and no guess be held
// against it that the digest of all could not be.
func sayable(values, shown map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		if out[k] = shown[k]; shown[k] == config.Hidden {
			sum := wire.Digest("mark\x00" + k + "\x00" + v)
			out[k] += " #" + hex.EncodeToString(sum[:2])
		}
	}
	return out
}

// reach is what a server reaches, as whoever decides about its calls is shown it.
func (s *server) reach() *writ.Server {
	if s.own {
		return &writ.Server{Name: s.name}
	}
	return &writ.Server{Name: s.name, Box: s.cfg.URL == "", Read: s.cfg.Read, Write: s.cfg.Write, Hosts: s.cfg.Hosts, URL: config.ShownURL(s.cfg.URL)}
}

func (s *server) end() error {
	var old error
	if s.old != nil {
		old = s.old.Close()
	}
	if s.way != nil {
		defer s.way.Close()
	}
	return errors.Join(old, s.Close())
}

// all lists the servers by name.
func (u *upstreams) all() []*server {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []*server
	for _, name := range slices.Sorted(maps.Keys(u.servers)) {
		out = append(out, u.servers[name])
	}
	return out
}

// names lists what the servers are called.
func (u *upstreams) names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.servers))
}

func (u *upstreams) find(name string) *server {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.servers[name]
}

// await waits for a server that is starting and may have the tool of that name.
func (u *upstreams) await(ctx context.Context, toolName string) {
	for _, s := range u.all() {
		if s.cfg.Prefix == "none" || strings.HasPrefix(toolName, s.name+"__") {
			if p := s.State().Phase; p == upstream.Starting || p == upstream.Idle {
				_ = s.Ready(ctx) // where it fails there is no such tool
			}
		}
	}
}

// settle waits until every server is ready or has failed.
func (u *upstreams) settle(ctx context.Context) {
	for _, s := range u.all() {
		_ = s.Ready(ctx)
	}
}

// wantsInput is a call that its client has to make again, with answers to what the
// server asks.
func wantsInput(raw json.RawMessage) writ.Result {
	return writ.Result{Content: "the server asks for input, which only an MCP client can give", IsError: true, Metadata: map[string]any{"input_required": raw}}
}

// serverSaid makes a result of a server's own error: the call ran as far as the gate
// goes, and what the server says of it is for the model.
func serverSaid(err error) (writ.Result, error) {
	var said *upstream.ServerError
	if !errors.As(err, &said) {
		return writ.Result{}, err
	}
	return writ.Result{Content: "the server refused the call: " + said.Message, IsError: true, Metadata: map[string]any{"rpc_error": said}}, nil
}

// peer is who made a call, as far as its server may speak to it.
func (u *upstreams) peer(ctx context.Context, s *server) upstream.Peer {
	p := tool.PeerOf(ctx)
	if p == nil {
		return nil
	}
	return relayed{p, s.cfg.Relay}
}

// relayed lets through what the operator relays, and the news of a call always.
type relayed struct {
	tool.Peer
	may []config.Relay
}

func (r relayed) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	kind, _, _ := strings.Cut(method, "/")
	if !slices.Contains(r.may, config.Relay(kind)) {
		return nil, &upstream.ServerError{Code: -32601, Message: fmt.Sprintf("%s is not relayed by the gateway", cmp.Or(kind, "this"))}
	}
	return r.Peer.Ask(ctx, method, params)
}
