package engine

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// Resume waits for a call that a caller made and a person was asked about, and hands
// its outcome over, once. While there is none it fails as pending. Another token of the
// same agent is another caller: what it takes would be lost to the one that asked.
func (e *Engine) Resume(ctx context.Context, who Caller, id string, wait time.Duration) (Outcome, error) {
	until := time.NewTimer(wait)
	defer until.Stop()
	for {
		changed := e.desk.Watch()
		i, err := e.own(ctx, who, id)
		switch {
		case err != nil:
			return Outcome{CallID: id}, err
		case i.Replaced != "":
			id = i.Replaced
			continue
		case i.Completed != "":
			return e.collect(ctx, i)
		}
		select {
		case <-changed:
		case <-until.C:
			return Outcome{CallID: id}, &writ.Error{Kind: writ.Pending, Ref: id, Msg: waits(i)}
		case <-ctx.Done():
			return Outcome{CallID: id}, &writ.Error{Kind: writ.Pending, Ref: id, Msg: waits(i)}
		}
	}
}

func waits(i store.Invocation) string {
	switch {
	case i.Status == "running" && i.Asked == "":
		return fmt.Sprintf("the call is running (%s)", i.ID)
	case i.Status == "running":
		return fmt.Sprintf("the call was approved and is running (%s)", i.ID)
	}
	return fmt.Sprintf("a person has to approve this call (request %s); a person runs: writ approval approve %s", i.ID, i.ID)
}

// own is a caller's own invocation.
func (e *Engine) own(ctx context.Context, who Caller, id string) (store.Invocation, error) {
	if e.stops.is(e.at().chain(who.Agent)) != "" {
		return store.Invocation{}, stoppedError(who.Agent)
	}
	i, ok, err := e.store.Standing(ctx, id)
	if err == nil && (!ok || i.Agent != who.Agent || i.Token != who.Token || i.Asked == "") {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q of this caller; make the call again", clip(id)), nil)
	}
	return i, err
}

// Withdraw ends a request that its caller does not want any more.
func (e *Engine) Withdraw(ctx context.Context, who Caller, id string) error {
	if _, err := e.own(ctx, who, id); err != nil {
		return err
	}
	_, err := e.CancelInvocation(ctx, who.Agent, id)
	return err
}

// AskedBefore reports whether a caller's request was there at a time of the ledger's: a
// call made since has joined it.
func (e *Engine) AskedBefore(ctx context.Context, who Caller, id string, at time.Time) bool {
	i, err := e.own(ctx, who, id)
	return err == nil && i.Requested < at.UTC().Format(ledger.TimeFormat)
}

// Welcome is why a caller may not go on with what it has begun, or nil: it is stopped,
// its token was revoked, or its agent is not there any more.
func (e *Engine) Welcome(who Caller) error {
	r := e.at()
	if _, ok := r.agents[who.Agent]; !ok {
		return errRevoked
	}
	if err := r.alive(who.Agent, e.ledger.Now()); err != nil {
		return err
	}
	if stopped := e.stops.is(r.chain(who.Agent)); stopped != "" {
		return stoppedError(stopped)
	}
	e.tokens.mu.RLock()
	t, known := e.tokens.byID[who.Token]
	e.tokens.mu.RUnlock()
	e.stops.mu.Lock()
	revoked := e.stops.revoked[who.Token] // before it is written down
	e.stops.mu.Unlock()
	if who.Token != "" && (!known || t.Revoked != "" || revoked) {
		return errRevoked
	}
	return nil
}

// Standing is how far a call has come that was made with a key.
type Standing struct {
	Outcome         // of one that is over
	Err       error // likewise
	Tool      string
	Waits     string // what it waits for, in words; empty: it is over
	Cancelled bool
	Made, At  time.Time // when it was made; when it last changed
}

// Keyed finds the call that a caller made with a key, over a restart too; false: it
// made none, or what came of it is not kept any more.
func (e *Engine) Keyed(ctx context.Context, who Caller, key string) (Standing, bool, error) {
	if stopped := e.stops.is(e.at().chain(who.Agent)); stopped != "" {
		return Standing{}, false, stoppedError(stopped)
	}
	i, ok, err := e.store.KeyedInvocation(ctx, who.Agent, key)
	for err == nil && ok && i.Replaced != "" {
		i, ok, err = e.store.Standing(ctx, i.Replaced)
	}
	if err != nil || !ok || i.Token != who.Token {
		return Standing{}, false, err
	}
	i = approval.AsOf(i, e.ledger.Now())
	s := Standing{Outcome: Outcome{CallID: i.ID}, Tool: i.Tool, Cancelled: i.Status == "cancelled"}
	s.Made, _ = time.Parse(ledger.TimeFormat, i.Requested) // it is ours
	s.At, _ = time.Parse(ledger.TimeFormat, cmp.Or(i.Completed, i.Started, i.Requested))
	if i.Completed == "" {
		s.Waits = waits(i)
		return s, true, nil
	}
	was, err := e.desk.Outcome(ctx, i.ID, true)
	switch {
	case err != nil:
		return s, false, err
	case was == nil && (i.Status == "completed" || i.Status == "failed"):
		return s, false, nil
	case was == nil:
		s.Err = endedAs(i)
	default:
		s.Outcome, s.Err = Outcome{was.Call, was.Result}, was.Err
	}
	return s, true, nil
}

// collect hands over what came of a call that has ended.
func (e *Engine) collect(ctx context.Context, i store.Invocation) (Outcome, error) {
	out := Outcome{CallID: i.ID}
	k, ok, err := e.store.Result(ctx, i.ID)
	if err != nil {
		return out, err
	}
	if ok && k.Delivered != "" || !ok && i.Status == "completed" {
		return out, writ.Fail(writ.Conflict, fmt.Sprintf("the outcome of %s was handed over already", i.ID), nil)
	}
	if !ok {
		return out, endedAs(i)
	}
	was, err := e.desk.Outcome(ctx, i.ID, true)
	if err != nil || was == nil {
		return out, errors.Join(err, endedAs(i))
	}
	return Outcome{was.Call, was.Result}, was.Err
}

// endedAs is the error of a call that ended without an outcome that is kept.
func endedAs(i store.Invocation) error {
	switch i.Status {
	case "rejected":
		return writ.Fail(writ.Rejected, "a person rejected this call", nil)
	case "expired":
		return writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
	case "cancelled":
		return writ.Fail(writ.Cancelled, fmt.Sprintf("the request was ended (%s); make the call again", i.Outcome), nil)
	case "unknown":
		return writ.Fail(writ.Unknown, "how the call ended is not known; a person has to find out", nil)
	}
	return writ.Fail(writ.Conflict, fmt.Sprintf("%s is %s", i.ID, i.Status), nil)
}

// Seal encrypts something that a caller keeps for the engine, so that only this store's
// daemon reads it, for this purpose, and nobody can change it. It outlives a restart.
func (e *Engine) Seal(purpose string, plain []byte) (string, error) {
	aead, err := e.sealer(purpose)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, plain, nil)), nil
}

// Unseal is the inverse of Seal; ok is false for anything else.
func (e *Engine) Unseal(purpose, text string) (plain []byte, ok bool) {
	aead, err := e.sealer(purpose)
	if err != nil {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < aead.NonceSize() {
		return nil, false
	}
	plain, err = aead.Open(nil, b[:aead.NonceSize()], b[aead.NonceSize():], nil)
	return plain, err == nil
}

func (e *Engine) sealer(purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, e.sealKey, nil, "writ "+purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
