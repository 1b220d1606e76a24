package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/writ-run/writ"
)

// Approval is a request for a person's agreement.
type Approval struct {
	ID        string `json:"id"`
	State     string `json:"state" jsonschema:"pending, approved, rejected, expired, void or used"`
	Agent     string `json:"agent"`
	Tool      string `json:"tool"`
	Requested string `json:"requested_at"`
	Expires   string `json:"expires_at"`
	Decided   string `json:"decided_at,omitempty"`
	By        string `json:"decided_by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Digest    string `json:"digest" jsonschema:"what an approver echoes"`
	Preview   string `json:"preview,omitempty" jsonschema:"in a list, while it is open: the beginning of the arguments"`
	Shown     *Shown `json:"call,omitempty" jsonschema:"of one, while it is open: everything the digest binds"`
}

// Shown is a request as a person sees it.
type Shown struct {
	Agent    string           `json:"agent"`
	Person   string           `json:"acts_for,omitempty"`
	Session  string           `json:"session"`
	Task     string           `json:"task"`
	Tool     string           `json:"tool"`
	Args     json.RawMessage  `json:"args"`
	Dir      string           `json:"dir"`
	Action   string           `json:"action"`
	Risk     string           `json:"risk"`
	Class    string           `json:"class"`
	Reasons  []writ.Reason    `json:"reasons"`
	Confine  writ.Confinement `json:"confinement"`
	Policy   writ.Digest      `json:"policy"`
	Resolved []ResolvedName   `json:"resolved,omitempty"`
}

// ResolvedName is a path or host of the arguments and what it really names.
type ResolvedName struct {
	Argument string `json:"argument"`
	Is       string `json:"is"`
}

// DecisionRequest is a person's answer to a request as it was shown to them.
type DecisionRequest struct {
	Digest  string      `json:"digest" jsonschema:"of the request as it was shown"`
	Approve bool        `json:"approve"`
	Reason  string      `json:"reason,omitempty" jsonschema:"the agent is told, marked as a person's words"`
	By      Credentials `json:"by"`
}

// Approvals lists requests in a state, or all when it is empty, newest first: the
// token's agent's own, or an operator's view of all.
func (c *Client) Approvals(state string) List[Approval] {
	return list[Approval](c, "/v1/approvals", "state", state)
}

// Approval shows one.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	var out Approval
	err := c.do(ctx, "GET", "/v1/approvals/"+url.PathEscape(id), nil, &out)
	return out, err
}

// Decide answers one. It works over the operator socket only.
func (c *Client) Decide(ctx context.Context, id string, req DecisionRequest) (Approval, error) {
	var out Approval
	err := c.do(ctx, "POST", "/v1/approvals/"+url.PathEscape(id)+"/decision", req, &out)
	return out, err
}
