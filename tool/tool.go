// Package tool holds tool definitions and the catalog they are looked up in.
// Families of built-in tools live in packages below this one. A definition says
// what a call means; its digest pins that, so that a changed definition is a new
// tool (I8).
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/wire"
)

// Definition is everything that changes what a call of the tool means, and what
// people and models read about it.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Category    action.Category `json:"category"`
	Action      action.Type     `json:"action_type"`
	ActionBy    *ActionBy       `json:"action_by,omitempty"` // nil: every call is of type Action
	Class       writ.Class      `json:"egress_class"`
	Dangerous   bool            `json:"dangerous,omitempty"`
	Tier        string          `json:"cost_tier"` // cheap, medium, expensive
	Policy      policy.Policy   `json:"policy"`
	Constraints Constraints     `json:"constraints"`
	Schema      json.RawMessage `json:"parameters"`
	Output      json.RawMessage `json:"output,omitempty"` // JSON Schema of what it returns, where that is JSON
	Examples    []Example       `json:"examples,omitempty"`
	Failures    []string        `json:"failure_modes,omitempty"`
	Docs        Docs            `json:"docs,omitzero"`
	Hints       Hints           `json:"annotations,omitzero"`
	Limits      writ.Limits     `json:"limits,omitzero"` // tighter than the driver's, where set
	Untrusted   bool            `json:"untrusted_output"`
	Runs        Runs            `json:"runs"`
	Runner      Runner          `json:"runner"`
	// Brokered says that the tool reaches hosts by requests which the broker makes for it
	// and by nothing else, so that their methods are seen and held to the class of the
	// call. A call whose action type reads then only reads there, and any other counts as
	// write. Nothing but a built-in family sets it: who dials itself is not seen.
	Brokered bool `json:"brokered,omitempty"`
	// Programs are all that the box of a built-in family executes, whatever the agent's
	// terminal says; none: what that opens.
	Programs []string `json:"programs,omitempty"`
	// Named says that an agent has the tool only where its own list, or a role that the
	// operator wrote, names it. It says who calls and nothing of what a call means, so the
	// digest does not cover it; nothing but a built-in family sets it.
	Named bool `json:"-"`
	// Asks are arguments that the schema requires and the tool asks for itself: a call
	// without them reaches it, so that it says by its own codes what is missing. What they
	// may be the schema still holds where they are given. Of built-in families alone, too.
	Asks []string `json:"-"`
	// Server is who does the work of a tool with the runner mcp, as people are shown it.
	// The digest covers it by the runner's spec, which has it exactly.
	Server *writ.Server `json:"-"`
}

// ActionBy resolves a call's action type from one argument: a value that is not in
// Types, or is left out, leaves the definition's Action, which is the strictest.
type ActionBy struct {
	Argument string                 `json:"argument"`
	Types    map[string]action.Type `json:"types"`
}

// Docs are the sections of a definition that people and models read beyond its
// description.
type Docs struct {
	Capability string `json:"capability,omitempty"`
	Inputs     string `json:"inputs,omitempty"`
	Outputs    string `json:"outputs,omitempty"`
}

// Hints are what MCP clients are told about a tool. Here they only raise: see Declared.
type Hints struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Runner is how a tool's work is done, as far as the digest has to cover it.
type Runner struct {
	Kind RunnerKind      `json:"kind"`
	Spec json.RawMessage `json:"spec,omitempty"` // of process, script and mcp: what runs, exactly
}

// RunnerKind names a way to run.
type RunnerKind string

const (
	Builtin RunnerKind = "builtin" // part of this program
	Library RunnerKind = "library" // a function of the program that embeds the engine
	Process RunnerKind = "process" // an argv template
	Script  RunnerKind = "script"  // a text given to an interpreter
	MCP     RunnerKind = "mcp"     // a tool of an upstream server
)

// Constraints bound how a tool may be used over time.
type Constraints struct {
	Quotas           []writ.Quota `json:"quotas,omitempty"`     // max_invocations and rate
	OnlyAfter        []string     `json:"only_after,omitempty"` // tools that must have succeeded before, in this task
	Forbidden        bool         `json:"forbidden,omitempty"`  // for the program's own code, never for a model
	RequiresApproval bool         `json:"requires_approval,omitempty"`
}

// Example is one call with what it is for.
type Example struct {
	What string          `json:"what"`
	Args json.RawMessage `json:"args"`
}

// Runs says where the tool's work happens.
type Runs string

const (
	InProcess Runs = "in_process" // in the daemon, through os.Root
	InBox     Runs = "in_box"     // in a sandbox
)

// Func is the work of a tool. It returns an error only when the call could not be
// carried out at all; what the model can act on is a Result with IsError.
type Func func(context.Context, writ.Writ) (writ.Result, error)

// Tool is a definition ready for calls.
type Tool struct {
	Definition
	Digest writ.Digest
	Shape  *policy.Shape
	Run    Func
	schema *schema

	canonical string
}

// Canonical is the definition as its digest covers it.
func (t *Tool) Canonical() string { return t.canonical }

// New checks a definition and readies it.
func New(d Definition, run Func) (*Tool, error) {
	if !ValidName(d.Name) {
		return nil, fmt.Errorf("tool name %q: use letters, digits, _ and -, at most 64", d.Name)
	}
	if run == nil {
		return nil, fmt.Errorf("tool %s has nothing to run", d.Name)
	}
	d.Tier = cmp.Or(d.Tier, "medium")
	d.Runs = cmp.Or(d.Runs, InProcess)
	d.Runner.Kind = cmp.Or(d.Runner.Kind, Library)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	t := &Tool{Definition: d, Run: run}
	var err error
	if t.schema, err = compile(d.Runner.Kind, d.Schema, d.Asks...); err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	// An upstream's schema has no annotations, which it could not make for itself, so
	// there is nothing to follow through its references: every string is looked at.
	if d.Runner.Kind != MCP {
		if t.Shape, err = policy.ShapeOf(t.schema.raw); err != nil {
			return nil, fmt.Errorf("tool %s: %w", d.Name, err)
		}
	}
	if d.Runner.Kind != Builtin && t.Shape.Connects() {
		return nil, fmt.Errorf("tool %s: x-writ-connection and x-writ-method are for built-in tools; use x-writ-host or x-writ-url", d.Name)
	}
	// What an upstream promises a shape of is not the text, and package upstream holds
	// it against the schema where it arrives.
	if d.Output != nil && d.Runner.Kind != MCP {
		if t.Run, err = checked(&d, run); err != nil {
			return nil, fmt.Errorf("tool %s: %w", d.Name, err)
		}
	}
	canonical, err := wire.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	t.canonical, t.Digest = canonical, wire.Digest(canonical)
	return t, nil
}

// validate refuses a definition that says something no part of writ enforces.
func (d *Definition) validate() error {
	if !slices.Contains([]string{"cheap", "medium", "expensive"}, d.Tier) {
		return fmt.Errorf("cost_tier: %q is none of cheap, medium, expensive", d.Tier)
	}
	if !slices.Contains([]Runs{InProcess, InBox}, d.Runs) {
		return fmt.Errorf("runs: %q is none of %s, %s", d.Runs, InProcess, InBox)
	}
	if !slices.Contains([]RunnerKind{Builtin, Library, Process, Script, MCP}, d.Runner.Kind) {
		return fmt.Errorf("runner: %q is none of builtin, library, process, script, mcp", d.Runner.Kind)
	}
	if d.Runs == InBox && !(d.Policy.Files.Read.Whole() && d.Policy.Files.Write.Whole()) {
		return errors.New("policy.filesystem: a box holds whole directories (/dir/**) and single paths; write the globs so")
	}
	if d.Brokered && (d.Runs != InProcess || d.Runner.Kind != Builtin) {
		return errors.New("brokered: only a built-in tool that runs in this process has its requests made by the broker")
	}
	if len(d.Programs) > 0 && (d.Runs != InBox || d.Policy.Exec != policy.All) {
		return errors.New("programs: only a box can hold a tool to them, and only a tool that executes something has any")
	}
	if slices.Contains(d.Constraints.OnlyAfter, d.Name) {
		return errors.New("constraints: only_after names the tool itself, which could then never run")
	}
	return d.Policy.Validate()
}

// Declared is what the definition alone says of its class, and whether it is
// dangerous: the highest of the class it names and what its annotations say. Those
// lower nothing, whatever they promise; one that is not there says nothing.
func (d *Definition) Declared() (class writ.Class, dangerous bool) {
	class, destroys := d.Class, says(d.Hints.Destructive, true)
	if says(d.Hints.OpenWorld, true) {
		class = min(class, writ.ClassReadOnly)
		if destroys || says(d.Hints.ReadOnly, false) {
			class = writ.ClassWrite
		}
	}
	return class, d.Dangerous || destroys
}

func says(hint *bool, v bool) bool { return hint != nil && *hint == v }

// ActionOf is the action type of a call with these arguments, and of nothing but them.
func (t *Tool) ActionOf(args map[string]any) action.Type {
	if t.ActionBy == nil {
		return t.Action
	}
	value, given := args[t.ActionBy.Argument].(string)
	if found, ok := t.ActionBy.Types[value]; ok && given {
		return found
	}
	return t.Action
}

// Actions lists every type that a call of the tool can have.
func (t *Tool) Actions() []action.Type {
	out := []action.Type{t.Action}
	if t.ActionBy != nil {
		for _, a := range t.ActionBy.Types {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ValidName reports whether every model API accepts the name.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Catalog is the set of tools of one engine. Immutable once made.
type Catalog struct {
	byName map[string]*Tool
	sorted []*Tool
}

// NewCatalog refuses two tools whose names differ at most by case.
func NewCatalog(tools ...*Tool) (*Catalog, error) {
	c := &Catalog{byName: make(map[string]*Tool, len(tools))}
	folded := map[string]string{}
	for _, t := range tools {
		key := strings.ToLower(t.Name)
		if other, taken := folded[key]; taken {
			return nil, fmt.Errorf("tool %s is defined twice (the other is %s)", t.Name, other)
		}
		folded[key] = t.Name
		c.byName[t.Name] = t
	}
	c.sorted = slices.SortedFunc(slices.Values(tools), func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// Lookup finds a tool by its exact name.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// All lists the tools by name. The slice is the caller's to read only.
func (c *Catalog) All() []*Tool { return c.sorted }

// Missing is the error for a name that is not there. It suggests only names in
// visible: a caller must not learn of tools it may not use.
func Missing(name string, visible []string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no tool %q%s", short(name), spell.Hint(name, visible)), nil)
}
