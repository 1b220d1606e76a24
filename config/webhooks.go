package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
)

// Webhook is somebody outside who is told what happens to calls.
type Webhook struct {
	URL    string         `yaml:"url"`           // https, or http of this machine
	Secret secret.Ref     `yaml:"secret"`        // what messages are signed with, by reference
	Events []WebhookEvent `yaml:"events"`        // empty: all, or approval_required where people read it
	Format WebhookFormat  `yaml:"format"`        // json or slack
	GiveUp Duration       `yaml:"give_up_after"` // how long one message is tried
}

// WebhookEvent is something that happens to a call.
type WebhookEvent string

// WebhookFormat is the shape of messages.
type WebhookFormat string

// webhookEvents are all that can happen to a call.
var webhookEvents = []string{
	"tool_invocation_requested", "tool_invocation_denied", "tool_invocation_approval_required", "tool_invocation_approved", "tool_invocation_rejected", "tool_invocation_expired",
	"tool_invocation_started", "tool_invocation_completed", "tool_invocation_failed", "tool_invocation_cancelled", "tool_invocation_unknown",
}

// UnmarshalText takes an event by its name, or by what is left of that without what all of
// them begin with, as lists show it.
func (e *WebhookEvent) UnmarshalText(b []byte) error {
	if whole := "tool_invocation_" + string(b); slices.Contains(webhookEvents, whole) {
		b = []byte(whole)
	}
	return word(e, "event", b, webhookEvents...)
}

func (f *WebhookFormat) UnmarshalText(b []byte) error {
	return word(f, "format", b, "json", "slack")
}

// InForce is the webhook with what holds where nothing is written.
func (w Webhook) InForce() Webhook {
	w.Format = cmp.Or(w.Format, "json")
	w.GiveUp = cmp.Or(w.GiveUp, Duration(day))
	if len(w.Events) == 0 && w.Format == "slack" {
		w.Events = []WebhookEvent{"tool_invocation_approval_required"}
	}
	if len(w.Events) == 0 {
		for _, e := range webhookEvents {
			w.Events = append(w.Events, WebhookEvent(e))
		}
	}
	return w
}

// shownHook is an address without what follows its host: whoever knows that of a chat's
// webhook can write there.
func shownHook(text string) string {
	e, err := host.ParseURL(text)
	if err != nil {
		return Hidden
	}
	scheme, _, _ := strings.Cut(text, "://")
	return scheme + "://" + e.String() + "/" + Hidden
}

// Shown is the webhook as people and logs may see it.
func (w Webhook) Shown() Webhook {
	w.URL = shownHook(w.URL)
	return w
}

func (c *Config) checkWebhooks(d *strict.File) {
	a := c.File.Approvals
	if a.Address != "" {
		checkEndpoint(d, "approvals.address", a.Address)
		c.File.Approvals.Address = strings.TrimRight(a.Address, "/")
	}
	for _, name := range sorted(a.Webhooks) {
		key, w := strict.Member("approvals.webhooks", name), a.Webhooks[name]
		if !ValidName(name) {
			d.Reject(key, "a webhook's name %s", nameRule)
			continue
		}
		c.checkHookURL(d, strict.Member(key, "url"), w.URL)
		c.checkHookSecret(d, strict.Member(key, "secret"), w)
		for i, e := range w.Events {
			if slices.Index(w.Events, e) < i {
				d.Reject(fmt.Sprintf("%s.events[%d]", key, i), "%s is in the list already; keep one", e)
			}
		}
		if _, given := c.lines[key+".events"]; given && len(w.Events) == 0 && !d.Unread(key+".events") {
			d.Reject(key+".events", "is empty, and nothing would be sent; name some or remove the list, or the webhook")
		}
		if time.Duration(w.GiveUp) > maxWait {
			d.Reject(key+".give_up_after", "must be at most %dd", maxWait/day)
		}
	}
}

// checkHookURL says of an address what is wrong without repeating it: the whole of it may
// be as good as a password.
func (c *Config) checkHookURL(d *strict.File, key, text string) {
	switch _, err := Endpoint(text); {
	case text == "" && !d.Unread(key):
		d.Reject(key, "is missing; write an https address")
	case text == "":
	case err != nil:
		d.Reject(key, "%s", strings.ReplaceAll(err.Error(), text, shownHook(text)))
	}
}

func (c *Config) checkHookSecret(d *strict.File, key string, w Webhook) {
	if w.Secret == (secret.Ref{}) && w.InForce().Format == "json" && !d.Unread(key) {
		d.Reject(key, "is missing; whoever gets messages needs it to tell them from others': write %s", secret.Forms)
	}
	c.secretFile(d, key, w.Secret)
}
