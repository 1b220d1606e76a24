package client

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/writ-run/writ"
)

// CallRequest is one call. Who calls is the token's agent, never a field.
type CallRequest struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args,omitempty" jsonschema:"the arguments, as the tool's parameters say"`
	Session string          `json:"session,omitempty" jsonschema:"an open session of this token; left out: the token's session of the day"`
	Task    string          `json:"task,omitempty" jsonschema:"the id of an open task, or a name, which opens one"`
	Key     string          `json:"idempotency_key,omitempty" jsonschema:"calls of the agent with the same key are one: it runs at most once, and made again within a day it gives the same answer"`
	Cost    *float64        `json:"cost_estimate,omitempty" jsonschema:"what the caller thinks it costs; written down, trusted for nothing"`
}

// CallReply is the answer when the tool ran.
type CallReply struct {
	CallID   string         `json:"call_id"`
	Content  string         `json:"content" jsonschema:"what the model sees"`
	IsError  bool           `json:"is_error" jsonschema:"the tool ran and failed in a way the model can act on"`
	Metadata map[string]any `json:"metadata,omitempty" jsonschema:"never shown to the model"`
}

// Call makes one call and waits for a person, where one is asked, at most that
// long, and at most five minutes. A request that still waits is a *Problem of kind
// approval_pending.
func (c *Client) Call(ctx context.Context, req CallRequest, wait time.Duration) (CallReply, error) {
	var out CallReply
	err := c.do(ctx, "POST", "/v1/calls"+waiting(wait), req, &out)
	return out, err
}

func waiting(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return "?wait=" + strconv.Itoa(int(d/time.Second))
}

// BatchRequest is several calls of one turn.
type BatchRequest struct {
	Calls          []BatchCall `json:"calls" jsonschema:"1 to 128"`
	Session        string      `json:"session,omitempty"`
	Task           string      `json:"task,omitempty"`
	Order          string      `json:"order,omitempty" jsonschema:"in_order (reads in parallel, each mutating call alone; this is the default) or concurrent"`
	MaxConcurrency int         `json:"max_concurrency,omitempty" jsonschema:"how many run at once; left out: no bound"`
}

// BatchCall is one of them.
type BatchCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
}

// BatchReply has one result a call, in the order of the calls.
type BatchReply struct {
	Results []BatchResult `json:"results"`
}

// BatchResult is what came of one call: the tool's result, or, with Error, why
// there is none.
type BatchResult struct {
	CallID   string         `json:"call_id"`
	Content  string         `json:"content"`
	IsError  bool           `json:"is_error"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Error    *BatchError    `json:"error,omitempty"`
}

// BatchError says why a call of a batch has no result; Content says it in words.
type BatchError struct {
	Kind     writ.Kind `json:"kind"`
	Approval string    `json:"approval,omitempty" jsonschema:"the request that waits for a person"`
}

// Batch makes several calls; none that fails cancels another.
func (c *Client) Batch(ctx context.Context, req BatchRequest, wait time.Duration) (BatchReply, error) {
	var out BatchReply
	err := c.do(ctx, "POST", "/v1/batches"+waiting(wait), req, &out)
	return out, err
}
