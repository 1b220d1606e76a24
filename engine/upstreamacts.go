package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// UpstreamTest is how an attempt to reach a server went.
type UpstreamTest struct {
	Steps  []string // that were taken, in order
	Failed string   // what went wrong then; empty: nothing did
	// Outside are, where it failed, paths that its command names and its box does not reach.
	Outside []string
	Hints   []string // what else is known that may be why, with what to do
	Tools   int      // it offers, with methods of it that count as tools

	// Of those, by the definitions that people accepted: how many are as they were, which
	// are not, which nobody has accepted; and which were there and are not offered.
	Accepted           int
	Changed, New, Gone []string
}

// TestUpstream connects to a server anew, beside the connection that is kept, and reads
// all it offers. A server that was waiting for its next attempt is then tried at once,
// and one that is connected is asked again what it has.
func (e *Engine) TestUpstream(ctx context.Context, name string) (UpstreamTest, error) {
	s, err := e.upstreams.named(name)
	if err != nil {
		return UpstreamTest{}, err
	}
	var out UpstreamTest
	began := time.Now()
	took := make(chan string, 1)
	spec := e.upstreams.spec(s)
	spec.OnChange, spec.Options.Notice = nil, func(string, json.RawMessage) {}
	spec.Connect = func(ctx context.Context, o upstream.Options) (*upstream.Conn, error) {
		conn, err := e.upstreams.connect(ctx, s, o)
		if err == nil {
			select {
			case took <- fmt.Sprintf("%s; it speaks protocol %s", s.reached(), conn.Version()):
			default:
			}
		}
		return conn, err
	}
	probe, err := upstream.Start(spec)
	if err != nil {
		return UpstreamTest{}, err
	}
	defer probe.Close()
	within, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	err = probe.Ready(within)
	select {
	case step := <-took:
		out.Steps = append(out.Steps, step)
	default:
	}
	if err != nil {
		out.Failed, out.Outside = s.why(cmp.Or(probe.State().Err, err)), s.outside()
		out.Hints = e.hints(s, out.Failed, began)
		return out, nil
	}
	offer, _ := probe.Offer()
	if err := e.compare(&out, s, offer); err != nil {
		return UpstreamTest{}, err
	}
	if kept, ok := s.Offer(); ok && s.State().Phase == upstream.Ready && kept.Digest != offer.Digest {
		out.Steps = append(out.Steps, "the connection that is kept offered something else, and is read again; where that does not help: writ upstream restart "+s.name)
	}
	return out, e.upstreams.again(s)
}

// compare says what a server offers, and how that stands to what people accepted of it.
func (e *Engine) compare(out *UpstreamTest, s *server, offer upstream.Offer) error {
	r := e.at()
	var origins []upstream.Origin
	var reserved []string
	for _, t := range offer.Tools {
		origins = append(origins, s.origin(t))
	}
	for _, t := range r.catalog.All() {
		if r.files[t.Name] != fromServer+s.name {
			reserved = append(reserved, t.Name)
		}
	}
	names, clash := upstream.NewNames(origins, e.upstreams.names(), reserved...)
	made, refused, err := e.upstreams.tools(s, offer, names)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, t := range made {
		there[t.Name] = true
		switch was := r.accepted[t.Name].Digest; was {
		case t.Digest.String():
			out.Accepted++
		case "":
			out.New = append(out.New, t.Name)
		default:
			out.Changed = append(out.Changed, t.Name)
		}
	}
	for name, was := range r.accepted {
		if of := madeOf(was); of.Server == s.name && !there[name] && of.Name != "" && upstream.Wanted(of.Name, s.cfg.Enabled, s.cfg.Disabled) {
			out.Gone = append(out.Gone, name)
		}
	}
	slices.Sort(out.New)
	slices.Sort(out.Changed)
	slices.Sort(out.Gone)
	out.Tools = len(made)
	out.Steps = append(out.Steps,
		fmt.Sprintf("it offers %d tools, %d resources, %d prompts; %d things are refused", out.Tools, len(offer.Resources)+len(offer.Templates), len(offer.Prompts), len(refused)+len(clash)),
		fmt.Sprintf("%d tools are as people accepted them%s%s%s", out.Accepted, listed("changed", out.Changed), listed("new", out.New), listed("not offered any more", out.Gone)))
	return nil
}

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s: %s", what, strings.Join(names, ", "))
}

// RestartUpstream ends a server's process, or its connection, and begins anew. Calls that
// it has not answered fail. Like ending a box it needs nobody's passphrase: what people
// accepted is held against what it offers then.
func (e *Engine) RestartUpstream(ctx context.Context, name string) (Upstream, error) {
	s, err := e.upstreams.named(name)
	if err != nil {
		return Upstream{}, err
	}
	fresh, err := e.upstreams.renew(s)
	if err != nil {
		return Upstream{}, err
	}
	within, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	if fresh.Ready(within) == nil {
		if err := e.refresh(context.WithoutCancel(ctx)); err != nil {
			return Upstream{}, err
		}
	}
	return e.showUpstream(fresh), nil
}

// renew ends a server and starts it again, as it is configured.
func (u *upstreams) renew(s *server) (*server, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.servers[s.name] != s {
		return nil, writ.Fail(writ.Conflict, fmt.Sprintf("the server %s was changed or restarted just now; look at it: writ upstream show %s", s.name, s.name), nil)
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	fresh, err := u.start(s.name, s.cfg)
	if err != nil {
		return nil, err
	}
	u.servers[s.name] = fresh
	return fresh, nil
}

// reached is what was done to connect.
func (s *server) reached() string {
	if s.cfg.URL != "" {
		return "connected to " + config.ShownURL(s.cfg.URL)
	}
	return "started " + s.cfg.Command[0]
}

// patience is how long connecting and reading everything may take.
func (s *server) patience() time.Duration {
	c := s.cfg.InForce()
	return time.Duration(c.ConnectTimeout + c.CallTimeout)
}

// again has a server that answers read once more, or connected where it is not.
func (u *upstreams) again(s *server) error {
	if s.State().Phase != upstream.Failed {
		s.Refresh()
		return nil
	}
	if _, err := u.renew(s); writ.KindOf(err) != writ.Conflict { // the configuration changed meanwhile
		return err
	}
	return nil
}

// AcceptUpstream lets definitions of a server be used as they were shown: each by its
// name with the digest of what a person saw. It takes all of them or none, with one
// passphrase.
func (e *Engine) AcceptUpstream(ctx context.Context, name string, digests map[string]string, cred Credentials) error {
	if _, err := e.upstreams.named(name); err != nil {
		return err
	}
	if len(digests) == 0 {
		return writ.Fail(writ.Invalid, "name the tools to accept, each with the digest of its definition as it was shown", nil)
	}
	if err := e.at().acceptable(name, digests); err != nil {
		return err
	}
	by, err := e.proven(ctx, cred, "operate")
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // whoever asked may go; what was begun is carried out
	e.changing.Lock()
	defer e.changing.Unlock()
	r := e.at()
	if err := r.acceptable(name, digests); err != nil { // once more: the server may have been quicker
		return err
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, "operate"); err != nil {
			return ledger.Entry{}, err
		}
		var entries []ledger.Entry
		for _, t := range slices.Sorted(maps.Keys(digests)) {
			if err := tx.AddDefinition(store.Definition{Name: t, Digest: digests[t], Body: r.defined[t].Canonical(), Accepted: e.ledger.Now(), By: by.Name}); err != nil {
				return ledger.Entry{}, err
			}
			entries = append(entries, ledger.Entry{Kind: "tool.accepted", Person: by.Name, Data: []wire.Field{wire.Str("tool", t), wire.Str("definition", digests[t])}})
		}
		entries[0].Also = entries[1:]
		return entries[0], nil
	})
	if err != nil {
		return err
	}
	return e.change(ctx, r.cfg, r.loaded)
}

// acceptable refuses what is not a definition of the server, not as it was shown, or
// accepted already. All that changed are named at once.
func (r *rules) acceptable(server string, digests map[string]string) error {
	var changed []string
	for _, t := range slices.Sorted(maps.Keys(digests)) {
		switch d := r.defined[t]; {
		case d == nil || r.files[t] != fromServer+server:
			return writ.Fail(writ.NotFound, fmt.Sprintf("the server %s has no tool %q; 'writ upstream show %s' lists them", server, clip(t), server), nil)
		case d.Digest.String() != digests[t]:
			changed = append(changed, t)
		case r.accepted[t].Digest == digests[t]:
			return writ.Fail(writ.Conflict, fmt.Sprintf("tool %s is accepted as it is already, and nothing was changed; leave it out", t), nil)
		}
	}
	if len(changed) > 0 {
		return writ.Fail(writ.Changed, fmt.Sprintf("what was shown is not what there is any more (%s), and nothing was accepted; look again: writ upstream accept %s", strings.Join(changed, ", "), server), nil)
	}
	return nil
}
