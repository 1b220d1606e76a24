package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// How far delegation goes: children of one agent at a time, agents above one, and
// how long a child lasts at most.
const (
	maxChildren   = 32
	maxBelow      = 256 // of the agent at the top
	maxDepth      = 8
	maxDelegation = 24 * time.Hour
)

// Delegated is a child and its token, which is shown this once.
type Delegated struct {
	Agent   string `json:"agent"`
	Parent  string `json:"parent"`
	Token   string `json:"token"`
	Expires string `json:"expires_at"`
}

// Delegate makes a child of the caller's agent, which works in the caller's session
// and task. The child's reach is what it asks for within its ancestors' reach at
// each moment; so this takes nobody's passphrase. It lasts as long as it says, and
// at most as the session, the task, the token and the agent it was made by.
func (e *Engine) Delegate(ctx context.Context, c Call, label string, lasts time.Duration, r config.Request) (Delegated, error) {
	if !config.ValidName(label) || len(label) > 32 {
		return Delegated{}, writ.Fail(writ.Invalid, "name: use letters, digits, _ . and -, at most 32, beginning with a letter or digit", nil)
	}
	if lasts <= 0 || lasts > maxDelegation {
		return Delegated{}, writ.Fail(writ.Invalid, fmt.Sprintf("lasts: a delegation lasts from 1s to %s", maxDelegation), nil)
	}
	session, task, leave, err := e.enter(ctx, c)
	if err != nil {
		return Delegated{}, err
	}
	defer leave()
	rules := e.at()
	parent, ok := rules.agents[c.Agent]
	if !ok {
		return Delegated{}, e.noAgent(c.Agent)
	}
	if err := rules.alive(c.Agent, e.ledger.Now()); err != nil {
		return Delegated{}, err
	}
	if len(rules.chain(c.Agent)) >= maxDepth {
		return Delegated{}, writ.Fail(writ.Denied, fmt.Sprintf("denied: %d agents stand above each other already", maxDepth), nil)
	}
	name := c.Agent + "/" + label + "-" + newID("")[:6]
	if _, err := rules.cfg.Delegate(parent, name, r); err != nil {
		return Delegated{}, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return Delegated{}, err
	}
	token, id, hash := person.NewToken()
	now := e.now()
	d := store.Delegation{
		Name: name, Parent: c.Agent, ParentToken: c.Token, Session: session, Task: task, Token: id, Request: string(request),
		Made: now.UTC().Format(ledger.TimeFormat), Expires: now.Add(lasts).UTC().Format(ledger.TimeFormat),
	}
	ctx = context.WithoutCancel(ctx) // from the commit on it is there, whoever waits for it
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := good(tx, c.Token); err != nil {
			return ledger.Entry{}, err
		}
		ok, err := tx.AddDelegation(d, maxChildren, maxBelow)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, fmt.Sprintf("agent %s has %d children, or there are %d agents below the one at the top; end some with: writ agent end", c.Agent, maxChildren, maxBelow), nil)
		}
		if err == nil {
			err = tx.AddToken(store.Token{ID: id, Agent: name, Hash: hash[:], Created: d.Made})
		}
		return ledger.Entry{Kind: "agent.delegated", Agent: c.Agent, Data: []wire.Field{
			wire.Str("child", name), wire.Str("token", id), wire.Str("session", session), wire.Str("task", task),
			wire.Str("expires", d.Expires), wire.Raw("request", canonicalJSON(request)),
		}}, err
	})
	if err != nil {
		return Delegated{}, err
	}
	if err := e.refresh(ctx); err != nil {
		return Delegated{}, err
	}
	return Delegated{name, c.Agent, token, d.Expires}, e.loadState(ctx)
}

// good refuses what was begun with a token that has been revoked since. It is asked
// inside the transaction: a revocation comes before it, and then nothing is opened or
// delegated, or after it, and then it is found and ended.
func good(tx *store.Tx, token string) error {
	if token == "" {
		return nil
	}
	ok, err := tx.TokenGood(token)
	if err == nil && !ok {
		err = writ.Fail(writ.Unauthenticated, "the token was revoked meanwhile", nil)
	}
	return err
}

func canonicalJSON(text []byte) string {
	out, err := wire.Canonical(text)
	if err != nil {
		return "null" // it was marshalled a moment ago
	}
	return out
}

// EndDelegation ends a child and all below it. by is the agent that asks, which must
// stand above it; empty: an operator.
func (e *Engine) EndDelegation(ctx context.Context, by, name string) error {
	if by != "" && !strings.HasPrefix(name, by+"/") {
		return noDelegation(name)
	}
	found := false
	err := e.endDelegations(ctx, "ended", func(d store.Delegation) bool {
		found = found || d.Name == name
		return d.Name == name
	})
	if err == nil && !found { // ended before; whoever did may have been cut off in the middle
		ctx = context.WithoutCancel(ctx)
		return errors.Join(noDelegation(name), e.refresh(ctx), e.loadState(ctx))
	}
	return err
}

func noDelegation(name string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no delegated agent %q; 'writ agent tree' shows them", clip(name)), nil)
}

// endDelegations ends the live ones that match and all below them: their tokens,
// what they run, their jobs, and what they asked people. Memory first, so that
// nothing of them begins whatever becomes of the rest; and to the end, whoever asked.
func (e *Engine) endDelegations(ctx context.Context, why string, match func(store.Delegation) bool) error {
	ctx = context.WithoutCancel(ctx)
	live, err := e.store.Delegations(ctx)
	if err != nil {
		return err
	}
	ending := map[string]bool{}
	for _, d := range live { // parents come first
		if match(d) || ending[d.Parent] {
			ending[d.Name] = true
		}
	}
	if len(ending) == 0 {
		return nil
	}
	wait := e.stops.end(ending)
	var errs []error
	for _, name := range sortedNames(ending) {
		errs = append(errs, e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
			ok, err := tx.EndDelegation(name, why, e.ledger.Now())
			if err != nil || !ok { // somebody else ended it
				return ledger.Entry{}, err
			}
			also, err := endAsked(tx, name, e.ledger.Now())
			return ledger.Entry{Kind: "agent.ended", Agent: name, Data: []wire.Field{wire.Str("why", why)}, Also: also}, err
		}))
	}
	wait()
	for name := range ending {
		e.jobs.EndAgent(name)
		e.boxes.EndAgent(name)
	}
	e.desk.Changed()
	return errors.Join(append(errs, e.refresh(ctx), e.loadState(ctx))...)
}

// Node is an agent in the tree of delegation, with what it reaches.
type Node struct {
	Agent
	Delegated string `json:"delegated,omitempty"` // until when, for a child that an agent made
	Children  []Node `json:"children,omitempty"`
}

// Tree is every agent under the one it was delegated by.
func (e *Engine) Tree(ctx context.Context) ([]Node, error) {
	all, err := e.Agents(ctx)
	if err != nil {
		return nil, err
	}
	r := e.at()
	below := map[string][]Agent{}
	for _, a := range all {
		below[a.Parent] = append(below[a.Parent], a)
	}
	var grow func(parent string, depth int) []Node
	grow = func(parent string, depth int) []Node {
		var out []Node
		for _, a := range below[parent] {
			n := Node{Agent: a, Delegated: r.delegations[a.Name].Expires}
			if depth < 32 {
				n.Children = grow(a.Name, depth+1)
			}
			out = append(out, n)
		}
		slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
		return out
	}
	return grow("", 0), nil
}
