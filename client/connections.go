package client

import (
	"context"
	"net/url"
)

// Connection is a service outside that agents use with the operator's credentials. Of
// those it has where they are kept.
type Connection struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	BaseURL     string   `json:"base_url"`
	AuthType    string   `json:"auth_type" jsonschema:"none, bearer, api_key, basic, oauth2_client or headers"`
	Auth        string   `json:"auth" jsonschema:"how it proves itself, by reference"`
	Secrets     []string `json:"secrets" jsonschema:"where its secrets are kept"`
	Sensitive   bool     `json:"sensitive" jsonschema:"every call over it asks a person"`
	RateLimit   int      `json:"rate_limit" jsonschema:"requests a minute"`
	Paths       []string `json:"paths"`
	Methods     []string `json:"methods"`
	Environment string   `json:"environment,omitempty" jsonschema:"staging or production"`
	Agents      []string `json:"agents,omitempty" jsonschema:"whom it is for, with those below them; left out: whoever may use the tool"`
	Where       string   `json:"where" jsonschema:"where it is written: file and line"`
	Digest      string   `json:"digest" jsonschema:"of all that is written of it; approvals bind it"`
}

// ConnectionTest is how an attempt to use a connection went.
type ConnectionTest struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Steps  []string `json:"steps" jsonschema:"that were taken, in order"`
	Status int      `json:"status,omitempty" jsonschema:"of the other side's answer"`
	Failed string   `json:"failed,omitempty" jsonschema:"what went wrong then, and what to do"`
}

// Connections lists the connections.
func (c *Client) Connections() List[Connection] { return list[Connection](c, "/v1/connections") }

// Connection shows one.
func (c *Client) Connection(ctx context.Context, name string) (Connection, error) {
	var out Connection
	err := c.do(ctx, "GET", "/v1/connections/"+url.PathEscape(name), nil, &out)
	return out, err
}

// TestConnection looks the secrets of one up and asks its address for an answer.
func (c *Client) TestConnection(ctx context.Context, name string) (ConnectionTest, error) {
	var out ConnectionTest
	err := c.do(ctx, "POST", "/v1/connections/"+url.PathEscape(name)+"/test", nil, &out)
	return out, err
}
