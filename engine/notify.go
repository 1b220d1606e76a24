package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/notify"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// webhooks are those who are told what happens to calls.
type webhooks struct {
	e *Engine

	mu  sync.Mutex
	all map[string]*webhook
}

// webhook is one of them, as it is configured.
type webhook struct {
	*notify.Courier
	cfg config.Webhook
	is  string // how it is configured, to tell whether that changed
	way *Way
}

func (w *webhook) Close() error { return errors.Join(w.Courier.Close(), w.way.Close()) }

// keep starts the webhooks of a configuration, and ends those that are not in it any more,
// or not so. What is in it anew is told of what happens from here on.
func (h *webhooks) keep(ctx context.Context, cfg *config.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*webhook{}
	}
	wanted := cfg.File.Approvals.Webhooks
	var errs []error
	for name, w := range h.all {
		if now, there := wanted[name]; !there || configured(now, cfg) != w.is {
			errs = append(errs, w.Close())
			delete(h.all, name)
		}
	}
	from, err := h.settle(ctx, wanted)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for name, now := range wanted {
		if h.all[name] != nil {
			continue
		}
		w, err := h.start(cfg, from[name], now)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", name, err))
			continue
		}
		h.all[name] = w
	}
	return errors.Join(errs...)
}

// configured is everything that a webhook rests on.
func configured(w config.Webhook, cfg *config.Config) string {
	return fmt.Sprintf("%q %q", w.InForce(), cfg.File.Approvals.Address)
}

// settle has the store know of those that are wanted, and of no others, and says how far
// each is.
func (h *webhooks) settle(ctx context.Context, wanted map[string]config.Webhook) (map[string]store.Webhook, error) {
	known, err := h.known(ctx)
	if err != nil {
		return nil, err
	}
	for name := range known {
		if _, there := wanted[name]; there {
			continue
		}
		err := h.e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
			return said("webhook.removed", name), tx.DropWebhook(name)
		})
		if err != nil {
			return nil, err
		}
	}
	for name := range wanted {
		if _, there := known[name]; there {
			continue
		}
		err := h.e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
			_, err := tx.AddWebhook(name)
			return said("webhook.added", name), err
		})
		if err != nil {
			return nil, err
		}
	}
	return h.known(ctx)
}

func (h *webhooks) known(ctx context.Context) (map[string]store.Webhook, error) {
	all, err := h.e.store.Webhooks(ctx)
	out := map[string]store.Webhook{}
	for _, w := range all {
		out[w.Name] = w
	}
	return out, err
}

func said(kind, name string, more ...wire.Field) ledger.Entry {
	return ledger.Entry{Kind: kind, Data: append([]wire.Field{wire.Str("webhook", name)}, more...)}
}

func (h *webhooks) start(cfg *config.Config, from store.Webhook, as config.Webhook) (*webhook, error) {
	w := as.InForce()
	host, err := config.Endpoint(w.URL)
	if err != nil {
		return nil, err
	}
	way, err := h.e.Reach("webhook "+from.Name, host)
	if err != nil {
		return nil, err
	}
	to := notify.Endpoint{
		Name: from.Name, URL: w.URL, Slack: w.Format == "slack", GiveUp: time.Duration(w.GiveUp), Base: cfg.File.Approvals.Address, Way: way, Agent: "writ/" + writ.Version(),
	}
	for _, e := range w.Events {
		to.Events = append(to.Events, string(e))
	}
	if w.Secret != (secret.Ref{}) {
		to.Secret = func(ctx context.Context) ([]byte, error) {
			v, err := h.e.secrets().Resolve(ctx, w.Secret)
			if err != nil {
				return nil, err
			}
			return []byte(v.Reveal()), nil
		}
	}
	courier := notify.Start(notify.Options{To: to, From: from, Out: outbox{h.e}, Log: h.e.log})
	return &webhook{Courier: courier, cfg: w.Shown(), is: configured(as, cfg), way: way}, nil
}

// Close ends all. What they have not delivered stays in the ledger for the next start.
func (h *webhooks) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, w := range h.all {
		errs = append(errs, w.Close())
	}
	h.all = nil
	return errors.Join(errs...)
}

// outbox is the ledger, and the store beside it.
type outbox struct{ e *Engine }

func (o outbox) After(ctx context.Context, seq int64, n int) ([]store.Entry, error) {
	return o.e.store.After(ctx, seq, n)
}

func (o outbox) Grown() <-chan struct{} { return o.e.ledger.Grown() }

func (o outbox) Now() time.Time { return o.e.ledger.Time() }

// Keep keeps how far a webhook is. Progress is no entry of its own: each would be one more
// to look at for all webhooks.
func (o outbox) Keep(ctx context.Context, w store.Webhook, what string) error {
	return o.e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.SetWebhook(w)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, "the webhook is gone, or further on already", nil)
		}
		if what == "" || err != nil {
			return ledger.Entry{}, err
		}
		return said(what, w.Name, wire.Str("failure", w.Failure)), nil
	})
}

// Webhook is a webhook as an operator sees it.
type Webhook struct {
	notify.State
	Config config.Webhook // with the address hidden but for its host
	Where  string         // where it is written
}

// Webhooks lists them by name.
func (e *Engine) Webhooks() []Webhook {
	e.webhooks.mu.Lock()
	defer e.webhooks.mu.Unlock()
	var out []Webhook
	for _, name := range slices.Sorted(maps.Keys(e.webhooks.all)) {
		w := e.webhooks.all[name]
		out = append(out, Webhook{State: w.State(), Config: w.cfg, Where: e.Config().At("approvals.webhooks." + name)})
	}
	return out
}

// webhook finds one.
func (e *Engine) webhook(name string) (*webhook, error) {
	e.webhooks.mu.Lock()
	defer e.webhooks.mu.Unlock()
	if w := e.webhooks.all[name]; w != nil {
		return w, nil
	}
	names := slices.Sorted(maps.Keys(e.webhooks.all))
	hint := "; 'writ webhook list' shows them" + spell.Hint(name, names)
	if len(names) == 0 {
		hint = "; there is none, and approvals.webhooks in the configuration adds some"
	}
	return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no webhook %q%s", clip(name), hint), nil)
}

// TestWebhook sends a webhook a message that says nothing has happened. failed is what went
// wrong.
func (e *Engine) TestWebhook(ctx context.Context, name string) (failed string, err error) {
	w, err := e.webhook(name)
	if err != nil {
		return "", err
	}
	if err := w.Test(ctx); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// RetryWebhook tries again at once what failed or was given up; with fromNow, what happened
// meanwhile is left out.
func (e *Engine) RetryWebhook(ctx context.Context, name string, fromNow bool) error {
	w, err := e.webhook(name)
	if err != nil {
		return err
	}
	after := int64(0)
	if fromNow {
		end, err := e.store.EntriesBefore(ctx, 0, 1)
		if err != nil || len(end) == 0 {
			return err
		}
		after = end[0].Seq
	}
	return w.Retry(ctx, after)
}
