// Package tool holds tool definitions and the catalog they are looked up in.
// Families of built-in tools live in packages below this one. A definition says
// what a call means; its digest pins that, so that a changed definition is a new
// tool (I8).
package tool

import (
	"context"
	"encoding/json"
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
	Class       writ.Class      `json:"egress_class"`
	Tier        string          `json:"cost_tier"` // cheap, medium, expensive
	Policy      policy.Policy   `json:"policy"`
	Schema      json.RawMessage `json:"parameters"`
	Examples    []Example       `json:"examples,omitempty"`
	Failures    []string        `json:"failure_modes,omitempty"`
	Untrusted   bool            `json:"untrusted_output"`
	Runs        Runs            `json:"runs"`
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
}

// New checks a definition and readies it.
func New(d Definition, run Func) (*Tool, error) {
	if !ValidName(d.Name) {
		return nil, fmt.Errorf("tool name %q: use letters, digits, _ and -, at most 64", d.Name)
	}
	if run == nil {
		return nil, fmt.Errorf("tool %s has nothing to run", d.Name)
	}
	if err := d.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	t := &Tool{Definition: d, Run: run}
	var err error
	if t.schema, err = compile(d.Schema); err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	if t.Shape, err = policy.ShapeOf(t.schema.raw); err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	canonical, err := wire.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	t.Digest = wire.Digest(canonical)
	return t, nil
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
