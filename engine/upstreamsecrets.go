package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/tool/external"
)

// credentials are what a server is given that is kept elsewhere. Values are looked up when
// they are used; of each that was, what the server says is looked through for it.
type credentials struct {
	e    *Engine
	over external.Connection   // of a server at a url: how it is proven
	env  map[string]secret.Ref // of a program

	mu   sync.Mutex
	seen []external.Redactor // of values that were used, the last one first

	refused atomic.Bool // the server wants others than it was last given, or some
}

func (e *Engine) credentials(name string, cfg config.Upstream) (*credentials, error) {
	over, err := cfg.Proof(name)
	return &credentials{e: e, over: over, env: cfg.SecretEnv}, err
}

// refs are all of them.
func (c *credentials) refs() []secret.Ref {
	out := c.over.Auth.Refs()
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		out = append(out, c.env[name])
	}
	return out
}

// Prove is what goes with a request to a server.
func (c *credentials) Prove(ctx context.Context) (map[string][]string, error) {
	c.refused.Store(false)
	if c.over.Auth.Type == "none" {
		return nil, nil
	}
	header, hide, err := c.e.external.Prove(ctx, c.over)
	if err != nil {
		return nil, fmt.Errorf("its credentials cannot be had: %w", err)
	}
	c.used(hide)
	return header, nil
}

// Refused is told that the server did not take it.
func (c *credentials) Refused() {
	c.refused.Store(true)
	c.e.external.Refused(c.over)
}

// given is the environment that a program is given, with the values that are kept elsewhere.
func (c *credentials) given(ctx context.Context, env map[string]string) (map[string]string, error) {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	var values []string
	for name, ref := range c.env {
		v, err := c.e.secrets().Resolve(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("its variable %s cannot be had: %w", name, err)
		}
		if why := unfitVariable(v.Reveal()); why != "" {
			return nil, writ.Fail(writ.Invalid, fmt.Sprintf("its variable %s: secret %s %s", name, ref, why), nil)
		}
		out[name] = v.Reveal()
		values = append(values, v.Reveal())
	}
	for name := range out {
		if why := reach.NeverGiven(name); why != "" {
			return nil, writ.Fail(writ.Invalid, fmt.Sprintf("env %q does not reach a program in a box: %s; remove it from the server's configuration", name, why), nil)
		}
	}
	if values != nil {
		c.used(external.NewRedactor(values...))
	}
	return out, nil
}

func unfitVariable(v string) string {
	switch {
	case len(v) < secret.MinBytes:
		return "has fewer than 8 characters, too few to be kept out of answers; use a longer one"
	case strings.ContainsRune(v, 0):
		return "has a zero byte, which no variable holds; name another"
	}
	return ""
}

// mostValues is how many values are looked for: those that were replaced one after another
// while the server went on.
const mostValues = 8

func (c *credentials) used(hide external.Redactor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.seen, hide.Equal) {
		return
	}
	c.seen = append([]external.Redactor{hide}, c.seen...)
	c.seen = c.seen[:min(len(c.seen), mostValues)]
}

// hide takes the values out of what the server says.
func (c *credentials) hide(said []byte) []byte {
	c.mu.Lock()
	seen := slices.Clone(c.seen)
	c.mu.Unlock()
	if len(seen) == 0 {
		return said
	}
	text := string(said)
	for _, s := range seen {
		text = s.Clean(text)
	}
	if text == string(said) {
		return said
	}
	return []byte(text)
}
