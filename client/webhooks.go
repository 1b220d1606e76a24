package client

import (
	"context"
	"net/url"
)

// Webhook is somebody outside who is told what happens to calls.
type Webhook struct {
	Name      string   `json:"name"`
	Where     string   `json:"where" jsonschema:"where it is written"`
	URL       string   `json:"url" jsonschema:"its address, without what follows the host"`
	Format    string   `json:"format" jsonschema:"json or slack"`
	Events    []string `json:"events"`
	Secret    string   `json:"secret,omitempty" jsonschema:"where what it signs messages with is kept"`
	State     string   `json:"state" jsonschema:"ready, failing, or stopped: it was given up"`
	Delivered string   `json:"delivered_at,omitempty" jsonschema:"when it took the last message"`
	Failing   string   `json:"failing_since,omitempty"`
	Failure   string   `json:"failure,omitempty" jsonschema:"how the last attempt failed"`
	Attempts  int      `json:"attempts,omitempty" jsonschema:"that failed since the daemon began to try the message"`
	Next      string   `json:"next_attempt,omitempty"`
	Stopped   string   `json:"stopped_at,omitempty"`
}

// WebhookTest is how sending a test went.
type WebhookTest struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Failure string `json:"failure,omitempty"`
}

// WebhookRetry says from where to go on.
type WebhookRetry struct {
	FromNow bool `json:"from_now,omitempty" jsonschema:"leave out what happened meanwhile"`
}

// Webhooks lists the webhooks and how each is doing.
func (c *Client) Webhooks() List[Webhook] { return list[Webhook](c, "/v1/webhooks") }

// TestWebhook sends a webhook a message that says nothing has happened.
func (c *Client) TestWebhook(ctx context.Context, name string) (WebhookTest, error) {
	var t WebhookTest
	err := c.do(ctx, "POST", "/v1/webhooks/"+url.PathEscape(name)+"/test", nil, &t)
	return t, err
}

// RetryWebhook has a webhook tried again at once.
func (c *Client) RetryWebhook(ctx context.Context, name string, r WebhookRetry) error {
	return c.do(ctx, "POST", "/v1/webhooks/"+url.PathEscape(name)+"/retry", r, &Status{})
}
