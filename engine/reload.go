package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Reload reads the configuration and the definitions beside it again. The whole of
// it is checked first; one that does not hold changes nothing. It is swapped in at
// once: calls in flight keep what they were decided under, and what people were
// asked, or agreed to, under another configuration ends, so that it is decided again.
func (e *Engine) Reload(ctx context.Context) (*Reloaded, error) {
	ctx = context.WithoutCancel(ctx) // whoever asked may go; what was begun is carried out
	before, next, ended, err := e.reload(ctx)
	if err != nil {
		return nil, err
	}
	e.desk.Changed()
	e.boxes.Use(lifecycle(next.cfg))
	e.boxes.Tell(e.report(next.cfg))
	if len(before.cfg.File.Upstreams)+len(next.cfg.File.Upstreams) > 0 {
		if err := errors.Join(e.upstreams.keep(next.cfg), e.refresh(ctx)); err != nil {
			e.log.Error("the MCP servers of the new configuration could not all be taken up", "err", err)
		}
	}
	if err := e.webhooks.keep(ctx, next.cfg); err != nil {
		e.log.Error("the webhooks of the new configuration could not all be taken up", "err", err)
	}
	for name := range before.agents {
		if _, there := next.agents[name]; !there { // nobody is left who could look after them
			e.jobs.EndAgent(name)
			e.boxes.EndAgent(name)
		}
	}
	gone := func(d store.Delegation) bool { _, there := next.agents[d.Parent]; return !there }
	if err := e.endDelegations(ctx, "parent removed", gone); err != nil {
		e.log.Error("children of agents that left the configuration could not be ended", "err", err)
	}
	e.log.Info("configuration reloaded", "policy", next.cfg.Digest.Short(), "warnings", len(next.cfg.Warnings), "ended", ended)
	return &Reloaded{Config: next.cfg, Ended: ended}, nil
}

// Reloaded is the configuration in force after a reload.
type Reloaded struct {
	*config.Config
	Ended int // how many requests and unused approvals ended, to be decided again
}

// reload checks, records and swaps.
func (e *Engine) reload(ctx context.Context) (before, next *rules, ended int, err error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	old := e.at().cfg
	cfg, loaded, err := catalog.Load(old.Path, e.registered)
	if err != nil {
		return nil, nil, 0, writ.Fail(writ.Invalid, "the configuration does not hold, and the one before stays in force:\n"+err.Error(), nil)
	}
	if keys := needRestart(old, cfg); len(keys) > 0 {
		return nil, nil, 0, writ.Fail(writ.Conflict, "the one before stays in force, because some keys are read at the start only: "+strings.Join(keys, ", ")+
			"; end the daemon with 'writ serve --stop' and the next command starts it anew", nil)
	}
	if next, err = e.assemble(ctx, cfg, loaded); err != nil {
		return nil, nil, 0, err
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		entry := ledger.Entry{Kind: "config.reloaded", Data: []wire.Field{
			wire.Str("policy", cfg.Digest.String()), wire.Str("before", old.Digest.String()), wire.Str("unsafe", strings.Join(cfg.Warnings, "\n")),
		}}
		if cfg.Digest == old.Digest {
			return entry, nil
		}
		if err := tx.RevokeOtherGrants(cfg.Digest.String(), e.ledger.Now()); err != nil {
			return entry, err
		}
		entry.Also, err = approval.EndAsked(tx, "*", "", "", "reloaded", e.ledger.Now())
		ended = len(entry.Also)
		return entry, err
	})
	if err != nil {
		return nil, nil, 0, err
	}
	return e.swap(next), next, ended, nil
}

// needRestart names the keys that differ and are used when the daemon starts only.
func needRestart(a, b *config.Config) []string {
	sub, other := a.File.Sandboxing.Subprocess, b.File.Sandboxing.Subprocess
	var keys []string
	for key, same := range map[string]bool{
		"store": a.StatePath == b.StatePath && a.Witness == b.Witness, "listen": a.File.Listen.Same(b.File.Listen),
		"sandboxing.docker":                              a.File.Sandboxing.Docker.Same(b.File.Sandboxing.Docker),
		"sandboxing.subprocess.restricted_path":          sub.RestrictedPath == other.RestrictedPath,
		"sandboxing.subprocess.workspace_only":           sub.WorkspaceOnly == other.WorkspaceOnly,
		"sandboxing.subprocess.extra_safe_path_prefixes": strings.Join(sub.ExtraSafePathPrefixes, "\n") == strings.Join(other.ExtraSafePathPrefixes, "\n"),
	} {
		if !same {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
