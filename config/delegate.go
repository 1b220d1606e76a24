package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/policy"
)

// Request is the reach that an agent asks for a child of its own. What it leaves
// out is the parent's; whatever it asks for, the child gets no more than the parent
// has at that moment (I11).
type Request struct {
	Role        string           `json:"role,omitempty"`
	Level       *access.Level    `json:"level,omitempty"`
	Autonomy    *access.Autonomy `json:"autonomy,omitempty"`
	Allowed     *[]string        `json:"allowed,omitempty"` // these tools and no others
	Denied      []string         `json:"denied,omitempty"`
	Constraints Overrides        `json:"constraints,omitzero"`
	Directory   string           `json:"directory,omitempty"` // inside the parent's workspace
}

// Delegate is the child that a parent asks for: its own grant, which is held
// against its ancestors' at every call.
func (c *Config) Delegate(parent *access.Agent, name string, r Request) (access.Agent, error) {
	if err := r.bounded(); err != nil {
		return access.Agent{}, err
	}
	d := source("request")
	b := &builder{Config: c, d: d, tools: c.tools, at: "the delegation of " + name}
	child := *parent
	child.Name, child.Parent, child.At = name, parent.Name, b.at
	if r.Role != "" || r.Allowed != nil {
		child.Allowed, child.Role = nil, nil
	}
	if r.Allowed != nil {
		child.Role = &access.Role{Name: "requested for " + name, At: b.at, Allowed: b.list("allowed", *r.Allowed, false)}
	}
	b.role(&child, "", r.Role)
	child.Denied = slices.Concat(parent.Denied, b.list("denied", r.Denied, true))
	if parent.Role != nil {
		child.Denied = slices.Concat(child.Denied, parent.Role.Denied)
	}
	if lay(b, "level", &child.Level, r.Level); child.Level != parent.Level {
		child.Constraints = c.levels[child.Level.V]
	}
	lay(b, "autonomy", &child.Autonomy, r.Autonomy)
	b.overlay(&child.Constraints, "constraints", r.Constraints)
	if r.Directory != "" {
		b.directoryBelow(&child, r.Directory)
	}
	if err := d.Err(); err != nil {
		return access.Agent{}, writ.Fail(writ.Invalid, "the request does not hold: "+err.Error(), nil)
	}
	return child, nil
}

// A request is kept, and held against every call of the child.
const (
	maxEntries = 256
	maxEntry   = 128
)

func (r *Request) bounded() error {
	lists := map[string][]string{"denied": r.Denied, "directory": {r.Directory}, "role": {r.Role}}
	for name, list := range map[string]*[]string{
		"allowed": r.Allowed, "constraints.network_allowlist": r.Constraints.NetworkAllowlist, "constraints.requires_approval": r.Constraints.RequiresApproval,
	} {
		if list != nil {
			lists[name] = *list
		}
	}
	for _, name := range sorted(lists) {
		if len(lists[name]) > maxEntries {
			return writ.Fail(writ.TooLarge, fmt.Sprintf("%s: a request has at most %d entries in a list, not %d", name, maxEntries, len(lists[name])), nil)
		}
		for _, text := range lists[name] {
			if limit := maxEntry; len(text) > limit && (name != "directory" || len(text) > 4096) {
				return writ.Fail(writ.TooLarge, fmt.Sprintf("%s: an entry has at most %d characters", name, limit), nil)
			}
		}
	}
	return nil
}

// directoryBelow moves a child into a directory of its parent's workspace.
func (b *builder) directoryBelow(a *access.Agent, dir string) {
	path := filepath.Join(a.Workspace.Path, dir)
	real, err := filepath.EvalSymlinks(path)
	if err == nil && policy.Below(real, a.Workspace.Path) {
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			a.Workspace = access.Workspace{Name: a.Workspace.Name, Path: real, Project: real}
			return
		}
	}
	b.fail("directory", "%s is not a directory inside the workspace", strings.ToValidUTF8(fmt.Sprintf("%q", dir), ""))
}
