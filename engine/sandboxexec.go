package engine

import (
	"context"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/wire"
)

// operatorsCommand is whose what an operator runs in a box is; no agent can be called so.
const operatorsCommand = "writ sandbox exec"

// Bounds of such a command.
const (
	mostWords = 1000
	longWords = 100_000
)

// ExecSandbox runs a command in a box that is kept and that nobody uses, confined exactly as
// the calls in it are. It takes a person who operates. It is a call of its own, through a
// gate (I1), and is written down before it starts and when it is over (I3).
func (e *Engine) ExecSandbox(ctx context.Context, id string, argv []string, cred Credentials) (Outcome, error) {
	long := 0
	for _, word := range argv {
		long += len(word)
	}
	if len(argv) == 0 || argv[0] == "" || len(argv) > mostWords || long > longWords {
		return Outcome{}, writ.Fail(writ.Invalid, "a command has a program and at most 1000 words of 100000 bytes together", nil)
	}
	by, err := e.proven(ctx, cred, "operate")
	if err != nil {
		return Outcome{}, err
	}
	box, ok := e.boxes.Show(id)
	if !ok || !box.Ended.IsZero() {
		return Outcome{}, noSandbox(id)
	}
	args, err := wire.Plain(argv)
	if err != nil {
		return Outcome{}, writ.Fail(writ.Invalid, "the command is no text; write it in UTF-8", err)
	}
	c := writ.Call{
		ID: approval.NewID(e.ledger.Time()), Agent: operatorsCommand, Chain: []string{operatorsCommand}, Person: by.Name, Door: "operator", Tool: "sandbox_exec",
		Definition: wire.Digest(operatorsCommand), Args: string(args), ArgsDigest: wire.Digest(string(args)), Dir: box.Dir, Resolved: true,
	}
	g := operated{e, by.Name, box, argv}
	as, res, err := writ.NewGate(g, g, g, g).DoAs(ctx, c)
	return Outcome{as, res}, err
}

// operated is the gate of an operator's command in a box.
type operated struct {
	e    *Engine
	by   string
	box  sandbox.Shown
	argv []string
}

// Decide allows what the calls in the box may, and nothing else.
func (g operated) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Confine: g.box.Confine}, nil
}

func (g operated) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, writ.Fail(writ.Denied, "nobody is asked here", nil)
}

func (g operated) Record(ctx context.Context, ev writ.Event) error {
	entry := ledger.EntryOf(ev)
	entry.Person = g.by
	entry.Data = append(entry.Data, wire.Str("box", g.box.ID), wire.Str("box_of", g.box.Agent))
	return g.e.ledger.Append(ctx, entry)
}

// Run runs it until it ends, or somebody stops the agent whose box it is.
func (g operated) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	ctx, done, err := g.e.stops.begin(ctx, &run{call: w.Call().ID, chain: g.e.at().chain(g.box.Agent), session: g.box.Session, task: g.box.Task})
	if err != nil {
		return writ.Result{}, err
	}
	defer done()
	return exec.Run(ctx, entering{g.e.boxes, g.box.ID}, w, sandbox.Spec{Argv: slices.Clone(g.argv)})
}

// entering starts commands in one box.
type entering struct {
	boxes *sandbox.Boxes
	id    string
}

func (e entering) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, string, error) {
	box, err := e.boxes.Enter(ctx, e.id, w, spec)
	if err != nil {
		return nil, "", err
	}
	shown, _ := e.boxes.Show(e.id)
	return box, shown.Driver, nil
}
