package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/git"
	"github.com/writ-run/writ/tool/web"
	"github.com/writ-run/writ/wire"
)

// outside is the engine as the tools over connections see it.
type outside struct{ e *Engine }

// Connection is the one that a call was decided over: of the rules in force, or of the
// ones just before. Another one of the same name is not it.
func (o outside) Connection(w writ.Writ) (external.Connection, error) {
	decided := w.Confinement().Connection
	for _, r := range []*rules{o.e.rules.Load(), o.e.prior.Load()} {
		if r == nil || decided == nil {
			continue
		}
		if c, ok := r.cfg.Connections[decided.Name]; ok && c.Digest == decided.Digest {
			return c, nil
		}
	}
	return external.Connection{}, writ.Fail(writ.Changed, "the connection changed since the call was decided; make it again", nil)
}

func (o outside) Reach(w writ.Writ) (external.Way, error) { return o.e.reach(w) }

func (o outside) Own(what, url string) (external.Way, error) { return o.e.to(what, url) }

// to is the way to one address that the operator wrote.
func (e *Engine) to(what, url string) (*Way, error) {
	at, err := config.Endpoint(url)
	if err != nil {
		return nil, writ.Fail(writ.Invalid, err.Error(), nil)
	}
	return e.Reach(what, at)
}

func (o outside) Secrets() secret.Set { return o.e.secrets() }

// connected are the addresses that the operator meant who wrote a connection to one, or
// to this machine; see written.
func connected(c *writ.Connection, normal string) []netip.Prefix {
	if c == nil {
		return nil
	}
	to, err := config.Endpoint(c.URL)
	if err != nil || to.String() != normal {
		return nil
	}
	return written(to.Host)
}

// connections are what deciding needs of them.
func (r *rules) connections() map[string]decide.Connection {
	out := make(map[string]decide.Connection, len(r.cfg.Connections))
	for name, c := range r.cfg.Connections {
		out[name] = decide.Connection{
			Host: c.Host, Posts: web.Posts(c.Type), Lends: c.Type == external.Git, Sensitive: r.cfg.Sensitivity(name), Agents: r.cfg.Users(name),
			Reach: writ.Connection{Name: name, URL: c.Base, Auth: c.Auth.String(), Environment: string(r.cfg.File.Connections[name].Environment), Digest: c.Digest},
		}
	}
	return out
}

// connect finds where the connections that a call names lead. A request that could not
// be made is refused here, before a person is asked about it.
func (r *rules) connect(call *writ.Call) {
	for i := range call.Targets {
		t := &call.Targets[i]
		if t.Kind != writ.TargetConnection {
			continue
		}
		c, ok := r.cfg.Connections[t.Value]
		if !ok {
			t.Problem = r.noConnection(call.Tool, t.Value, call.Root())
			continue
		}
		t.Host = c.Host
		if !takes(call.Tool, c.Type) {
			t.Problem = fmt.Sprintf("connection %s is not for %s; its type is %s, which is for %s", t.Value, call.Tool, c.Type, strings.Join(takers(c.Type), ", "))
		}
		if call.Tool == external.Name && t.Problem == "" {
			_, err := request(c, call.Args)
			call.Targets = append(call.Targets, impossible(err)...)
		}
	}
	call.Targets = append(call.Targets, r.lent(call)...)
}

// takes says whether a tool goes over connections of a type.
func takes(toolName, kind string) bool { return slices.Contains(takers(kind), toolName) }

// takers are the tools that connections of a type are for.
func takers(kind string) []string {
	switch kind {
	case external.HTTP:
		return []string{external.Name}
	case external.Git:
		return git.Outward
	}
	return []string{web.SearchName}
}

// usedBy says whether a connection is for an agent at the top.
func (r *rules) usedBy(name, top string) bool {
	users := r.cfg.Users(name).V
	return len(users) == 0 || slices.Contains(users, top)
}

func (r *rules) noConnection(toolName, name, top string) string {
	var names []string
	for n := range r.cfg.Connections {
		if takes(toolName, r.cfg.Connections[n].Type) && r.usedBy(n, top) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "there is no connection that this agent may use"
	}
	return fmt.Sprintf("there is no connection %q; there are %s%s", name, strings.Join(names, ", "), spell.Hint(name, names))
}

// request is what arguments come to over a connection, in one line.
func request(c external.Connection, args string) (string, error) {
	a, err := external.ParseArgs(args)
	if err != nil {
		return "", err
	}
	req, _, err := c.Request(a)
	if err != nil {
		return "", err
	}
	return req.Method + " " + req.URL.String(), nil
}

// requested is the request of a call, as people see it and agree to it: method, address,
// and of the body, which is among the arguments in full, how long it is and its digest.
func (e *Engine) requested(c writ.Call) []approval.Input {
	if c.Tool != external.Name {
		return nil
	}
	a, err := external.ParseArgs(c.Args)
	if err != nil {
		return nil
	}
	line, err := request(e.at().cfg.Connections[a.Connection], c.Args)
	if err != nil {
		return nil // it is denied
	}
	in := approval.Input{Path: line, Note: "no body"}
	if a.Body != "" {
		sum := sha256.Sum256([]byte(a.Body))
		in = approval.Input{Path: line, Bytes: int64(len(a.Body)), SHA256: hex.EncodeToString(sum[:])}
	}
	return []approval.Input{in}
}

// Connection is a connection as the operator sees it: what is in force, where it is
// written, and of credentials where they are kept.
type Connection struct {
	config.Connection
	Name, Where string
	Auth        string
	Refs        []string
	Digest      writ.Digest
}

// Connections lists them by name.
func (e *Engine) Connections() []Connection {
	cfg := e.at().cfg
	var out []Connection
	for _, name := range sortedNames(cfg.Connections) {
		out = append(out, connectionOf(cfg, name))
	}
	return out
}

// Connection shows one.
func (e *Engine) Connection(name string) (Connection, error) {
	cfg := e.at().cfg
	if _, ok := cfg.Connections[name]; !ok {
		known := sortedNames(cfg.Connections)
		return Connection{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no connection %q; 'writ connection list' shows them%s", name, spell.Hint(name, known)), nil)
	}
	return connectionOf(cfg, name), nil
}

func connectionOf(cfg *config.Config, name string) Connection {
	c := cfg.Connections[name]
	out := Connection{Connection: cfg.File.Connections[name].InForce(), Name: name, Where: cfg.At(strict.Member("connections", name)), Auth: c.Auth.String(), Digest: c.Digest}
	for _, r := range c.Auth.Refs() {
		out.Refs = append(out.Refs, r.String())
	}
	return out
}

// ConnectionTest is how an attempt to use a connection went.
type ConnectionTest struct {
	Steps  []string
	Status int    // of the other side's answer
	Failed string // what went wrong then; empty: nothing
}

// TestConnection looks the secrets of a connection up and asks its address, with them,
// for nothing but an answer. It is the operator's own act, so nobody's level or list is
// asked; it goes where the operator wrote, and is recorded.
func (e *Engine) TestConnection(ctx context.Context, name string) (ConnectionTest, error) {
	if _, err := e.Connection(name); err != nil {
		return ConnectionTest{}, err
	}
	steps, status, err := e.external.Test(ctx, e.at().cfg.Connections[name])
	out := ConnectionTest{Steps: steps, Status: status}
	if err != nil {
		e.log.Warn("a connection could not be used", "connection", name, "err", err)
		_, out.Failed = writ.Public(err)
	}
	return out, e.ledger.Append(ctx, ledger.Entry{Kind: "connection.tested", Data: []wire.Field{
		wire.Str("connection", name), wire.Int("status", int64(status)), wire.Bool("ok", err == nil),
	}})
}
