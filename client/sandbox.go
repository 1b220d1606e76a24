package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/writ-run/writ"
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

	Container string `json:"container,omitempty" jsonschema:"the engine's ID, where it is a container"`
	Sidecar   string `json:"sidecar,omitempty" jsonschema:"of the container that is its way out"`
	Image     string `json:"image,omitempty"`

	Ended string `json:"ended,omitempty" jsonschema:"when it ended; left out: it is there"`
	Lost  bool   `json:"lost,omitempty" jsonschema:"its daemon was gone before it, and the next one found it so"`

	// Of one that is shown, while this daemon remembers it; lists leave it out.
	Confine *writ.Confinement `json:"confinement,omitempty" jsonschema:"what the last call in it could reach; lists leave it out"`
	Runs    []SandboxRun      `json:"runs,omitempty" jsonschema:"the last commands that ended in it, the oldest first; lists leave them out"`
}

// SandboxRun is a command that has run in a sandbox.
type SandboxRun struct {
	Call      string            `json:"call"`
	Tool      string            `json:"tool"`
	Began     string            `json:"began"`
	ExitCode  int               `json:"exit_code"`
	Limit     string            `json:"limit,omitempty" jsonschema:"what ended it; left out: it ended by itself"`
	Millis    int64             `json:"execution_time_ms"`
	Stdout    int64             `json:"stdout_bytes"`
	Stderr    int64             `json:"stderr_bytes"`
	Sidecar   []json.RawMessage `json:"sidecar_logs,omitempty" jsonschema:"the last objects that its sidecar said"`
	Malformed int               `json:"sidecar_lines_malformed,omitempty"`
}

// SandboxExecRequest runs a command in a sandbox that is kept and that nobody uses.
type SandboxExecRequest struct {
	Command []string    `json:"command" jsonschema:"the program and its arguments"`
	By      Credentials `json:"by" jsonschema:"a person who operates"`
}

// Sandboxes lists the sandboxes there are, the oldest first.
func (c *Client) Sandboxes() List[Sandbox] { return list[Sandbox](c, "/v1/sandboxes") }

// EndedSandboxes lists those there were, the newest first: all that were kept or were
// containers.
func (c *Client) EndedSandboxes() List[Sandbox] {
	return list[Sandbox](c, "/v1/sandboxes", "state", "ended")
}

// Sandbox is one of either.
func (c *Client) Sandbox(ctx context.Context, id string) (Sandbox, error) {
	var out Sandbox
	err := c.do(ctx, "GET", "/v1/sandboxes/"+url.PathEscape(id), nil, &out)
	return out, err
}

// KillSandbox ends one and what runs in it.
func (c *Client) KillSandbox(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/sandboxes/"+url.PathEscape(id)+"/kill", nil, &Status{})
}

// ExecSandbox runs a command in one that is kept and that nobody uses.
func (c *Client) ExecSandbox(ctx context.Context, id string, req SandboxExecRequest) (CallReply, error) {
	var out CallReply
	err := c.do(ctx, "POST", "/v1/sandboxes/"+url.PathEscape(id)+"/exec", req, &out)
	return out, err
}
