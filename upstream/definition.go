package upstream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// DefinitionOptions are what an operator says of an upstream's tool.
type DefinitionOptions struct {
	Name string // writ's name for it; default Name(server, tool)
	At   Place  // which program or address it is; another one under the same name is another tool

	// Class, where set, is the operator's word instead of what the annotations come
	// to. Whoever sets a lower one holds the waiver for it.
	Class     *writ.Class
	Dangerous bool
}

// Definition is a server's tool as writ has it.
//
// Its class is what the server's annotations come to, and never less: write where
// there are none, write unless readOnlyHint is true, read_only where it is and
// destructiveHint is not; destructiveHint also makes it dangerous. That is the part of
// "what MCP annotations say" in the effective class (§6.1). It is a proposal all the
// same: a server that says readOnlyHint of a tool that writes is believed by nobody
// until a person accepts the definition, with this class on the screen and bound to
// the definition's digest. A server can then not lower it any further: another
// annotation is another definition, suspended until it is accepted again (I8).
func Definition(server string, t Tool, o DefinitionOptions) (tool.Definition, error) {
	d := tool.Definition{
		Name: o.Name, Title: t.Title, Description: t.Description,
		Category: action.MCP, Action: action.MCP.Default(), Tier: "medium",
		Schema: t.Schema, Output: t.Output, Hints: t.Hints,
		Untrusted: true, Runs: tool.InProcess,
	}
	if d.Name == "" {
		d.Name = Name(server, t.Name)
	}
	d.Class, d.Dangerous = Proposed(t)
	if o.Class != nil {
		d.Class = *o.Class
	}
	d.Dangerous = d.Dangerous || o.Dangerous
	spec, err := wire.Marshal(RunnerSpec{Server: server, Name: t.Name, Digest: t.Digest, At: o.At})
	if err != nil {
		return d, err
	}
	d.Runner = tool.Runner{Kind: tool.MCP, Spec: json.RawMessage(spec)}
	if _, err := tool.New(d, nowhere); err != nil {
		return d, err
	}
	return d, nil
}

// RunnerSpec is what runs: a server's tool, as its definition was when it was pinned.
type RunnerSpec struct {
	Server string      `json:"server"`
	Name   string      `json:"name"`
	Digest writ.Digest `json:"digest"`
	At     Place       `json:"at,omitzero"`
}

// Place is the program, or the address, that a tool is of, as people may see it: what
// looks like a secret is not in it. Digest covers all of it as it really is, and the
// values of the environment and the headers, which decide what a program loads and as
// whom a server answers. What is kept elsewhere is in both by reference.
type Place struct {
	Command []string `json:"command,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	URL     string   `json:"url,omitempty"`
	Digest  string   `json:"digest,omitempty"`

	// Env and Headers are values by name; of one that is hidden, a few bits of its digest,
	// which tell it from another and not what it is.
	Env       map[string]string `json:"env_values,omitempty"`
	Headers   map[string]string `json:"header_values,omitempty"`
	SecretEnv map[string]string `json:"secret_env,omitempty"` // references
	Auth      string            `json:"auth,omitempty"`
}

// IsZero reports whether nothing is known of it.
func (p Place) IsZero() bool { return p.Digest == "" }

// nowhere is what a definition that is only being checked runs.
func nowhere(context.Context, writ.Writ) (writ.Result, error) {
	return writ.Result{}, writ.Fail(writ.Internal, "the tool has nothing to run", nil)
}

// Proposed is the class that a tool's annotations come to, and whether it is
// dangerous. Two hints that contradict each other are read as the worse.
func Proposed(t Tool) (writ.Class, bool) {
	reads := t.Hints.ReadOnly != nil && *t.Hints.ReadOnly
	destroys := t.Hints.Destructive != nil && *t.Hints.Destructive
	if reads && !destroys {
		return writ.ClassReadOnly, false
	}
	return writ.ClassWrite, destroys
}

// An outputChecker holds structuredContent against a schema, to the letter.
type outputChecker func(json.RawMessage) error

func outputCheck(schema json.RawMessage) (outputChecker, error) {
	t, err := tool.New(tool.Definition{
		Name: "result", Category: action.MCP, Action: action.MCP.Default(), Schema: schema, Runner: tool.Runner{Kind: tool.MCP},
	}, nowhere)
	if err != nil {
		return nil, err
	}
	return func(v json.RawMessage) error {
		canonical, err := wire.CanonicalObject(v)
		if err != nil {
			return err
		}
		// Args reads "5" as 5 where a schema wants a number, for models; a server's
		// result gets no such help.
		read, _, err := t.Args([]byte(canonical))
		if err == nil && read != canonical {
			err = writ.Fail(writ.Invalid, "result: a string stands where the schema wants another type", nil)
		}
		return err
	}, nil
}

// Wanted reports whether the enabled and disabled lists leave a tool in. Both name
// tools as their server does; an empty enabled list names all.
func Wanted(name string, enabled, disabled []string) bool {
	return (len(enabled) == 0 || slices.Contains(enabled, name)) && !slices.Contains(disabled, name)
}
