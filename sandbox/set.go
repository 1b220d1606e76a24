package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
)

// Set is the drivers of one engine, in the order of preference.
type Set []Driver

// Start starts the command with the driver that the operator chose, or else with
// the first that enforces the whole confinement. Nothing demanded is ever
// dropped: when no driver will do, the error says what each one lacks.
func (s Set) Start(ctx context.Context, w writ.Writ, spec Spec) (Box, string, error) {
	return s.start(ctx, w, func(d Driver) (Box, error) { return d.Start(ctx, w, spec) })
}

func (s Set) start(ctx context.Context, w writ.Writ, on func(Driver) (Box, error)) (Box, string, error) {
	want := w.Confinement().Backend
	var lacks []string
	var causes error
	for _, d := range s {
		if want != "" && d.Name() != want {
			continue
		}
		box, err := Box(nil), s.chosen(ctx, d, w.Confinement())
		if err == nil {
			box, err = on(d)
		}
		if err == nil {
			return box, d.Name(), nil
		}
		var e *writ.Error
		var of anywhere
		if !errors.As(err, &e) || e.Kind != writ.SandboxUnavailable || errors.As(err, &of) {
			return nil, d.Name(), err
		}
		lacks = append(lacks, strings.TrimPrefix(e.Msg, "sandbox_unavailable: "))
		causes = errors.Join(causes, e.Err)
	}
	return nil, "", unavailable(lacks, causes)
}

// Anywhere marks an error as one of what is asked for, which is the same with every driver:
// what others lack is then nothing to be told.
func Anywhere(err error) error { return anywhere{err} }

type anywhere struct{ error }

func (a anywhere) Unwrap() error { return a.error }

// Check reports why no driver could start a box with this confinement, or nil. It
// lets a call be refused before a person is asked about it.
func (s Set) Check(ctx context.Context, c writ.Confinement) error {
	var lacks []string
	for _, d := range s {
		if c.Backend != "" && d.Name() != c.Backend {
			continue
		}
		have, err := d.Probe(ctx)
		if err == nil {
			err = errors.Join(s.chosen(ctx, d, c), Unmet(d.Name(), have, c))
		}
		if err == nil {
			return nil
		}
		_, msg := writ.Public(err)
		lacks = append(lacks, strings.TrimPrefix(msg, "sandbox_unavailable: "))
	}
	return unavailable(lacks, nil)
}

// chosen refuses a driver that nobody chose, where the operator has to say that a call
// does without something. Protected names are not a part of a confinement: a driver which
// does not keep them can be named all the same.
func (s Set) chosen(ctx context.Context, d Driver, c writ.Confinement) error {
	if c.Backend != "" || len(c.Write) == 0 {
		return nil
	}
	have, err := d.Probe(ctx)
	if err == nil && !have.Has(ProtectedName) {
		err = writ.Fail(writ.SandboxUnavailable, fmt.Sprintf("sandbox_unavailable: driver %s does not enforce %s%s; the operator can do without: sandboxing.default_backend: %s", d.Name(), ProtectedName, have.why(ProtectedName), d.Name()), nil)
	}
	return err
}

func unavailable(lacks []string, cause error) error {
	if len(lacks) == 0 {
		lacks = []string{"there is no driver for this machine"}
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+strings.Join(lacks, "; "), cause)
}
