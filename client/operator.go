package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/writ-run/writ"
)

// Health is what a daemon that answers says of itself.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Policy  string `json:"policy" jsonschema:"digest of the configuration in force"`
}

// ExplainRequest is a call that is decided and not made.
type ExplainRequest struct {
	Agent   string          `json:"agent"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args,omitempty"`
	Session string          `json:"session,omitempty" jsonschema:"quotas are held against it"`
	Task    string          `json:"task,omitempty" jsonschema:"quotas are held against it"`
}

// Explanation is a decision as it is explained.
type Explanation struct {
	Effect  string           `json:"effect" jsonschema:"allow, ask or deny"`
	Action  string           `json:"action"`
	Risk    string           `json:"risk"`
	Class   string           `json:"class"`
	Reasons []writ.Reason    `json:"reasons"`
	Confine writ.Confinement `json:"confinement"`
}

// Stop is a stop of one agent, or of all under the name "*".
type Stop struct {
	Agent  string `json:"agent"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
}

// StopRequest stops an agent.
type StopRequest struct {
	Agent  string `json:"agent" jsonschema:"a name, or * for everybody"`
	Reason string `json:"reason,omitempty"`
}

// Value is one effective value of the configuration and where it came from.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Reloaded says which configuration is in force now.
type Reloaded struct {
	Path     string   `json:"path"`
	Policy   string   `json:"policy" jsonschema:"its digest"`
	Warnings []string `json:"warnings"`
	Ended    int      `json:"ended" jsonschema:"how many requests and unused approvals ended; their calls are decided again when they are made again"`
}

// Doctor is what examining the set-up found.
type Doctor struct {
	Version  string         `json:"version"`
	Mode     string         `json:"mode"`
	Config   string         `json:"config"`
	State    string         `json:"state"`
	People   int            `json:"people"`
	Warnings []string       `json:"warnings"`
	Drivers  []DriverReport `json:"drivers"`
}

// DriverReport is what a sandbox driver's probe saw.
type DriverReport struct {
	Driver   string    `json:"driver"`
	Findings []Finding `json:"findings"`
	Error    string    `json:"error,omitempty"`
	Chosen   []string  `json:"chosen,omitempty" jsonschema:"the keys of the configuration that name it; without any, calls run on it where sandboxing.default_backend is auto"`
}

// Finding is what the probe saw of one feature.
type Finding struct {
	Feature  string `json:"feature"`
	Enforced bool   `json:"enforced"`
	Evidence string `json:"evidence"`
}

// Health asks whether a daemon answers.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var out Health
	err := c.do(ctx, "GET", "/v1/health", nil, &out)
	return out, err
}

// OpenAPI is the description of the door this client comes through.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.do(ctx, "GET", "/v1/openapi.json", nil, &out)
	return out, err
}

// Explain decides a call without making it.
func (c *Client) Explain(ctx context.Context, req ExplainRequest) (Explanation, error) {
	var out Explanation
	err := c.do(ctx, "POST", "/v1/explain", req, &out)
	return out, err
}

// Stops lists the stops in force.
func (c *Client) Stops() List[Stop] { return list[Stop](c, "/v1/stops") }

// Stop stops an agent, or everybody.
func (c *Client) Stop(ctx context.Context, req StopRequest) error {
	return c.do(ctx, "POST", "/v1/stops", req, &Status{})
}

// Lift ends a stop.
func (c *Client) Lift(ctx context.Context, agent string, by Credentials) error {
	return c.do(ctx, "POST", "/v1/stops/"+url.PathEscape(agent)+"/lift", PersonRequest{by}, &Status{})
}

// Config lists the values the daemon runs under.
func (c *Client) Config() List[Value] { return list[Value](c, "/v1/config") }

// Reload has the daemon read its configuration again.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	var out Reloaded
	err := c.do(ctx, "POST", "/v1/config/reload", nil, &out)
	return out, err
}

// Doctor examines the daemon and its drivers.
func (c *Client) Doctor(ctx context.Context) (Doctor, error) {
	var out Doctor
	err := c.do(ctx, "GET", "/v1/doctor", nil, &out)
	return out, err
}

// Shutdown ends the daemon.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, "POST", "/v1/shutdown", nil, &Status{})
}
