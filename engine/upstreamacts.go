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
	Tools  int      // it offers
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
		out.Failed = s.why(cmp.Or(probe.State().Err, err))
		return out, nil
	}
	offer, _ := probe.Offer()
	out.Tools = len(offer.Tools)
	out.Steps = append(out.Steps, fmt.Sprintf("it offers %d tools, %d resources and %d prompts; %d things are refused",
		len(offer.Tools), len(offer.Resources)+len(offer.Templates), len(offer.Prompts), len(offer.Refused)))
	return out, e.upstreams.again(s)
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
	return cmp.Or(time.Duration(s.cfg.ConnectTimeout), 10*time.Second) + cmp.Or(time.Duration(s.cfg.CallTimeout), 30*time.Second)
}

// again has a server that answers read once more, or connected where it is not.
func (u *upstreams) again(s *server) error {
	if s.State().Phase != upstream.Failed {
		s.Refresh()
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.servers[s.name] != s { // the configuration changed meanwhile
		return nil
	}
	fresh, err := u.start(s.name, s.cfg)
	if err != nil {
		return err
	}
	u.servers[s.name] = fresh
	return s.end()
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
