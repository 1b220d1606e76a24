package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/upstream"
)

// Upstream is a server behind the gateway as an operator sees it. Values that look like
// secrets are hidden. What a server says of its tools is safe to show; Failed is as it was
// said, on several lines, and is to be made safe where it is shown.
type Upstream struct {
	Name   string
	Where  string          // where it is written: file and line
	Server config.Upstream // its configuration, as it may be shown
	Box    string          // the sandbox its program is in; empty: the best there is

	Auth      string            // how it is proven, by reference
	SecretEnv map[string]string // references of its variables
	Secrets   []string          // all references

	State    string // idle, starting, reading, ready, failed, closed
	Since    string
	Failed   string   // why it is not connected
	Outside  []string // where it failed: paths that its command names and its box does not reach
	Hints    []string // what else is known that may be why, with what to do
	Next     string   // when it is tried again
	Failures int      // in a row
	Version  string   // of the protocol

	Tools     []UpstreamTool
	Changes   []Change // of what the server is, since a person accepted tools of it
	Refused   []upstream.Refusal
	Resources int // with patterns of them
	Prompts   int
	Remedy    string // what lets an agent use its tools, where none may
}

// UpstreamTool is one of its tools, or a method of it that counts as one.
type UpstreamTool struct {
	Name      string
	Title     string
	Class     string // proposed from its annotations
	Dangerous bool
	State     string // accepted, new, changed, disabled
	Digest    string
	Method    bool     // it is a method of the server's, such as reading a resource
	Action    string   // type of its calls
	Asks      []string // why calls of it ask a person, by agents
}

// reading is the state of a server that is ready, and has something to offer that the
// rules do not know of yet.
const reading = "reading"

// Upstreams lists the servers by name.
func (e *Engine) Upstreams() []Upstream {
	var out []Upstream
	for _, s := range e.upstreams.all() {
		out = append(out, e.showUpstream(s))
	}
	return out
}

// Upstream shows one.
func (e *Engine) Upstream(name string) (Upstream, error) {
	s, err := e.upstreams.named(name)
	if err != nil {
		return Upstream{}, err
	}
	return e.showUpstream(s), nil
}

func (u *upstreams) named(name string) (*server, error) {
	if s := u.find(name); s != nil {
		return s, nil
	}
	var known []string
	for _, s := range u.all() {
		known = append(known, s.name)
	}
	return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no server %q%s; 'writ upstream list' shows them", clip(name), spell.Hint(name, known)), nil)
}

func (e *Engine) showUpstream(s *server) Upstream {
	r, state := e.at(), s.State()
	offer := r.offers[s.name]
	confine, _ := e.upstreams.confinement(s)
	v := Upstream{
		Name: s.name, Where: r.cfg.At("upstreams." + s.name), Server: s.cfg.Shown(), Box: confine.Backend,
		State: string(state.Phase), Since: stamp(state.Since), Next: stamp(state.Next), Failures: state.Failures, Version: cmp.Or(state.Version, offer.Version),
		Resources: len(offer.Resources) + len(offer.Templates), Prompts: len(offer.Prompts),
	}
	at := s.at()
	v.Auth, v.SecretEnv = at.Auth, at.SecretEnv
	for _, ref := range s.secret.refs() {
		v.Secrets = append(v.Secrets, ref.String())
	}
	if now, ok := s.Offer(); ok && state.Phase == upstream.Ready && now.Digest != offer.Digest {
		v.State = reading
	}
	if state.Err != nil {
		v.Failed, v.Outside = s.why(state.Err), s.outside()
	}
	v.Hints = e.hints(s, v.Failed, s.begun)
	for _, name := range slices.Sorted(maps.Keys(r.defined)) {
		if r.files[name] == fromServer+s.name {
			v.Tools = append(v.Tools, r.upstreamTool(name))
			if v.Changes == nil {
				v.Changes = r.moved(s, name)
			}
		}
	}
	v.Remedy = r.unused(s, v.Tools)
	v.Refused = slices.Clone(offer.Refused)
	for _, x := range r.refused {
		if own, ours := strings.CutPrefix(x.Name, s.name+": "); ours {
			v.Refused = append(v.Refused, upstream.Refusal{Name: "tool " + own, Why: x.Why, With: x.With})
		}
	}
	return v
}

func (r *rules) upstreamTool(name string) UpstreamTool {
	t, was := r.defined[name], r.accepted[name]
	v := UpstreamTool{
		Name: name, Title: cmp.Or(t.Title, headline(t.Description)), Class: t.Class.String(), Dangerous: t.Dangerous, State: "accepted", Digest: t.Digest.String(),
		Method: r.methods[name], Action: string(t.Action), Asks: r.asks(t),
	}
	switch {
	case was.Digest == "":
		v.State = "new"
	case was.Digest != v.Digest:
		v.State = "changed"
	case r.cfg.File.Tools[name].Disabled:
		v.State = "disabled"
	}
	return v
}

// headline is the beginning of a text that is safe to show already: spelling it out once
// more would make it unreadable.
func headline(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if short := []rune(line); len(short) > 80 {
		line, more = string(short[:79]), true
	}
	if line = strings.ReplaceAll(line, "\t", " "); more {
		line += "…"
	}
	return line
}

// why is an error of a server's for the operator, without what its address holds.
func (s *server) why(err error) string {
	text := err.Error()
	if s.cfg.URL != "" {
		text = strings.ReplaceAll(text, s.cfg.URL, config.ShownURL(s.cfg.URL))
	}
	const most = 4 << 10
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(ledger.TimeFormat)
}
