package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-run/writ"
)

// ring is what is known of the issuer's keys. It is never changed, only replaced.
type ring struct {
	keys       []key
	got, tried time.Time // when they were got, and when that was last begun
}

// find gives the keys that a token may be signed with. Old keys are got again, and so
// are keys when a token has an unknown one, but never twice within retry: whoever makes
// up key ids sends the issuer nothing more than one question in that time.
func (v *Verifier) find(ctx context.Context, t token) ([]key, error) {
	r, now := v.ring.Load(), v.now()
	fit := r.fitting(t, now)
	if len(fit) > 0 && now.Sub(r.got) < refresh {
		return fit, nil
	}
	if now.Sub(r.tried) < retry {
		return v.orRefuse(fit, r, nil)
	}
	select {
	case v.getting <- struct{}{}:
	default:
		if len(fit) > 0 {
			return fit, nil // somebody else gets them
		}
		if err := v.wait(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { <-v.getting }()
	var failed error
	if r = v.ring.Load(); v.now().Sub(r.tried) >= retry { // else somebody did while this waited
		r, failed = v.renew(ctx, r)
	}
	return v.orRefuse(r.fitting(t, v.now()), r, failed)
}

// wait takes the turn at getting keys, after whoever has it. Few may wait: requests
// that nobody has vouched for must not take up every place at the door.
func (v *Verifier) wait(ctx context.Context) error {
	defer v.waiting.Add(-1)
	if v.waiting.Add(1) > waiters {
		return v.unavailable(nil)
	}
	select {
	case v.getting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return v.unavailable(ctx.Err())
	}
}

// renew gets the keys. Where that fails the ones before stay, for as long as they are
// good. Whoever asked may go; what was begun is finished, for those who wait.
func (v *Verifier) renew(ctx context.Context, before *ring) (*ring, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer done()
	next := &ring{keys: before.keys, got: before.got, tried: v.now()}
	keys, err := v.fetch(ctx)
	if err != nil {
		err = &FetchError{err}
	} else {
		next.keys, next.got = keys, next.tried
	}
	v.ring.Store(next)
	return next, err
}

// fitting are the keys for a token. One without a kid fits a single key only.
func (r *ring) fitting(t token, now time.Time) []key {
	if now.Sub(r.got) >= goodFor {
		return nil
	}
	var out []key
	for _, k := range r.keys {
		if k.fits(t) && (t.kid == "" || t.kid == k.id) {
			out = append(out, k)
		}
	}
	if t.kid == "" && len(out) > 1 {
		return nil
	}
	return out
}

// orRefuse gives keys, or says why there are none: the issuer has no such key, or it is
// not known which it has.
func (v *Verifier) orRefuse(fit []key, r *ring, failed error) ([]key, error) {
	switch {
	case len(fit) > 0:
		return fit, nil
	case failed != nil || v.now().Sub(r.got) >= goodFor:
		return nil, v.unavailable(failed)
	}
	return nil, v.refuse("it is signed with a key that the issuer does not have", nil)
}

func (v *Verifier) unavailable(cause error) error {
	return writ.Fail(writ.Unauthenticated, fmt.Sprintf("access tokens cannot be verified now, because the keys of %s could not be had; try again in half a minute", v.o.Issuer), cause)
}
