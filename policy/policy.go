// Package policy is what a tool declares of itself (which files, hosts, variables
// and programs it touches, and how risky it is), the globs that say so and their
// containment, and Layer 1: the gate that holds a call's arguments against the
// declaration before anything runs. It is pure: paths reach it resolved.
package policy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
)

// Policy is a tool's declaration. Unspecified is not "everything": for a
// sandboxed run it means none.
type Policy struct {
	Risk    action.Risk `json:"risk"`
	Files   Files       `json:"filesystem"`
	Network Network     `json:"network"`
	Env     Env         `json:"environment"`
	Exec    Stance      `json:"exec"`              // Unspecified, None (deny) or All (allow)
	Secrets []string    `json:"secrets,omitempty"` // what it may be lent on the way out, never given: see SignsIn
}

// Stance is how much of something a tool declares.
type Stance uint8

const (
	Unspecified Stance = iota
	None
	Listed
	All
)

var stanceNames = []string{"unspecified", "none", "listed", "all"}

func (s Stance) String() string {
	if int(s) < len(stanceNames) {
		return stanceNames[s]
	}
	return fmt.Sprintf("invalid(%d)", s)
}

func (s Stance) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText rejects what it does not know: a misspelt stance must not read as
// unspecified.
func (s *Stance) UnmarshalText(b []byte) error {
	i := slices.Index(stanceNames, string(b))
	if i < 0 {
		return &action.UnknownError{What: "stance", Got: string(b), Known: stanceNames}
	}
	*s = Stance(i)
	return nil
}

// Files is the filesystem stance.
type Files struct {
	Read  Globs `json:"read"`
	Write Globs `json:"write"`
}

// Globs is one side of it: doublestar v4 patterns over absolute paths.
type Globs struct {
	Stance Stance   `json:"mode"`
	Globs  []string `json:"globs,omitempty"`
}

// Paths declares globs.
func Paths(globs ...string) Globs { return Globs{Stance: Listed, Globs: globs} }

// Network is the network stance.
type Network struct {
	Stance Stance        `json:"mode"`
	Hosts  host.Patterns `json:"hosts,omitempty"`
}

// Env is the environment stance.
type Env struct {
	Stance Stance   `json:"mode"`
	Vars   []string `json:"vars,omitempty"`
}

// Validate refuses a declaration that could not be enforced as written.
func (p Policy) Validate() error {
	if err := p.Files.Read.validate(); err != nil {
		return fmt.Errorf("filesystem.read: %w", err)
	}
	if err := p.Files.Write.validate(); err != nil {
		return fmt.Errorf("filesystem.write: %w", err)
	}
	if err := p.Network.Stance.among(None, Listed, All); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if (p.Network.Stance == Listed) != (len(p.Network.Hosts) > 0) {
		return fmt.Errorf("network: hosts are given exactly when the mode is hosts")
	}
	if err := p.Env.Stance.among(None, Listed); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if (p.Env.Stance == Listed) != (len(p.Env.Vars) > 0) {
		return fmt.Errorf("environment: variables are given exactly when the mode is vars")
	}
	if err := p.Exec.among(None, All); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	for _, s := range p.Secrets {
		if err := CheckSecret(s); err != nil {
			return fmt.Errorf("secrets: %w", err)
		}
	}
	return nil
}

// among refuses a stance that has no meaning where it stands.
func (s Stance) among(known ...Stance) error {
	if s != Unspecified && !slices.Contains(known, s) {
		return fmt.Errorf("there is no mode %s", s)
	}
	return nil
}

func (g Globs) validate() error {
	if err := g.Stance.among(None, Listed, All); err != nil {
		return err
	}
	if (g.Stance == Listed) != (len(g.Globs) > 0) {
		return fmt.Errorf("globs are given exactly when the mode is globs")
	}
	for _, s := range g.Globs {
		if err := validGlob(s); err != nil {
			return err
		}
	}
	return nil
}

func validGlob(s string) error {
	if err := CheckGlob(s); err != nil {
		return fmt.Errorf("glob %q: %w", clip(s), err)
	}
	if !strings.HasPrefix(s, "/") || path.Clean(s) != s {
		return fmt.Errorf("glob %q is not an absolute, clean path pattern", s)
	}
	return nil
}

// Engaged reports whether the declaration takes part in the argument gate: a
// tool that declares neither reading nor writing, and no network, is not gated
// here (its sandbox still reaches nothing).
func (p Policy) Engaged() bool {
	return p.Files.engaged() || p.Network.Stance != Unspecified
}

func (f Files) engaged() bool {
	return f.Read.Stance != Unspecified || f.Write.Stance != Unspecified
}

// Violation returns why a target lies outside the declaration, or "". A target
// that could not be resolved is always outside.
func (p Policy) Violation(t writ.Target) string {
	if t.Problem != "" {
		return fmt.Sprintf("argument %s: %s", Shown(t.Pointer), t.Problem)
	}
	switch t.Kind {
	case writ.TargetPath:
		if p.Files.engaged() && !p.Files.allows(t.Side, t.Path) {
			return fmt.Sprintf("argument %s: path %q is outside what the tool declares", Shown(t.Pointer), clip(t.Value))
		}
	case writ.TargetHost:
		if !p.Network.allows(t.Host) {
			return fmt.Sprintf("argument %s: host %q is outside what the tool declares", Shown(t.Pointer), clip(t.Value))
		}
	}
	return ""
}

// Shown is a JSON pointer as it may stand in a message: keys are the caller's, and
// must not break the line, hide in it or fill it.
func Shown(pointer string) string {
	pointer = clip(pointer)
	if strings.ContainsFunc(pointer, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(pointer)
	}
	return pointer
}

func (f Files) allows(side writ.Side, p string) bool {
	switch side {
	case writ.SideRead:
		return f.Read.match(p)
	case writ.SideWrite:
		return f.Write.match(p)
	}
	return f.Read.match(p) || f.Write.match(p)
}

func (g Globs) match(p string) bool {
	switch g.Stance {
	case All:
		return true
	case Listed:
		return slices.ContainsFunc(g.Globs, func(glob string) bool { return Match(glob, p) })
	}
	return false
}

func (n Network) allows(normal string) bool {
	switch n.Stance {
	case All:
		return true
	case Listed:
		e, err := host.ParseEndpoint(normal)
		return err == nil && n.Hosts.Match(e)
	}
	return false
}
