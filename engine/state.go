package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// tokens are the good tokens by hash, kept in step with the store.
type tokens struct {
	mu     sync.RWMutex
	byHash map[[32]byte]store.Token
	byID   map[string]store.Token // the revoked ones too

	adding sync.Mutex // held from looking for one to adding it
}

// loadState takes up what the store says. One at a time, reading included: what was
// read before somebody else's change must not replace what was read after it.
func (e *Engine) loadState(ctx context.Context) error {
	e.loading.Lock()
	defer e.loading.Unlock()
	all, err := e.store.Tokens(ctx)
	if err != nil {
		return err
	}
	byHash, byID := map[[32]byte]store.Token{}, map[string]store.Token{}
	for _, t := range all {
		byID[t.ID] = t
		if t.Revoked == "" && len(t.Hash) == 32 {
			byHash[[32]byte(t.Hash)] = t
		}
	}
	e.tokens.mu.Lock()
	e.tokens.byHash, e.tokens.byID = byHash, byID
	e.tokens.mu.Unlock()
	stopped, err := e.store.Stops(ctx)
	if err != nil {
		return err
	}
	for _, s := range stopped {
		e.stops.set(s.Agent, true)
	}
	return nil
}

// Caller is who a token, or another proof, stands for.
type Caller struct {
	Agent   string
	Token   string // its id
	Session string // of an agent that was delegated: the one it works in
}

// Authenticate turns a bearer token into the agent it was made for.
func (e *Engine) Authenticate(token string) (Caller, error) {
	e.tokens.mu.RLock()
	t, ok := e.tokens.byHash[person.TokenHash(token)]
	e.tokens.mu.RUnlock()
	if !ok {
		return Caller{}, writ.Fail(writ.Unauthenticated, "the token is unknown or revoked; 'writ agent token NAME' makes one", nil)
	}
	r := e.at()
	if _, ok := r.agents[t.Agent]; !ok {
		return Caller{}, writ.Fail(writ.Unauthenticated, "the token's agent is not there any more", nil)
	}
	if err := r.alive(t.Agent, e.ledger.Now()); err != nil {
		return Caller{}, err
	}
	return Caller{Agent: t.Agent, Token: t.ID, Session: r.delegations[t.Agent].Session}, nil
}

// Vouch is Authenticate for whom a front door knows by another proof than a token of
// ours: an access token of an issuer, a certificate, a user of this machine. id names the
// proof in the records; it has a colon, as no token's id has. The first time it is
// written down like a token, so that whatever is opened with it can be listed, and it can
// be revoked, by that id. The row's hash is that of a token which nobody gets.
func (e *Engine) Vouch(ctx context.Context, agent, id string) (Caller, error) {
	r := e.at()
	_, there := r.agents[agent]
	_, delegated := r.delegations[agent]
	if !there || delegated || !strings.Contains(id, ":") {
		return Caller{}, writ.Fail(writ.Unauthenticated, "there is no such agent here; ask the operator for the name of yours", nil)
	}
	known := func() (store.Token, bool) {
		e.tokens.mu.RLock()
		defer e.tokens.mu.RUnlock()
		t, ok := e.tokens.byID[id]
		return t, ok
	}
	t, ok := known()
	if !ok {
		e.tokens.adding.Lock()
		defer e.tokens.adding.Unlock()
		if t, ok = known(); !ok { // else somebody else came first
			if err := e.addProof(ctx, agent, id); err != nil {
				return Caller{}, err
			}
			t, _ = known()
		}
	}
	if t.ID != id || t.Revoked != "" {
		return Caller{}, writ.Fail(writ.Unauthenticated, "this proof of who you are was revoked; ask the operator", nil)
	}
	return Caller{Agent: agent, Token: id}, nil
}

func (e *Engine) addProof(ctx context.Context, agent, id string) error {
	ctx = context.WithoutCancel(ctx) // from the commit on it is there, whoever waits for it
	_, _, hash := person.NewToken()
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		t := store.Token{ID: id, Agent: agent, Hash: hash[:], Created: e.ledger.Now()}
		return ledger.Entry{Kind: "token.added", Agent: agent, Data: []wire.Field{wire.Str("token", id)}}, tx.AddToken(t)
	})
	if err != nil {
		return err
	}
	return e.loadState(ctx)
}

// NewToken makes a bearer token for an agent. It takes a person: whoever holds a
// token acts as that agent.
func (e *Engine) NewToken(ctx context.Context, agent string, cred Credentials) (token, id string, err error) {
	if _, ok := e.at().agents[agent]; !ok {
		return "", "", e.noAgent(agent)
	}
	if _, delegated := e.at().delegations[agent]; delegated {
		return "", "", writ.Fail(writ.Conflict, fmt.Sprintf("agent %s was delegated and has the token it was made with", agent), nil)
	}
	by, err := e.person(ctx, cred, "operate")
	if err != nil {
		return "", "", err
	}
	token, id, hash := person.NewToken()
	t := store.Token{ID: id, Agent: agent, Hash: hash[:], Created: e.ledger.Now()}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		return ledger.Entry{Kind: "token.added", Agent: agent, Person: by, Data: []wire.Field{wire.Str("token", id)}}, tx.AddToken(t)
	})
	if err != nil {
		return "", "", err
	}
	return token, id, e.loadState(ctx)
}

// RevokeToken ends a token. It narrows, so it takes nobody's passphrase.
func (e *Engine) RevokeToken(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx) // whoever asked may go; what was begun is carried out
	wait := func() {}
	if id != "" {
		wait = e.stops.revoke(id) // first: whatever happens below, nothing more begins with it
	}
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.RevokeToken(id, e.ledger.Now())
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no good token %q; 'writ agent show' lists them", id), nil)
		}
		return ledger.Entry{Kind: "token.revoked", Data: []wire.Field{wire.Str("token", id)}}, err
	})
	wait()
	// Also where it was revoked before: somebody may have been cut off in the middle.
	return errors.Join(err, e.loadState(ctx), e.endToken(ctx, id))
}

// endToken ends what was opened and delegated with a token: its sessions, with all
// that runs in them, and the children made with it.
func (e *Engine) endToken(ctx context.Context, id string) error {
	e.scopes.mu.Lock()
	var mine []string
	for _, s := range e.scopes.sessions {
		if s.token == id {
			mine = append(mine, s.id)
		}
	}
	e.scopes.mu.Unlock()
	var errs []error
	for _, session := range mine {
		if err := e.EndSession(ctx, "", session, "revoked"); err != nil && writ.KindOf(err) != writ.NotFound {
			errs = append(errs, err)
		}
	}
	errs = append(errs, e.endDelegations(ctx, "revoked", func(d store.Delegation) bool { return d.ParentToken == id || d.Token == id }))
	return errors.Join(errs...)
}

// Decide records a person's answer to a request.
func (e *Engine) Decide(ctx context.Context, a approval.Answer, cred Credentials) error {
	by, err := e.person(ctx, cred, "approve")
	if err != nil {
		return err
	}
	if a.Approve && e.mayBlock() { // an answer counts once: not for a call that could only fail
		is, ok, err := e.store.Standing(ctx, a.ID)
		if err != nil {
			return err
		}
		if why := e.Blocked(is.Tool); ok && why != "" {
			return writ.Fail(writ.Conflict, fmt.Sprintf("%s would not run now, and still waits: %s; then approve it, or reject it", a.ID, why), nil)
		}
	}
	a.Person, a.Factor = by, "passphrase"
	return e.desk.Decide(ctx, a)
}

// Desk is where requests wait; for listing and showing.
func (e *Engine) Desk() *approval.Desk { return e.desk }

// Ledger is the record; for reading and verifying.
func (e *Engine) Ledger() *ledger.Ledger { return e.ledger }

// Store is the store; for reading.
func (e *Engine) Store() *store.DB { return e.store }

// Stop refuses an agent's new calls ("*": everybody's), voids what it has not
// used, and ends what runs. It survives restarts and needs nobody's passphrase.
func (e *Engine) Stop(ctx context.Context, agent, reason string) error {
	if known, err := e.knows(ctx, agent); err != nil || !known {
		return errors.Join(err, e.noAgent(agent))
	}
	ctx = context.WithoutCancel(ctx)
	e.stops.set(agent, true) // first: whatever happens below, nothing more runs
	var ending sync.WaitGroup
	for _, name := range e.at().below(agent) { // beside the record, so that a slow store delays none
		ending.Go(func() { e.jobs.EndAgent(name); e.boxes.EndAgent(name) })
	}
	defer ending.Wait()
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := tx.AddStop(store.Stop{Agent: agent, At: e.ledger.Now(), Reason: reason}); err != nil {
			return ledger.Entry{}, err
		}
		entry := ledger.Entry{Kind: "stop.set", Agent: agent, Data: []wire.Field{wire.Str("reason", reason)}}
		for _, name := range e.at().below(agent) {
			also, err := endAsked(tx, name, e.ledger.Now())
			if err != nil {
				return ledger.Entry{}, err
			}
			entry.Also = append(entry.Also, also...)
		}
		return entry, nil
	})
	if err == nil {
		e.desk.Changed()
	}
	return err
}

// endAsked ends what an agent asked for and what it was granted: nothing of it is
// good afterwards.
func endAsked(tx *store.Tx, agent, now string) ([]ledger.Entry, error) {
	if err := tx.RevokeGrants(agent, "", now); err != nil {
		return nil, err
	}
	return approval.EndAsked(tx, agent, "", "", "stopped", now)
}

// knows reports whether there is anything to stop under a name: an agent, one that
// left the configuration and runs on or has tokens, or everybody.
func (e *Engine) knows(ctx context.Context, agent string) (bool, error) {
	if _, ok := e.at().agents[agent]; ok || agent == "*" || e.stops.has(agent) {
		return true, nil
	}
	tokens, err := e.store.Tokens(ctx)
	return slices.ContainsFunc(tokens, func(t store.Token) bool { return t.Agent == agent }), err
}

// below is an agent and every agent that it stands above; "*" is everybody.
func (r *rules) below(agent string) []string {
	if agent == "*" {
		return []string{"*"}
	}
	out := []string{agent}
	for name := range r.agents {
		if name != agent && slices.Contains(r.chain(name), agent) {
			out = append(out, name)
		}
	}
	return out
}

// Lift ends a stop. Only a person does.
func (e *Engine) Lift(ctx context.Context, agent string, cred Credentials) error {
	by, err := e.person(ctx, cred, "operate")
	if err != nil {
		return err
	}
	e.loading.Lock() // nobody takes up a stop that was read before it was lifted
	defer e.loading.Unlock()
	err = e.ledger.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.LiftStop(agent)
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no stop of %q by that name; stops are lifted as they were set, by agent or with --all", agent), nil)
		}
		return ledger.Entry{Kind: "stop.lifted", Agent: agent, Person: by}, err
	})
	if err == nil {
		e.stops.set(agent, false)
	}
	return err
}
