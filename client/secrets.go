package client

import (
	"context"
	"net/url"
)

// Secret is a secret in the store; what it holds nobody is shown.
type Secret struct {
	Name string `json:"name"`
	Set  string `json:"set_at"`
	By   string `json:"set_by"`
}

// SecretRequest sets one.
type SecretRequest struct {
	Value string      `json:"value" jsonschema:"at most 64 KiB of text; it is encrypted, and never shown again"`
	By    Credentials `json:"by"`
}

// SecretCheckRequest asks whether a secret can be had.
type SecretCheckRequest struct {
	Reference string `json:"reference" jsonschema:"env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"`
}

// SecretCheck says whether a secret can be had.
type SecretCheck struct {
	Reference string `json:"reference"`
	Found     bool   `json:"found"`
	Length    string `json:"length,omitempty" jsonschema:"about how long it is"`
	Why       string `json:"why,omitempty" jsonschema:"why it cannot be had, and what to do"`
}

// Secrets lists those in the store.
func (c *Client) Secrets() List[Secret] { return list[Secret](c, "/v1/secrets") }

// SetSecret keeps one in the store, instead of the one before.
func (c *Client) SetSecret(ctx context.Context, name string, req SecretRequest) error {
	return c.do(ctx, "POST", "/v1/secrets/"+url.PathEscape(name), req, &Status{})
}

// RemoveSecret forgets one in the store.
func (c *Client) RemoveSecret(ctx context.Context, name string) error {
	return c.do(ctx, "DELETE", "/v1/secrets/"+url.PathEscape(name), nil, &Status{})
}

// CheckSecret asks whether one can be had.
func (c *Client) CheckSecret(ctx context.Context, reference string) (SecretCheck, error) {
	var out SecretCheck
	err := c.do(ctx, "POST", "/v1/secret-checks", SecretCheckRequest{reference}, &out)
	return out, err
}
