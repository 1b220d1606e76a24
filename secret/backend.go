package secret

import (
	"context"
	"fmt"
	"os"

	"github.com/writ-run/writ"
)

// Backend reads values of one kind of place. Errors say what is wrong and what to do,
// and never hold a value.
type Backend interface {
	Read(context.Context, Ref) (Value, error)
}

// Set is the backends there are, by kind.
type Set map[string]Backend

// Resolve looks a value up, anew each time: a rotated secret counts from its next use.
func (s Set) Resolve(ctx context.Context, r Ref) (Value, error) {
	b, ok := s[r.Backend]
	if !ok || b == nil {
		return Value{}, missing(r, "there is no such backend; a reference is "+Forms, nil)
	}
	v, err := b.Read(ctx, r)
	switch {
	case err != nil:
		return Value{}, err
	case v.Empty():
		return Value{}, missing(r, "it is empty; give it a value", nil)
	case len(v.Reveal()) > MaxBytes:
		return Value{}, missing(r, fmt.Sprintf("it has more than %d KiB, which is no secret; name another", MaxBytes>>10), nil)
	}
	return v, nil
}

// missing is the error of a secret that cannot be had. Its message is for operators;
// agents are told less, see package external.
func missing(r Ref, why string, cause error) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("secret %s: %s", r, why), cause)
}

// Env is the environment of this process.
type Env struct{}

func (Env) Read(_ context.Context, r Ref) (Value, error) {
	v, ok := os.LookupEnv(r.Name)
	if !ok {
		return Value{}, missing(r, "the daemon has no such variable; start it with one", nil)
	}
	return New(v), nil
}
