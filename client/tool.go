package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/writ-run/writ"
)

// Tool is a tool as it is listed and shown.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Action      string          `json:"action_type"`
	ActionBy    *ActionBy       `json:"action_by,omitempty" jsonschema:"how a call's action type follows from its arguments"`
	Class       string          `json:"egress_class" jsonschema:"none, read_only or write, as the definition says"`
	Dangerous   bool            `json:"dangerous,omitempty" jsonschema:"as the definition says"`
	Tier        string          `json:"cost_tier"`
	Policy      Policy          `json:"policy"`
	Constraints Constraints     `json:"constraints"`
	Schema      json.RawMessage `json:"parameters" jsonschema:"JSON Schema of the arguments"`
	Output      json.RawMessage `json:"output,omitempty" jsonschema:"JSON Schema of what it returns, where that is JSON"`
	Examples    []Example       `json:"examples,omitempty"`
	Failures    []string        `json:"failure_modes,omitempty"`
	Docs        Docs            `json:"docs,omitzero"`
	Hints       Hints           `json:"annotations,omitzero"`
	Limits      writ.Limits     `json:"limits,omitzero"`
	Untrusted   bool            `json:"untrusted_output"`
	Runs        string          `json:"runs"`
	Runner      Runner          `json:"runner"`
	Programs    []string        `json:"programs,omitempty" jsonschema:"all that its box executes; left out: what the agent's terminal opens"`
	Brokered    bool            `json:"brokered,omitempty" jsonschema:"its requests are made by the egress broker, so that a call counts by its method"`
	Digest      string          `json:"digest" jsonschema:"of the whole definition: a changed one is a new tool"`
	State       string          `json:"state,omitempty" jsonschema:"for operators: builtin, library, accepted, suspended or disabled"`
	Unavailable string          `json:"unavailable,omitempty" jsonschema:"why no sandbox of this machine can run it for this agent"`
	Held        string          `json:"held,omitempty" jsonschema:"for operators: why it is suspended"`
	Counts      *Standing       `json:"counts_as,omitempty" jsonschema:"for operators: what it counts as, and why"`
}

// Standing is what a tool counts as, whoever calls it: the highest of what its
// definition says, what it was before and what the operator set, or what was waived.
type Standing struct {
	Class     string        `json:"egress_class"`
	Dangerous bool          `json:"dangerous"`
	Quorum    int           `json:"quorum" jsonschema:"how many people have to agree, where one has to"`
	Reasons   []writ.Reason `json:"reasons,omitempty"`
	Waiver    *Waiver       `json:"waiver,omitempty" jsonschema:"the waiver it rests on"`
}

// Waiver is a person's word that one exact definition counts as less than it says, or
// than it was.
type Waiver struct {
	ID         string `json:"id"`
	Tool       string `json:"tool"`
	Definition string `json:"definition"`
	Class      string `json:"egress_class"`
	Dangerous  bool   `json:"dangerous"`
	Reason     string `json:"reason"`
	By         string `json:"waived_by"`
	At         string `json:"waived_at"`
	Ended      string `json:"ended_at,omitempty" jsonschema:"left out while it is live"`
}

// WaiveRequest lets a tool count as less.
type WaiveRequest struct {
	Class        string      `json:"egress_class,omitempty" jsonschema:"none, read_only or write; left out: as it is"`
	NotDangerous bool        `json:"not_dangerous,omitempty"`
	Reason       string      `json:"reason"`
	Digest       string      `json:"digest" jsonschema:"of the definition as it was shown"`
	By           Credentials `json:"by"`
}

// ActionBy says which argument decides a call's action type.
type ActionBy struct {
	Argument string            `json:"argument"`
	Types    map[string]string `json:"types"`
}

// Policy is what a tool declares of itself.
type Policy struct {
	Risk    string      `json:"risk"`
	Files   PolicyFiles `json:"filesystem"`
	Network PolicyHosts `json:"network"`
	Env     PolicyVars  `json:"environment"`
	Exec    string      `json:"exec"`
	Secrets []string    `json:"secrets,omitempty"`
}

// PolicyFiles is the filesystem stance.
type PolicyFiles struct {
	Read  PolicyGlobs `json:"read"`
	Write PolicyGlobs `json:"write"`
}

// PolicyGlobs is one side of it.
type PolicyGlobs struct {
	Mode  string   `json:"mode"`
	Globs []string `json:"globs,omitempty"`
}

// PolicyHosts is the network stance.
type PolicyHosts struct {
	Mode  string   `json:"mode"`
	Hosts []string `json:"hosts,omitempty"`
}

// PolicyVars is the environment stance.
type PolicyVars struct {
	Mode string   `json:"mode"`
	Vars []string `json:"vars,omitempty"`
}

// Constraints bound how a tool may be used over time.
type Constraints struct {
	Quotas           []writ.Quota `json:"quotas,omitempty"`
	OnlyAfter        []string     `json:"only_after,omitempty"`
	Forbidden        bool         `json:"forbidden,omitempty"`
	RequiresApproval bool         `json:"requires_approval,omitempty"`
}

// Example is one call with what it is for.
type Example struct {
	What string          `json:"what"`
	Args json.RawMessage `json:"args"`
}

// Docs are what people and models read beyond the description.
type Docs struct {
	Capability string `json:"capability,omitempty"`
	Inputs     string `json:"inputs,omitempty"`
	Outputs    string `json:"outputs,omitempty"`
}

// Hints are what MCP clients are told. They only raise what a tool counts as.
type Hints struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Runner is how a tool's work is done.
type Runner struct {
	Kind string          `json:"kind"`
	Spec json.RawMessage `json:"spec,omitempty"`
}

// ToolDiff is a definition as it is in its file against what a person accepted.
type ToolDiff struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Digest   string   `json:"digest" jsonschema:"as it is now; accepting echoes it"`
	Accepted string   `json:"accepted,omitempty" jsonschema:"the digest that was accepted; left out: none was"`
	By       string   `json:"accepted_by,omitempty"`
	At       string   `json:"accepted_at,omitempty"`
	Changes  []Change `json:"changes"`
	Stays    string   `json:"stays,omitempty" jsonschema:"what accepting it does not lower"`
}

// Change is one value of a definition that differs. An empty side is not there.
type Change struct {
	Key string `json:"key"`
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// AcceptRequest lets a definition be used as it was shown.
type AcceptRequest struct {
	Digest string      `json:"digest" jsonschema:"of the definition as it was shown"`
	By     Credentials `json:"by"`
}

// Tools lists the tools the token's agent may use, or an operator's view of all.
func (c *Client) Tools() List[Tool] { return list[Tool](c, "/v1/tools") }

// Tool shows one.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	var out Tool
	err := c.do(ctx, "GET", "/v1/tools/"+url.PathEscape(name), nil, &out)
	return out, err
}

// DiffTool shows what changed in a definition since a person accepted it.
func (c *Client) DiffTool(ctx context.Context, name string) (ToolDiff, error) {
	var out ToolDiff
	err := c.do(ctx, "GET", "/v1/tools/"+url.PathEscape(name)+"/diff", nil, &out)
	return out, err
}

// AcceptTool lets a definition be used.
func (c *Client) AcceptTool(ctx context.Context, name string, req AcceptRequest) error {
	return c.do(ctx, "POST", "/v1/tools/"+url.PathEscape(name)+"/accept", req, &Status{})
}

// WaiveTool lets a tool count as less.
func (c *Client) WaiveTool(ctx context.Context, name string, req WaiveRequest) error {
	return c.do(ctx, "POST", "/v1/tools/"+url.PathEscape(name)+"/waiver", req, &Status{})
}

// EndWaiver lets a tool count as what it is again.
func (c *Client) EndWaiver(ctx context.Context, name string) error {
	return c.do(ctx, "DELETE", "/v1/tools/"+url.PathEscape(name)+"/waiver", nil, &Status{})
}

// Waivers lists every waiver there was, the oldest first.
func (c *Client) Waivers() List[Waiver] { return list[Waiver](c, "/v1/waivers") }
