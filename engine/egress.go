package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
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
	run := egress.Run{Call: w.Call().ID, Agent: w.Call().Agent, Class: w.Decision().Class, Said: saidOf(e.at().cfg.Egress)}
	if unasked.Is(w.Call()) { // of no call, but of something that the operator has run
		run.Call, run.Agent = "", w.Call().Tool
	}
	for _, text := range w.Confinement().Network.Hosts {
		p, err := host.ParsePattern(text)
		if err != nil {
			return nil, writ.Fail(writ.Internal, "the hosts of the call cannot be read", err)
		}
		run.Rules = append(run.Rules, egress.Rule{Host: p, At: text})
	}
	t := &told{e: e, call: run.Call, agent: run.Agent}
	run.Log = t.add
	pass := e.broker.Open(run)
	t.relay = pass.Serve(m)
	t.soon()
	return t, nil
}

// saidOf is what the operator says of hosts, the narrower before the wider.
func saidOf(said []config.Said) egress.Rules {
	var out egress.Rules
	for _, s := range said {
		out = append(out, egress.Rule{Host: s.Host, Class: s.Class, Ranges: s.Ranges, Blind: s.Unnamed, At: s.At})
	}
	return out
}

// told is what one run did outside, until it is written down. What cannot be written down
// does not go on (I3).
type told struct {
	e           *Engine
	call, agent string
	relay       *egress.Relay

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
	}
}

// soon writes down what there is, now and again.
func (t *told) soon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(toldWithin, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			t.write()
			t.timer.Reset(toldWithin)
		}
	})
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
		go t.relay.Close()
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
	err := t.relay.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.timer.Stop()
	t.write()
	return err
}
