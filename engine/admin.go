package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/tool/admin"
	"github.com/writ-run/writ/wire"
)

// administration does the operations of the administration surface, for an agent and
// within what is the agent's: itself and the agents below it. What is anybody else's is
// as if it were not there.
type administration struct {
	e         *Engine
	verifying sync.Mutex
	testing   sync.Mutex
}

// Handler is what does an operation. A cause that is not for the caller goes to the log.
func (a *administration) Handler(operation string) admin.Handler {
	do := a.reads()[operation]
	if do == nil {
		do = a.acts()[operation]
	}
	if do == nil {
		return nil
	}
	return func(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
		data, err := do(ctx, c, args)
		if kind := writ.KindOf(err); err != nil && ctx.Err() == nil && (kind == writ.Internal || kind == writ.StoreUnavailable || kind == writ.Unknown) {
			a.e.log.Error("an administration call failed", "call", c.ID, "err", err)
		}
		return data, err
	}
}

// Tell logs what became of a call: the operation and who called, and nothing that they
// wrote.
func (a *administration) Tell(ev admin.Event) {
	level, attrs := slog.LevelWarn, []any{"operation", ev.Operation, "actor", ev.Actor}
	if ev.Name == admin.CapabilityGap {
		level = slog.LevelInfo
	}
	if ev.Code != "" {
		attrs = append(attrs, "code", ev.Code)
	}
	a.e.log.Log(context.Background(), level, ev.Name, attrs...)
}

// one is the agent that an argument names, which is the caller or stands below it;
// empty: the caller.
func (a *administration) one(c writ.Call, name string) (string, error) {
	if name == "" {
		return c.Agent, nil
	}
	if _, there := a.e.at().agents[name]; !there || !a.e.Below(name, c.Agent) {
		return "", noneBelow(name)
	}
	return name, nil
}

// under is one that stands below the caller and is not the caller.
func (a *administration) under(c writ.Call, name string) (string, error) {
	if name == c.Agent {
		return "", writ.Fail(writ.Denied, "this is for agents below you, not for yourself; 'writ stop' and 'writ agent revoke' are the operator's", nil)
	}
	return a.one(c, name)
}

// noneBelow suggests no name: the nearest may be somebody else's.
func noneBelow(name string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no agent %q below you; writ_agents_list shows those there are", clip(name)), nil)
}

// scope filters by whose something is: one agent's that was asked for, or of all that
// the caller may see.
func (a *administration) scope(c writ.Call, args admin.Args) (func(agent string) bool, error) {
	name := args.Text("agent")
	if name != "" && !a.e.Below(name, c.Agent) {
		return nil, noneBelow(name)
	}
	return func(agent string) bool {
		return agent != "" && a.e.Below(agent, c.Agent) && (name == "" || agent == name)
	}, nil
}

// justified writes down who does an admin operation to what, and why, before it is done.
func (a *administration) justified(ctx context.Context, c writ.Call, target, reason string) error {
	return a.e.ledger.Append(context.WithoutCancel(ctx), ledger.Entry{Kind: "admin.operation", Call: c.ID, Agent: c.Agent, Data: []wire.Field{
		wire.Str("operation", c.Tool), wire.Str("target", clip(target)), wire.Str("reason", reason), wire.Str("acts_for", c.Person),
	}})
}

// apart does something that may end this very call, or one that ends ours: whoever
// ends a call waits for it, and two that end each other would wait for ever. So the
// call does not wait once it has been ended itself. What was begun is carried out, and
// the engine waits for it before it closes.
func (a *administration) apart(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	a.e.sweeper.Go(func() {
		defer func() {
			if p := recover(); p != nil { // the gate recovers only what runs in the call
				done <- fmt.Errorf("panic: %v", p)
			}
		}()
		done <- do(context.WithoutCancel(ctx))
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
