package client

import (
	"context"
	"net/url"
)

// Sandbox is a box that something runs in, or that is kept for the next call.
type Sandbox struct {
	ID      string `json:"id"`
	Driver  string `json:"driver"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Task    string `json:"task"`
	Person  string `json:"person,omitempty"`
	Call    string `json:"call,omitempty" jsonschema:"what runs in it now; empty: it waits for the next"`
	Tool    string `json:"tool,omitempty"`
	Kept    bool   `json:"kept" jsonschema:"it is used again for calls that reach the same"`
	Since   string `json:"since"`
	Used    string `json:"used" jsonschema:"when the last call began in it"`
	Calls   int    `json:"calls"`
}

// Sandboxes lists the sandboxes there are, the oldest first.
func (c *Client) Sandboxes() List[Sandbox] { return list[Sandbox](c, "/v1/sandboxes") }

// Sandbox is one of them.
func (c *Client) Sandbox(ctx context.Context, id string) (Sandbox, error) {
	var out Sandbox
	err := c.do(ctx, "GET", "/v1/sandboxes/"+url.PathEscape(id), nil, &out)
	return out, err
}

// KillSandbox ends one and what runs in it.
func (c *Client) KillSandbox(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/sandboxes/"+url.PathEscape(id)+"/kill", nil, &Status{})
}
