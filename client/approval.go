package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/writ-run/writ"
)

// Approval is a request for a person's agreement: an invocation that asks.
type Approval struct {
	ID          string `json:"id" jsonschema:"the same as the invocation's"`
	State       string `json:"state" jsonschema:"pending, approved (nobody has taken it up yet), used, rejected, expired or void"`
	Agent       string `json:"agent"`
	Tool        string `json:"tool"`
	Risk        string `json:"risk"`
	Class       string `json:"class"`
	Dangerous   bool   `json:"dangerous,omitempty"`
	Requested   string `json:"requested_at"`
	Expires     string `json:"expires_at"`
	Decided     string `json:"decided_at,omitempty"`
	By          string `json:"decided_by,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Digest      string `json:"digest" jsonschema:"what an approver echoes"`
	Quorum      int    `json:"quorum" jsonschema:"how many different people have to agree"`
	NotBy       string `json:"not_by,omitempty" jsonschema:"four eyes: who cannot be the one to approve"`
	Needs       string `json:"needs,omitempty" jsonschema:"for people: the role an approver must have now, where it is not any that may approve"`
	Escalations int    `json:"escalations,omitempty" jsonschema:"how far it was put higher"`
	Grant       string `json:"grant,omitempty" jsonschema:"of one that was just granted: the standing approval"`
	EditOf      string `json:"edit_of,omitempty" jsonschema:"the request that a person made this one of, with other arguments"`
	ReplacedBy  string `json:"replaced_by,omitempty" jsonschema:"the request that a person made of this one, with other arguments"`
	ArgsDigest  string `json:"args_sha256"`
	ArgsBytes   int64  `json:"args_bytes"`

	Votes   []Vote       `json:"votes,omitempty" jsonschema:"of one: who answered so far"`
	LedTo   []Invocation `json:"led_to,omitempty" jsonschema:"for people, of one: what the agent did just before in the same task, newest first"`
	Preview string       `json:"preview,omitempty" jsonschema:"for people, in a list, while it is open: the beginning of the arguments, made safe to print, or only their size"`
	Shown   *Shown       `json:"call,omitempty" jsonschema:"for people, of one, while it is open: everything the digest binds"`
	Blocked string       `json:"blocked,omitempty" jsonschema:"for people, of one, while it is open: why it would not run now, so that it cannot be approved yet"`
	Display []Item       `json:"display,omitempty" jsonschema:"for people, of one, while it is open: every argument as safe text"`
}

// Vote is one person's answer.
type Vote struct {
	Person   string `json:"person"`
	Decision string `json:"decision" jsonschema:"approve or reject"`
	Factor   string `json:"factor" jsonschema:"what they proved themselves with"`
	At       string `json:"at"`
}

// Shown is a request as a person sees it.
type Shown struct {
	Agent     string           `json:"agent"`
	Chain     []string         `json:"chain,omitempty" jsonschema:"the agent and those it was delegated by"`
	Person    string           `json:"acts_for,omitempty"`
	Session   string           `json:"session"`
	Task      string           `json:"task"`
	Tool      string           `json:"tool"`
	Args      json.RawMessage  `json:"args"`
	Original  json.RawMessage  `json:"original,omitempty" jsonschema:"what the agent asked for, where a person edited it"`
	Dir       string           `json:"dir"`
	Action    string           `json:"action"`
	Risk      string           `json:"risk"`
	Class     string           `json:"class"`
	Dangerous bool             `json:"dangerous,omitempty"`
	Reasons   []writ.Reason    `json:"reasons"`
	Confine   writ.Confinement `json:"confinement"`
	Policy    writ.Digest      `json:"policy"`
	Base      writ.Digest      `json:"base" jsonschema:"of the reach without what this call's arguments add, which a grant is bound to"`
	Resolved  []ResolvedName   `json:"resolved,omitempty"`
	Inputs    []Input          `json:"inputs,omitempty" jsonschema:"files that the arguments name, as they were when it was asked"`
	Code      bool             `json:"code,omitempty" jsonschema:"a program made the call, not a model"`
}

// ResolvedName is a path or host of the arguments and what it really names.
type ResolvedName struct {
	Argument string `json:"argument"`
	Is       string `json:"is"`
	Path     bool   `json:"path,omitempty"`
}

// Input is a file that the arguments name.
type Input struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Note   string `json:"note,omitempty" jsonschema:"why what it holds is not bound"`
}

// Item is one argument as safe text: nothing in it moves a cursor, reorders itself
// or hides.
type Item struct {
	Pointer  string   `json:"pointer" jsonschema:"which argument: /a/b is key b under key a, /a[0] the first element there; in a key ~0 is ~, ~1 is / and ~2 is ["`
	Kind     string   `json:"kind" jsonschema:"object, array, string, number, boolean or null"`
	Text     string   `json:"text" jsonschema:"whole, or the first page of a long one"`
	Bytes    int      `json:"bytes" jsonschema:"of the exact value"`
	Lines    int      `json:"lines"`
	Page     int      `json:"page" jsonschema:"from 1"`
	Pages    int      `json:"pages" jsonschema:"how many there are; GET …/argument has the others"`
	Title    string   `json:"title,omitempty" jsonschema:"of a long one: which part of it this is"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"what to look at twice"`
}

// DecisionRequest is a person's answer to a request as it was shown to them.
type DecisionRequest struct {
	Digest  string      `json:"digest" jsonschema:"of the request as it was shown"`
	Approve bool        `json:"approve"`
	Reason  string      `json:"reason,omitempty" jsonschema:"of a rejection; the agent is told, marked as a person's words"`
	Edit    *Edit       `json:"edit,omitempty" jsonschema:"approve with other arguments"`
	Grant   *GrantTerms `json:"grant,omitempty" jsonschema:"approve, and later calls like it"`
	By      Credentials `json:"by"`
}

// Edit is arguments that a person gives a call instead of its own.
type Edit struct {
	Args   json.RawMessage `json:"args"`
	Digest string          `json:"digest" jsonschema:"of the edited request as its preview showed it"`
}

// PreviewRequest asks what a request would be with other arguments.
type PreviewRequest struct {
	Args json.RawMessage `json:"args"`
}

// GrantTerms are the bounds of a grant.
type GrantTerms struct {
	Uses    int               `json:"uses" jsonschema:"how many later calls, 1 to 1000"`
	Seconds int64             `json:"seconds" jsonschema:"for how long, at most 7 days"`
	Match   map[string]string `json:"match,omitempty" jsonschema:"by argument: a pattern instead of the exact value. For a path a glob, for a text * stands for one plain word"`
}

// Grant is a standing approval.
type Grant struct {
	ID      string                     `json:"id"`
	From    string                     `json:"from" jsonschema:"the request it was made from"`
	Agent   string                     `json:"agent"`
	Tool    string                     `json:"tool"`
	Class   string                     `json:"class"`
	Args    map[string]json.RawMessage `json:"args,omitempty" jsonschema:"which have to be exactly so"`
	Match   map[string]string          `json:"match,omitempty" jsonschema:"which have to match"`
	Uses    int                        `json:"uses"`
	Max     int                        `json:"max_uses"`
	Made    string                     `json:"made_at"`
	By      string                     `json:"made_by"`
	Expires string                     `json:"expires_at"`
	Revoked string                     `json:"revoked_at,omitempty"`
	State   string                     `json:"state" jsonschema:"live, used_up, expired, revoked, or void where what it was bound to changed"`
}

// Approvals lists requests in a state, or all when it is empty, newest first: the
// token's agent's own, or an operator's view of all.
func (c *Client) Approvals(state string) List[Approval] {
	return list[Approval](c, "/v1/approvals", "state", state)
}

// Approval shows one: all of it at the operator's door, and what became of it to its agent.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	var out Approval
	err := c.do(ctx, "GET", "/v1/approvals/"+url.PathEscape(id), nil, &out)
	return out, err
}

// Argument shows one page of a long argument of a request. It works over the operator
// socket only.
func (c *Client) Argument(ctx context.Context, id, pointer string, page int) (Item, error) {
	q := url.Values{"pointer": {pointer}, "page": {strconv.Itoa(page)}}
	var out Item
	err := c.do(ctx, "GET", "/v1/approvals/"+url.PathEscape(id)+"/argument?"+q.Encode(), nil, &out)
	return out, err
}

// PreviewEdit shows a request as it would be with other arguments; nothing changes.
func (c *Client) PreviewEdit(ctx context.Context, id string, args json.RawMessage) (Approval, error) {
	var out Approval
	err := c.do(ctx, "POST", "/v1/approvals/"+url.PathEscape(id)+"/preview", PreviewRequest{args}, &out)
	return out, err
}

// Decide answers one. It works over the operator socket only.
func (c *Client) Decide(ctx context.Context, id string, req DecisionRequest) (Approval, error) {
	var out Approval
	err := c.do(ctx, "POST", "/v1/approvals/"+url.PathEscape(id)+"/decision", req, &out)
	return out, err
}

// Grants lists standing approvals, newest first.
func (c *Client) Grants() List[Grant] { return list[Grant](c, "/v1/grants", "", "") }

// RevokeGrant ends one.
func (c *Client) RevokeGrant(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/grants/"+url.PathEscape(id)+"/revoke", nil, new(Status))
}
