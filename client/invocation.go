package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/writ-run/writ"
)

// Invocation is one call and its whole life.
type Invocation struct {
	ID             string   `json:"id"`
	Status         string   `json:"status" jsonschema:"pending, running, completed, failed, rejected, expired, cancelled, unknown or denied"`
	ApprovalStatus string   `json:"approval_status" jsonschema:"not_required, pending, approved, rejected or expired"`
	ApprovalReason string   `json:"approval_reason,omitempty" jsonschema:"a person's words"`
	Agent          string   `json:"agent"`
	Person         string   `json:"acts_for,omitempty"`
	Tool           string   `json:"tool"`
	Action         string   `json:"action,omitempty"`
	Risk           string   `json:"risk,omitempty"`
	Class          string   `json:"class"`
	Session        string   `json:"session,omitempty"`
	Task           string   `json:"task,omitempty"`
	Door           string   `json:"door"`
	Key            string   `json:"idempotency_key,omitempty"`
	ArgsDigest     string   `json:"args_sha256"`
	ArgsBytes      int64    `json:"args_bytes"`
	Requested      string   `json:"requested_at"`
	Expires        string   `json:"expires_at,omitempty"`
	DecidedBy      string   `json:"decided_by,omitempty"`
	Decided        string   `json:"decided_at,omitempty"`
	Grant          string   `json:"grant,omitempty"`
	Started        string   `json:"started_at,omitempty"`
	Completed      string   `json:"completed_at,omitempty"`
	Outcome        string   `json:"outcome,omitempty" jsonschema:"ok, tool_error, or the kind of what went wrong"`
	Attempt        int64    `json:"attempt,omitempty" jsonschema:"how often it was taken up"`
	EditOf         string   `json:"edit_of,omitempty"`
	ReplacedBy     string   `json:"replaced_by,omitempty"`
	CostEstimate   *float64 `json:"cost_estimate,omitempty" jsonschema:"what the caller said; trusted for nothing"`
	Micros         *int64   `json:"measured_micros,omitempty"`
	CPU            *int64   `json:"measured_cpu_micros,omitempty"`
	ResultBytes    *int64   `json:"result_bytes,omitempty"`

	Args       json.RawMessage `json:"args,omitempty" jsonschema:"of one whose outcome is unknown, where they were kept: its arguments"`
	Resolution *Resolution     `json:"resolution,omitempty" jsonschema:"what a person found out about an unknown outcome"`
	Result     *CallReply      `json:"result,omitempty" jsonschema:"of one: what the tool gave back, where it is kept for whoever comes back for it"`
	Error      *CallError      `json:"error,omitempty" jsonschema:"of one: why there is no result, where that is kept"`
}

// CallError says why a call has no result.
type CallError struct {
	Kind   writ.Kind `json:"kind"`
	Detail string    `json:"detail"`
}

// Resolution is what a person found out.
type Resolution struct {
	Happened string `json:"happened" jsonschema:"yes, no or partly"`
	Note     string `json:"note,omitempty"`
	By       string `json:"by"`
	At       string `json:"at"`
}

// ResolutionRequest says what a person found out about an unknown outcome.
type ResolutionRequest struct {
	Happened string      `json:"happened" jsonschema:"yes, no or partly"`
	Note     string      `json:"note,omitempty"`
	By       Credentials `json:"by"`
}

// Invocations lists calls in a state, or all when it is empty, newest first: the
// token's agent's own, or an operator's view of all.
func (c *Client) Invocations(state string) List[Invocation] {
	return list[Invocation](c, "/v1/invocations", "state", state)
}

// Invocation shows one; with a wait, once it has ended, or after so long.
func (c *Client) Invocation(ctx context.Context, id string, wait time.Duration) (Invocation, error) {
	var out Invocation
	err := c.do(ctx, "GET", "/v1/invocations/"+url.PathEscape(id)+waiting(wait), nil, &out)
	return out, err
}

// CancelInvocation ends one: what waits is not asked about any more, what runs is killed.
func (c *Client) CancelInvocation(ctx context.Context, id string) (Invocation, error) {
	var out Invocation
	err := c.do(ctx, "POST", "/v1/invocations/"+url.PathEscape(id)+"/cancel", nil, &out)
	return out, err
}

// ResolveInvocation says what a person found out about an unknown outcome.
func (c *Client) ResolveInvocation(ctx context.Context, id string, req ResolutionRequest) (Invocation, error) {
	var out Invocation
	err := c.do(ctx, "POST", "/v1/invocations/"+url.PathEscape(id)+"/resolution", req, &out)
	return out, err
}
