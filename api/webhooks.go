package api

import (
	"fmt"
	"time"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func listWebhooks(x *exchange) (any, error) {
	var views []client.Webhook
	for _, w := range x.engine.Webhooks() {
		views = append(views, webhookView(w))
	}
	return pageBy(x, "webhooks", views, func(w client.Webhook) string { return w.Name })
}

func webhookView(w engine.Webhook) client.Webhook {
	v := client.Webhook{
		Name: w.Name, Where: w.Where, URL: w.Config.URL, Format: string(w.Config.Format), Events: []string{}, Secret: w.Config.Secret.String(), State: "ready",
		Delivered: w.Delivered, Failing: w.Failing, Failure: w.Failure, Attempts: w.Attempts, Stopped: w.Stopped,
	}
	for _, e := range w.Config.Events {
		v.Events = append(v.Events, string(e))
	}
	switch {
	case w.Stopped != "":
		v.State = "stopped"
	case w.Failing != "":
		v.State = "failing"
	}
	if !w.Next.IsZero() {
		v.Next = w.Next.UTC().Format(time.RFC3339Nano)
	}
	return v
}

func testWebhook(x *exchange) (any, error) {
	name := x.r.PathValue("name")
	failed, err := x.engine.TestWebhook(x.r.Context(), name)
	return client.WebhookTest{Name: name, OK: failed == "", Failure: failed}, err
}

func retryWebhook(x *exchange) (any, error) {
	return client.Status{Status: "retrying"}, x.engine.RetryWebhook(x.r.Context(), x.r.PathValue("name"), body[client.WebhookRetry](x).FromNow)
}

// webhookWarnings are what somebody has to know of webhooks that are not told.
func webhookWarnings(all []engine.Webhook) []string {
	var out []string
	for _, w := range all {
		switch {
		case w.Stopped != "":
			out = append(out, fmt.Sprintf("%s: webhook %s was given up: %s; mend it and run: writ webhook retry %s", w.Where, w.Name, w.Failure, w.Name))
		case w.Failing != "":
			out = append(out, fmt.Sprintf("%s: webhook %s fails since %s: %s; it is tried again, 'writ webhook list' says when", w.Where, w.Name, w.Failing, w.Failure))
		}
	}
	return out
}
