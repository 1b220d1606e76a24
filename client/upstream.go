package client

import (
	"context"
	"net/url"
)

// Upstream is an MCP server behind the gateway. Values that look like secrets are
// hidden in it.
type Upstream struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind" jsonschema:"stdio: a program in a box; http: reached by its url"`
	Where   string            `json:"where" jsonschema:"where it is written: file and line"`
	Command []string          `json:"command,omitempty" jsonschema:"the program and its arguments"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Read    []string          `json:"read,omitempty" jsonschema:"what its box may read besides the system"`
	Write   []string          `json:"write,omitempty" jsonschema:"what its box may write"`
	Hosts   []string          `json:"hosts,omitempty" jsonschema:"the hosts that its box may reach"`
	Box     string            `json:"sandbox,omitempty" jsonschema:"the driver of its box; left out: the best there is"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	SecretEnv map[string]string `json:"secret_env,omitempty" jsonschema:"variables whose values are kept elsewhere, with where"`
	Auth      string            `json:"auth,omitempty" jsonschema:"how it is proven to a server at a url, by reference"`
	Secrets   []string          `json:"secrets,omitempty" jsonschema:"all references to secrets that it takes"`

	Prefix   string   `json:"prefix" jsonschema:"name or none: what stands before the names of its tools"`
	Enabled  []string `json:"enabled,omitempty"`
	Disabled []string `json:"disabled,omitempty"`

	Cacheable      []string `json:"cacheable,omitempty" jsonschema:"tools whose results may be a minute old"`
	Relay          []string `json:"relay,omitempty" jsonschema:"what it may ask of a client in the middle of a call"`
	CallTimeout    string   `json:"call_timeout"`
	ConnectTimeout string   `json:"connect_timeout"`

	ReadAction string `json:"read_action" jsonschema:"the action type of its tools that only read"`

	State    string `json:"state" jsonschema:"idle, starting, reading (what it offers is being taken up), ready, failed or closed"`
	Since    string `json:"since"`
	Failed   string `json:"failed,omitempty" jsonschema:"why it is not connected, as it was said, on several lines"`
	Next     string `json:"next_attempt_at,omitempty"`
	Failures int    `json:"failures" jsonschema:"attempts that failed, in a row"`
	Protocol string `json:"protocol_version,omitempty"`

	Outside []string `json:"outside,omitempty" jsonschema:"where it failed: paths that its command names and its box does not reach"`

	Hints []string `json:"hints,omitempty" jsonschema:"what else is known that may be why, with what to do"`

	Tools     []UpstreamTool    `json:"tools"`
	Refused   []UpstreamRefusal `json:"refused,omitempty" jsonschema:"what it offers and is not taken"`
	Resources int               `json:"resources"`
	Prompts   int               `json:"prompts"`
	Changes   []Change          `json:"changes,omitempty" jsonschema:"of what the server is, since a person accepted tools of it"`
	Remedy    string            `json:"remedy,omitempty" jsonschema:"what lets an agent use its tools, where none may"`
}

// UpstreamTool is one of a server's tools.
type UpstreamTool struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Class     string `json:"egress_class" jsonschema:"proposed from its annotations: read_only or write"`
	Dangerous bool   `json:"dangerous,omitempty"`
	State     string `json:"state" jsonschema:"accepted, new, changed or disabled; new and changed ones are suspended"`
	Digest    string `json:"digest" jsonschema:"of the definition as it is now; accepting echoes it"`
	Method    bool   `json:"method,omitempty" jsonschema:"it is a method of the server's, such as reading a resource"`

	Action string   `json:"action_type"`
	Asks   []string `json:"asks,omitempty" jsonschema:"why calls of it ask a person, each with the agents that it holds for"`
}

// UpstreamRefusal is something that a server offers and is not taken.
type UpstreamRefusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	With string `json:"with,omitempty" jsonschema:"the server whose tool has the same name, where that is why"`
}

// UpstreamTest is how an attempt to reach a server went.
type UpstreamTest struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Steps  []string `json:"steps" jsonschema:"that were taken, in order"`
	Failed string   `json:"failed,omitempty" jsonschema:"what went wrong then, as it was said, on several lines"`
	Tools  int      `json:"tools" jsonschema:"how many it offers"`

	Outside  []string `json:"outside,omitempty" jsonschema:"where it failed: paths that its command names and its box does not reach"`
	Hints    []string `json:"hints,omitempty" jsonschema:"what else is known that may be why, with what to do"`
	Accepted int      `json:"accepted" jsonschema:"how many of the tools are as people accepted them"`
	Changed  []string `json:"changed,omitempty" jsonschema:"tools that are not"`
	New      []string `json:"new,omitempty" jsonschema:"tools that nobody has accepted"`
	Gone     []string `json:"gone,omitempty" jsonschema:"accepted tools that it does not offer any more"`
}

// UpstreamAcceptRequest lets definitions of a server be used as they were shown.
type UpstreamAcceptRequest struct {
	Digests map[string]string `json:"digests" jsonschema:"by tool, of its definition as it was shown; all are accepted or none"`
	By      Credentials       `json:"by"`
}

// Suspended are the tools that wait for a person.
func (u Upstream) Suspended() []UpstreamTool {
	var out []UpstreamTool
	for _, t := range u.Tools {
		if t.State == "new" || t.State == "changed" {
			out = append(out, t)
		}
	}
	return out
}

// Upstreams lists the servers behind the gateway.
func (c *Client) Upstreams() List[Upstream] { return list[Upstream](c, "/v1/upstreams") }

// Upstream shows one.
func (c *Client) Upstream(ctx context.Context, name string) (Upstream, error) {
	var out Upstream
	err := c.do(ctx, "GET", "/v1/upstreams/"+url.PathEscape(name), nil, &out)
	return out, err
}

// TestUpstream connects to one anew.
func (c *Client) TestUpstream(ctx context.Context, name string) (UpstreamTest, error) {
	var out UpstreamTest
	err := c.do(ctx, "POST", "/v1/upstreams/"+url.PathEscape(name)+"/test", nil, &out)
	return out, err
}

// RestartUpstream ends one and begins anew.
func (c *Client) RestartUpstream(ctx context.Context, name string) (Upstream, error) {
	var out Upstream
	err := c.do(ctx, "POST", "/v1/upstreams/"+url.PathEscape(name)+"/restart", nil, &out)
	return out, err
}

// AcceptUpstream lets definitions of one be used.
func (c *Client) AcceptUpstream(ctx context.Context, name string, req UpstreamAcceptRequest) error {
	return c.do(ctx, "POST", "/v1/upstreams/"+url.PathEscape(name)+"/accept", req, &Status{})
}
