package engine

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/ledger"
)

// metrics are what is counted since the daemon started. Every label is a word of this
// program or of the operator's configuration: no agent can make one up, and none appears
// only once something has happened.
type metrics struct {
	began          time.Time
	egress         counters // by verdict
	sent, received *atomic.Int64
	effects        counters // of decisions
	outcomes       counters // of calls
}

// counters are as many as there are words, and one for any other.
type counters map[string]*atomic.Int64

func newCounters(words ...string) counters {
	c := counters{other: new(atomic.Int64)}
	for _, w := range words {
		c[w] = new(atomic.Int64)
	}
	return c
}

const other = "other"

func (c counters) add(word string) {
	n := c[word]
	if n == nil {
		n = c[other]
	}
	n.Add(1)
}

// kinds are how a call can be refused or fail.
var kinds = []writ.Kind{
	writ.Invalid, writ.Unauthenticated, writ.NotFound, writ.Denied, writ.Pending, writ.Rejected, writ.Expired, writ.Stopped, writ.Cancelled, writ.Changed, writ.Conflict,
	writ.TooLarge, writ.SandboxUnavailable, writ.StoreUnavailable, writ.Unknown, writ.Internal,
}

func newMetrics() metrics {
	m := metrics{began: time.Now(), sent: new(atomic.Int64), received: new(atomic.Int64)}
	verdicts, outcomes := []string{}, []string{"ok", "tool_error"}
	for _, v := range egress.Verdicts() {
		verdicts = append(verdicts, string(v))
	}
	for _, k := range kinds {
		outcomes = append(outcomes, string(k))
	}
	m.egress, m.outcomes = newCounters(verdicts...), newCounters(outcomes...)
	m.effects = newCounters(writ.Deny.String(), writ.Ask.String(), writ.Allow.String())
	return m
}

// left counts what left, or was not let through.
func (m metrics) left(ev egress.Event) {
	m.egress.add(string(ev.Verdict))
	if ev.Kind == "connect" { // requests are sent on connections, which are counted whole
		m.sent.Add(ev.Sent)
		m.received.Add(ev.Got)
	}
}

// recorder is the gate's Recorder: the desk, counted.
type recorder struct{ e *Engine }

func (r recorder) Record(ctx context.Context, ev writ.Event) error {
	err := r.e.desk.Record(ctx, ev)
	if ev.Kind != writ.EventFinished && err == nil {
		r.e.metrics.effects.add(ev.Decision.Effect.String())
	}
	if ev.Kind == writ.EventFinished || ev.Kind == writ.EventRefused && err == nil {
		r.e.metrics.outcomes.add(ledger.Outcome(ev))
	}
	return err
}

// Metrics writes what was counted and what there is now, as Prometheus reads it.
func (e *Engine) Metrics(ctx context.Context, w io.Writer) error {
	waiting, err := e.store.Waiting(ctx, e.ledger.Now())
	if err != nil {
		return err
	}
	boxes := map[string]int64{"running": 0, "idle": 0}
	for _, b := range e.boxes.List() {
		if b.Call == "" {
			boxes["idle"]++
		} else {
			boxes["running"]++
		}
	}
	m, p := e.metrics, &page{}
	p.family("writ_build_info", "gauge", "Which writ this is.").sample(1, "version", writ.Version())
	p.family("writ_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.").sample(m.began.Unix())
	p.family("writ_decisions_total", "counter", "Calls that were started or refused, by what was decided.").each("effect", m.effects)
	p.family("writ_calls_total", "counter", "Calls that ended, by outcome: ok, tool_error, or the kind of the refusal or failure.").each("outcome", m.outcomes)
	p.family("writ_approvals_pending", "gauge", "Requests that wait for a person.").sample(int64(waiting))
	p.family("writ_sandboxes", "gauge", "Sandboxes there are: with a call in them, and kept for the next.")
	for _, state := range []string{"idle", "running"} {
		p.sample(boxes[state], "state", state)
	}
	p.family("writ_egress_events_total", "counter", "Connections, names and requests that were let through or refused, by verdict.").each("verdict", m.egress)
	p.family("writ_egress_sent_bytes_total", "counter", "Bytes that left.").sample(m.sent.Load())
	p.family("writ_egress_received_bytes_total", "counter", "Bytes that came in answer.").sample(m.received.Load())
	e.webhookMetrics(p)
	_, err = io.Copy(w, strings.NewReader(p.String()))
	return err
}

func (e *Engine) webhookMetrics(p *page) {
	all := e.Webhooks()
	p.family("writ_webhook_deliveries_total", "counter", "Attempts to tell a webhook of something, by result.")
	for _, w := range all {
		p.sample(w.Taken, "webhook", w.Name, "result", "taken")
		p.sample(w.Failed, "webhook", w.Name, "result", "failed")
	}
	p.family("writ_webhook_failing", "gauge", "1 where a webhook fails or was given up.")
	for _, w := range all {
		failing := int64(0)
		if w.Failing != "" {
			failing = 1
		}
		p.sample(failing, "webhook", w.Name)
	}
}
