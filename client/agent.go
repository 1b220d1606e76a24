package client

import (
	"context"
	"net/url"
)

// Agent is an agent as it is shown: where it works, what it may use and reach.
type Agent struct {
	Name        string            `json:"name"`
	Parent      string            `json:"parent,omitempty"`
	Where       string            `json:"where" jsonschema:"where it is configured; for operators"`
	Person      string            `json:"acts_for,omitempty"`
	Role        string            `json:"role,omitempty"`
	Level       string            `json:"level"`
	Autonomy    string            `json:"autonomy"`
	Workspace   string            `json:"workspace"`
	Project     string            `json:"project"`
	Constraints map[string]string `json:"constraints"`
	Tools       []string          `json:"tools"`
	Unavailable []string          `json:"unavailable,omitempty" jsonschema:"those of them that no sandbox of this machine can run"`
	Stopped     bool              `json:"stopped"`
	Tokens      []AgentToken      `json:"tokens" jsonschema:"for operators"`
}

// AgentToken is a token without what it is.
type AgentToken struct {
	ID      string `json:"id"`
	Created string `json:"created_at"`
	Revoked string `json:"revoked_at,omitempty"`
}

// Node is an agent in the tree of delegation.
type Node struct {
	Agent
	Delegated string `json:"delegated,omitempty" jsonschema:"until when, for a child that an agent made"`
	Children  []Node `json:"children,omitempty"`
}

// Tree is every agent under the one above it.
type Tree struct {
	Agents []Node `json:"agents"`
}

// Credentials are what a person proves themselves with.
type Credentials struct {
	Name       string `json:"name,omitempty" jsonschema:"left out: the only person there is"`
	Passphrase string `json:"passphrase"`
}

// PersonRequest names who decides an operator's act.
type PersonRequest struct {
	By Credentials `json:"by"`
}

// NewToken is a token; it is shown this once.
type NewToken struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Token string `json:"token"`
}

// DelegationRequest makes a child of the token's agent.
type DelegationRequest struct {
	Name         string `json:"name" jsonschema:"a label; the child's name is made from it"`
	LastsSeconds int    `json:"lasts_seconds" jsonschema:"1 to 86400"`
	Session      string `json:"session,omitempty" jsonschema:"the session both work in; left out: the token's session of the day"`
	Task         string `json:"task,omitempty"`
	Request      Reach  `json:"request,omitzero" jsonschema:"what the child asks for; it gets no more than its parent has at each moment"`
}

// Reach is what an agent asks for a child of its own. What is left out is the
// parent's.
type Reach struct {
	Role        string    `json:"role,omitempty"`
	Level       string    `json:"level,omitempty"`
	Autonomy    string    `json:"autonomy,omitempty"`
	Allowed     *[]string `json:"allowed,omitempty" jsonschema:"these tools and no others"`
	Denied      []string  `json:"denied,omitempty"`
	Constraints Overrides `json:"constraints,omitzero"`
	Directory   string    `json:"directory,omitempty" jsonschema:"inside the parent's workspace"`
}

// Overrides narrow any of the six sub-constraints.
type Overrides struct {
	FileSystem       string    `json:"file_system,omitempty"`
	Network          string    `json:"network,omitempty"`
	NetworkAllowlist *[]string `json:"network_allowlist,omitempty"`
	Git              string    `json:"git,omitempty"`
	CodeExecution    string    `json:"code_execution,omitempty"`
	Terminal         string    `json:"terminal,omitempty"`
	RequiresApproval *[]string `json:"requires_approval,omitempty"`
}

// Delegated is a child and its token, which is shown this once.
type Delegated struct {
	Agent   string `json:"agent"`
	Parent  string `json:"parent"`
	Token   string `json:"token"`
	Expires string `json:"expires_at"`
}

// Agents lists the token's agent and those below it, or an operator's view of all.
func (c *Client) Agents() List[Agent] { return list[Agent](c, "/v1/agents") }

// Agent shows one.
func (c *Client) Agent(ctx context.Context, name string) (Agent, error) {
	var out Agent
	err := c.do(ctx, "GET", "/v1/agents/"+url.PathEscape(name), nil, &out)
	return out, err
}

// Tree shows every agent under the one above it.
func (c *Client) Tree(ctx context.Context) (Tree, error) {
	var out Tree
	err := c.do(ctx, "GET", "/v1/tree", nil, &out)
	return out, err
}

// Delegate makes a child of the token's agent.
func (c *Client) Delegate(ctx context.Context, req DelegationRequest) (Delegated, error) {
	var out Delegated
	err := c.do(ctx, "POST", "/v1/delegations", req, &out)
	return out, err
}

// EndDelegation ends a child and all below it.
func (c *Client) EndDelegation(ctx context.Context, name string) error {
	return c.do(ctx, "POST", "/v1/delegations/"+url.PathEscape(name)+"/end", nil, &Status{})
}

// NewToken makes a token for an agent.
func (c *Client) NewToken(ctx context.Context, agent string, by Credentials) (NewToken, error) {
	var out NewToken
	err := c.do(ctx, "POST", "/v1/agents/"+url.PathEscape(agent)+"/tokens", PersonRequest{by}, &out)
	return out, err
}

// RevokeToken ends one, and what was opened and delegated with it.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, "DELETE", "/v1/tokens/"+url.PathEscape(id), nil, &Status{})
}
