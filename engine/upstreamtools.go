package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// addUpstreams adds the tools of the servers, as they are offered now. Like those in
// files they are suspended until a person has accepted them.
func (e *Engine) addUpstreams(r *rules, tools []*tool.Tool) ([]*tool.Tool, error) {
	var origins []upstream.Origin
	var reserved []string
	for _, t := range tools {
		reserved = append(reserved, t.Name)
	}
	offers := map[string]upstream.Offer{}
	servers := e.upstreams.all()
	for _, s := range servers {
		offer, ok := s.Offer()
		if !ok {
			continue
		}
		offers[s.name] = offer
		for _, t := range offer.Tools {
			origins = append(origins, s.origin(t))
		}
	}
	for _, s := range servers {
		for _, m := range methods {
			reserved = append(reserved, m.Of(s.name))
		}
	}
	names, refused := upstream.NewNames(origins, e.upstreams.names(), reserved...)
	r.refused, r.offers = refused, offers
	for _, s := range servers {
		made, refused, err := e.upstreams.tools(s, offers[s.name], names)
		if err != nil {
			return nil, err
		}
		r.refused = append(r.refused, refused...)
		for _, t := range made {
			tools = append(tools, t.Tool)
			r.defined[t.Name], r.files[t.Name] = t.Tool, fromServer+s.name
			if t.method {
				r.methods[t.Name] = true
			}
			if why := held(t.Tool, r.accepted); why != "" {
				r.held[t.Name] = why
			}
		}
	}
	return tools, nil
}

// offered is a tool that a server offers, or a method of it that counts as one.
type offered struct {
	*tool.Tool
	method bool
}

// tools are what a server's offer comes to, and what of it is not taken.
func (u *upstreams) tools(s *server, offer upstream.Offer, names *upstream.Names) (out []offered, refused []upstream.Refusal, err error) {
	for _, m := range methods {
		if !m.has(offer) {
			continue
		}
		made, err := u.methodTool(s, m)
		if err != nil {
			return nil, nil, err
		}
		s.governs(made)
		out = append(out, offered{made, true})
	}
	refused = slices.Clone(offer.Refused)
	for _, t := range offer.Tools {
		name, ok := names.Of(s.origin(t))
		if !ok {
			continue
		}
		if strings.HasPrefix(strings.ToLower(name), "writ") { // a model would take it for ours
			refused = append(refused, upstream.Refusal{Name: s.name + ": " + t.Name, Why: "names that begin with writ are writ's own"})
			continue
		}
		made, err := u.tool(s, t, name)
		if err != nil {
			refused = append(refused, upstream.Refusal{Name: s.name + ": " + t.Name, Why: err.Error()})
			continue
		}
		s.governs(made)
		out = append(out, offered{made, false})
	}
	return out, refused, nil
}

func (s *server) origin(t upstream.Tool) upstream.Origin {
	return upstream.Origin{Server: s.name, Tool: t.Name, Bare: s.cfg.Prefix == "none"}
}

// governs says of a tool what its operator says of the server. The action type of what
// only reads is the operator's word like all rules, and no part of the definition that a
// person accepts: nothing that a server says sets it, and whoever may write it could as
// well give the agent another autonomy.
func (s *server) governs(t *tool.Tool) {
	t.Server = s.reach()
	class, dangerous := t.Declared()
	s.counts(t, class, dangerous)
}

// counts gives a tool the action type of what only reads, where it counts as that.
func (s *server) counts(t *tool.Tool, class writ.Class, dangerous bool) {
	if class == writ.ClassReadOnly && !dangerous {
		t.Action = s.cfg.InForce().ReadAction
	}
}

// govern is governs for a tool of which a person said what it counts as.
func (u *upstreams) govern(t *tool.Tool, class writ.Class, dangerous bool) {
	if t.Server == nil {
		return
	}
	if s := u.find(t.Server.Name); s != nil {
		s.counts(t, class, dangerous)
	}
}

// fromServer begins the place of a definition that a server has, where others have a file.
const fromServer = "upstream "

func (u *upstreams) tool(s *server, t upstream.Tool, name string) (*tool.Tool, error) {
	d, err := upstream.Definition(s.name, t, upstream.DefinitionOptions{Name: name, At: s.at()})
	if err != nil {
		return nil, err
	}
	cacheable := upstream.Cacheable(t, s.cfg.Cacheable)
	return tool.New(d, func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		c := w.Call()
		key := upstream.CacheKey{Agent: c.Agent, Server: s.name, Definition: c.Definition, Args: c.Args}
		if cacheable {
			if raw, ok := u.cache.Get(key); ok {
				return t.Result(raw, 0)
			}
		}
		name, err := wire.Plain(t.Name)
		if err != nil {
			return writ.Result{}, err
		}
		raw, err := u.asks(ctx, s, "tools/call", map[string]json.RawMessage{"name": name, "arguments": json.RawMessage(c.Args)})
		if err != nil {
			return serverSaid(err)
		}
		if upstream.ResultType(raw) == "input_required" {
			return wantsInput(raw), nil
		}
		if cacheable {
			u.cache.Put(key, raw)
		}
		return t.Result(raw, 0)
	})
}
