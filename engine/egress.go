package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/sshagent"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/unasked"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// outlet is the way out of boxes: what a writ says of hosts, and what the operator says of
// the same ones.
func (e *Engine) outlet(w writ.Writ, m sandbox.Mouth) (io.Closer, error) {
	if e.ledger == nil { // boxes that are tried out (Sandboxes): there is nobody to tell, so nothing gets out, and nothing is signed
		return struct {
			io.Closer
			*sshagent.Agent
		}{e.broker.Open(egress.Run{}).Serve(m), &sshagent.Agent{}}, nil
	}
	pass, t, err := e.pass(w)
	if err != nil {
		return nil, err
	}
	authority, err := pass.Authority()
	if err != nil {
		return nil, err
	}
	relay := pass.Serve(m)
	t.end = func() { relay.Close() }
	way := out{t, authority}
	if len(w.Confinement().SSH) == 0 {
		return way, nil
	}
	signs, err := e.signer(w, t)
	if err != nil {
		return nil, errors.Join(err, way.Close())
	}
	return signing{way, signs}, nil
}

// out is the way out of one box.
type out struct {
	*told
	authority []byte
}

// signing is the way out of one whose programs sign in by ssh. It implements sandbox.Agent.
type signing struct {
	out
	*sshagent.Agent
}

// Authority implements sandbox.Authority.
func (o out) Authority() []byte { return o.authority }

// Way is how something in this process reaches out: by HTTP, or by a connection.
type Way struct {
	*egress.Pass
	told *told
}

// Close ends what is open, and writes down the rest.
func (w *Way) Close() error {
	w.told.e.ways.Delete(w)
	return w.told.Close()
}

// reach is the way out of a call that runs in this process, to the hosts of its writ.
func (e *Engine) reach(w writ.Writ) (*Way, error) {
	pass, t, err := e.pass(w)
	if err != nil {
		return nil, err
	}
	t.end = func() { pass.Close() }
	return &Way{pass, t}, nil
}

// pass is what a writ lets through.
func (e *Engine) pass(w writ.Writ) (*egress.Pass, *told, error) {
	said := saidOf(e.at().cfg.Egress) // as it was when the call was decided
	run := egress.Run{Call: w.Call().ID, Agent: w.Call().Agent, Class: w.Decision().Class, Opens: opening, Said: func() egress.Rules { return said }}
	if unasked.Is(w.Call()) { // of no call, but of something that the operator has run
		run.Call, run.Agent = "", w.Call().Tool
	}
	net := w.Confinement().Network
	for i, text := range slices.Concat(net.Hosts, net.Reads) {
		p, err := host.ParsePattern(text)
		if err != nil {
			return nil, nil, writ.Fail(writ.Internal, "the hosts of the call cannot be read", err)
		}
		rule, err := e.ofGit(w, egress.Rule{Host: p, Ranges: connected(w.Confinement().Connection, text), Reads: i >= len(net.Hosts), At: text})
		if err != nil {
			return nil, nil, err
		}
		run.Rules = append(run.Rules, rule)
	}
	t := &told{e: e, call: run.Call, agent: run.Agent}
	run.Log = t.add
	return e.broker.Open(run), t, nil
}

// Reach is the way to hosts that the operator wrote, for what the daemon does on its own
// account: what says whose it is in the log. It is closed with the engine, if not before.
func (e *Engine) Reach(what string, hosts ...host.Endpoint) (*Way, error) {
	t := &told{e: e, agent: what}
	run := egress.Run{Agent: what, Class: writ.ClassWrite, Log: t.add, Opens: opening, Said: func() egress.Rules { return saidOf(e.at().cfg.Egress) }}
	for _, to := range hosts {
		p, err := host.ParsePattern(to.String())
		if err != nil {
			return nil, writ.Fail(writ.Invalid, err.Error(), nil)
		}
		run.Rules = append(run.Rules, egress.Rule{Host: p, Ranges: written(to.Host), At: what})
	}
	pass := e.ownBroker.Open(run)
	t.end = func() { pass.Close() }
	w := &Way{pass, t}
	e.ways.Store(w, true)
	return w, nil
}

// written are the addresses that somebody who wrote a host meant, where they are not public:
// the one that was written, and this machine's own for localhost. Any other name has to have
// public ones, whoever wrote it: what it leads to is for somebody else to say.
func written(h host.Host) []netip.Prefix {
	if a, ok := h.Addr(); ok {
		return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
	}
	if h.String() == "localhost" {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return nil
}

// saidOf is what the operator says of hosts, the narrower before the wider.
func saidOf(said []config.Said) egress.Rules {
	var out egress.Rules
	for _, s := range said {
		out = append(out, egress.Rule{Host: s.Host, Class: s.Class, Ranges: s.Ranges, IPv6: s.IPv6, Blind: s.Unnamed, At: s.At})
	}
	return out
}

// told is what one run did outside, until it is written down. What cannot be written down
// does not go on (I3).
type told struct {
	e           *Engine
	call, agent string
	end         func() // ends what is open

	mu      sync.Mutex
	pending []store.Egress
	timer   *time.Timer
	over    bool
}

const (
	toldAtOnce = 256                    // how much is held back
	toldWithin = 500 * time.Millisecond // and how long
)

func (t *told) add(ev egress.Event) {
	ev = ev.Kept() // what signs for a call tells of itself
	t.e.metrics.left(ev)
	row := store.Egress{
		Call: ev.Call, Agent: ev.Agent, Kind: ev.Kind, Host: ev.Host, Verdict: string(ev.Verdict), Class: ev.Class, Rule: ev.Rule, Detail: ev.Detail,
		At: ev.At.UTC().Format(ledger.TimeFormat), Sent: ev.Sent, Received: ev.Got, Micros: ev.Took.Microseconds(),
	}
	if ev.Address.IsValid() {
		row.Address = ev.Address.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, row)
	if len(t.pending) >= toldAtOnce {
		t.write()
	} else if t.timer == nil && !t.over {
		t.timer = time.AfterFunc(toldWithin, t.flush)
	}
}

func (t *told) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	t.write()
}

// write puts what is pending into the store, and its digest into the ledger. Whoever calls
// it holds the lock.
func (t *told) write() {
	rows := t.pending
	if len(rows) == 0 {
		return
	}
	t.pending = nil
	err := t.e.ledger.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		return t.entry(rows), tx.AddEgress(rows)
	})
	if err != nil {
		t.e.log.Error("what a call did outside could not be recorded; its connections are ended", "call", t.call, "err", err)
		go t.end()
	}
}

func (t *told) entry(rows []store.Egress) ledger.Entry {
	h := sha256.New()
	var refused, sent, received int64
	for _, r := range rows {
		fmt.Fprintf(h, "%q %q %q %q %d %d\n", r.Kind, r.Host, r.Address, r.Verdict, r.Sent, r.Received)
		sent, received = sent+r.Sent, received+r.Received
		if r.Verdict != string(egress.Allowed) {
			refused++
		}
	}
	return ledger.Entry{Kind: "egress", Call: t.call, Agent: t.agent, Data: []wire.Field{
		wire.Int("events", int64(len(rows))), wire.Int("refused", refused), wire.Int("sent", sent), wire.Int("received", received),
		wire.Str("destinations", hex.EncodeToString(h.Sum(nil))),
	}}
}

// Close ends the way out, and writes down the rest.
func (t *told) Close() error {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.write()
	return nil
}
