package engine

import (
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
	"github.com/writ-run/writ/store"
)

// Resume waits for a call that an agent made and a person was asked about, and hands
// its outcome over, once. While there is none it fails as pending.
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
	if i.Status == "running" {
		return fmt.Sprintf("the call was approved and is running (%s)", i.ID)
	}
	return fmt.Sprintf("a person has to approve this call (request %s)", i.ID)
}

// own is an agent's own invocation.
func (e *Engine) own(ctx context.Context, who Caller, id string) (store.Invocation, error) {
	if e.stops.is(e.at().chain(who.Agent)) != "" {
		return store.Invocation{}, stoppedError(who.Agent)
	}
	i, ok, err := e.store.Standing(ctx, id)
	if err == nil && (!ok || i.Agent != who.Agent || i.Asked == "") {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q of this agent", clip(id)), nil)
	}
	return i, err
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
