package approval

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Allow is what a person grants beyond the call they approve: later calls of the same
// agent and tool whose arguments are the same, but for those that Match names.
type Allow struct {
	Uses  int
	For   time.Duration
	Match map[string]string // by argument: a pattern that a person wrote
}

// The bounds of a grant: it is narrow, or it is a change of the configuration.
const (
	maxUses  = 1000
	maxGrant = 7 * 24 * time.Hour
)

// Pattern is what a grant covers.
type Pattern struct {
	Args  map[string]json.RawMessage `json:"args"`  // which have to be exactly so
	Match map[string]string          `json:"match"` // which have to match
	Names []ResolvedName             `json:"names"` // what the paths and hosts in those that do not vary really are
}

// grant is what an answer grants, from a request that it approves.
func (d *Desk) grant(i store.Invocation, ans Answer) (store.Grant, error) {
	a := ans.Grant
	switch {
	case i.Dangerous || i.NotBy != "" || i.Quorum > 1:
		return store.Grant{}, writ.Fail(writ.Denied, "what is dangerous, or takes four eyes or several people, is never granted; approve it each time", nil)
	case a.Uses < 1 || a.Uses > maxUses:
		return store.Grant{}, writ.Fail(writ.Invalid, fmt.Sprintf("uses: a grant is for 1 to %d calls", maxUses), nil)
	case a.For < time.Second || a.For > maxGrant:
		return store.Grant{}, writ.Fail(writ.Invalid, "for: a grant lasts from a second to 7 days", nil)
	case i.Status != "pending":
		return store.Grant{}, errNotDecided
	}
	s, err := d.unsealed(i)
	if err != nil {
		return store.Grant{}, err
	}
	p, err := patternOf(s, a.Match)
	if err != nil {
		return store.Grant{}, err
	}
	if !p.matches(s.bound().call()) {
		return store.Grant{}, writ.Fail(writ.Invalid, "match: the pattern does not cover the request that it is granted from", nil)
	}
	plain, err := wire.Plain(p)
	if err != nil {
		return store.Grant{}, err
	}
	now := d.now()
	g := store.Grant{ID: "gr_" + strings.ToLower(rand.Text()[:12]), Invocation: i.ID, Agent: i.Agent, Tool: i.Tool, Definition: i.Definition,
		Policy: s.Policy.String(), Reach: s.Base.String(), Class: i.Class, Max: a.Uses, Made: stamp(now), By: ans.Person, Expires: stamp(now.Add(a.For))}
	g.Sealed = d.sealed(plain, boundTo(g))
	return g, nil
}

// boundTo is everything of a grant that its pattern is sealed to.
func boundTo(g store.Grant) string {
	return strings.Join([]string{"grant", g.ID, g.Agent, g.Tool, g.Definition, g.Policy, g.Reach, g.Class, fmt.Sprint(g.Max), g.Made, g.By, g.Expires}, "\x00")
}

func patternOf(s *Shown, match map[string]string) (Pattern, error) {
	p := Pattern{Match: match}
	if err := json.Unmarshal(s.Args, &p.Args); err != nil {
		return p, err
	}
	for name, text := range match {
		value, ok := p.Args[name]
		if !ok || len(value) == 0 || value[0] != '"' {
			return p, writ.Fail(writ.Invalid, fmt.Sprintf("match: %q is not an argument of this call with a text as its value", name), nil)
		}
		delete(p.Args, name)
		if err := checkPattern(text, isPath(s.Resolved, name)); err != nil {
			return p, writ.Fail(writ.Invalid, fmt.Sprintf("match: the pattern of %s: %v", name, err), nil)
		}
	}
	p.Names = p.fixed(s.bound().call())
	return p, nil
}

// fixed is what the paths and hosts of a call really are, in the arguments that do not
// vary. The same words can lead elsewhere later: a link can be moved.
func (p Pattern) fixed(c writ.Call) []ResolvedName {
	var out []ResolvedName
	for _, t := range c.Targets {
		name, _, _ := strings.Cut(strings.TrimPrefix(t.Pointer, "/"), "/")
		if _, varies := p.Match[name]; varies && t.Pointer == "/"+name {
			continue
		}
		out = append(out, ResolvedName{t.Pointer, t.Is(), t.Kind == writ.TargetPath})
	}
	return out
}

func isPath(names []ResolvedName, argument string) bool {
	for _, n := range names {
		if n.Path && n.Argument == "/"+argument {
			return true
		}
	}
	return false
}

// covers finds a live grant for a call: of its agent, tool, definition, policy, class
// and reach, whose pattern its arguments match. What is dangerous is never covered.
func (d *Desk) covers(ctx context.Context, c writ.Call, dec writ.Decision) (store.Grant, bool, error) {
	if dec.Dangerous || dec.Quorum > 1 || d.terms().Quorum > 1 || d.terms().FourEyes == Always && c.Person != "" {
		return store.Grant{}, false, nil
	}
	live, err := d.store.LiveGrants(ctx, c.Agent, c.Tool, stamp(d.now()))
	if err != nil {
		return store.Grant{}, false, err
	}
	for _, g := range live {
		if g.Definition != c.Definition.String() || g.Policy != dec.Policy.String() || g.Reach != dec.Base.String() || g.Class != dec.Class.String() {
			continue
		}
		p, err := d.Pattern(g)
		if err != nil {
			return store.Grant{}, false, err
		}
		if p.matches(c) {
			return g, true, nil
		}
	}
	return store.Grant{}, false, nil
}

// Pattern is what a grant covers. One that this desk did not make covers nothing.
func (d *Desk) Pattern(g store.Grant) (Pattern, error) {
	var p Pattern
	plain, err := d.open(g.Sealed, boundTo(g))
	if err == nil {
		err = json.Unmarshal(plain, &p)
	}
	if err != nil {
		return p, writ.Fail(writ.Internal, fmt.Sprintf("grant %s is not as it was made, and allows nothing; revoke it: writ approval revoke %s", g.ID, g.ID), err)
	}
	return p, nil
}

func (p Pattern) matches(c writ.Call) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Args), &args) != nil || len(args) != len(p.Args)+len(p.Match) {
		return false
	}
	for name, want := range p.Args {
		if string(args[name]) != string(want) { // both are canonical
			return false
		}
	}
	if !slices.Equal(p.Names, p.fixed(c)) {
		return false
	}
	for name, pattern := range p.Match {
		var text string
		if json.Unmarshal(args[name], &text) != nil || !matches(c, name, pattern, text) {
			return false
		}
	}
	return true
}

// Revoke ends a grant. It narrows, so it takes nobody's passphrase.
func (d *Desk) Revoke(ctx context.Context, id, by string) error {
	return d.ledger.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.RevokeGrant(id, by, stamp(d.now()))
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no grant %q that is in force; 'writ approval grants' lists them", id), nil)
		}
		return ledger.Entry{Kind: "grant.revoked", Data: []wire.Field{wire.Str("grant", id)}}, err
	})
}
