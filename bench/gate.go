package main

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

const (
	tools  = 100
	agents = 20
)

func nothing(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }

// decider is one of the size the target is stated for, and a call it allows.
func decider() (*decide.Decider, writ.Call, error) {
	types, err := action.NewRegistry(nil)
	if err != nil {
		return nil, writ.Call{}, err
	}
	in := decide.Input{Types: types, Presets: map[access.Autonomy]access.Set[action.Lists]{}, Digest: writ.Digest{1}, Hide: []string{"/state"}}
	for a, l := range access.Presets(types) {
		in.Presets[a] = access.Set[action.Lists]{V: l, At: access.BuiltIn}
	}
	for i := range tools {
		t, err := tool.New(tool.Definition{
			Name: fmt.Sprintf("tool_%d", i), Category: action.FileSystem, Action: "code:read", Class: writ.ClassNone,
			Policy: policy.Policy{Files: policy.Files{Read: policy.Paths("/**")}},
			Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","x-writ-path":"read"}}}`),
		}, nothing)
		if err != nil {
			return nil, writ.Call{}, err
		}
		in.Tools = append(in.Tools, t)
	}
	for i := range agents {
		in.Agents = append(in.Agents, access.Agent{
			Name: fmt.Sprintf("agent_%d", i), Level: access.Set[access.Level]{V: access.Standard}, Autonomy: access.Set[access.Autonomy]{V: access.Semi},
			GateArgs: access.Set[bool]{V: true}, Workspace: access.Workspace{Path: "/ws/app", Project: "/ws"}, Constraints: access.Defaults(access.Standard, types),
		})
	}
	for i := range 3 { // agent_0 is delegated by agent_1, and so on
		in.Agents[i].Parent = in.Agents[i+1].Name
	}
	c := writ.Call{
		ID: "call_bench", Agent: "agent_7", Session: "s", Task: "t", Tool: "tool_57", Definition: in.Tools[57].Digest, Args: `{"path":"src/main.go"}`, Resolved: true,
		Targets: []writ.Target{{Pointer: "/path", Value: "src/main.go", Side: writ.SideRead, Path: "/ws/app/src/main.go"}},
	}
	c.ArgsDigest = wire.Digest(c.Args)
	return decide.New(in), c, nil
}

func decision() error {
	d, c, err := decider()
	if err != nil {
		return err
	}
	measure := func(what string, c writ.Call) {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, err := d.Decide(context.Background(), c); err != nil || got.Effect != writ.Allow {
					b.Fatal(got, err)
				}
			}
		})
		row(what, fmt.Sprintf("%d ns, %d allocations", r.NsPerOp(), r.AllocsPerOp()), "")
	}
	measure(fmt.Sprintf("one decision, %d tools, %d agents", tools, agents), c)
	c.Agent = "agent_0"
	measure("one decision, of an agent with three above it", c)
	return nil
}

// counting is a decider whose calls are counted against a quota over time.
type counting struct{ *decide.Decider }

func (d counting) Decide(ctx context.Context, c writ.Call) (writ.Decision, error) {
	out, err := d.Decider.Decide(ctx, c)
	out.Reserve = writ.Reserve{Keep: true, Quotas: []writ.Quota{{Max: 1_000_000, Per: writ.PerWindow, Window: time.Hour}}}
	return out, err
}

type noApprover struct{}

func (noApprover) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, writ.Fail(writ.Denied, "nobody is here", nil)
}

type noop struct{}

func (noop) Run(context.Context, writ.Writ) (writ.Result, error) {
	return writ.Result{Content: "ok"}, nil
}

// gate measures Gate.Do with a real ledger, and bare commits of the same disk
// and engine beside it, in turns so that both see the same machine.
func gate(dir string) error {
	d, c, err := decider()
	if err != nil {
		return err
	}
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	l, err := ledger.Open(context.Background(), db, ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Witness: filepath.Join(dir, "witness")})
	if err != nil {
		return err
	}
	defer func() { l.Close(); db.Close() }()
	desk, err := newDesk(db, l, c)
	if err != nil {
		return err
	}
	g := writ.NewGate(d, noApprover{}, desk, noop{})
	do := func() error {
		c := c
		c.ID = approval.NewID(l.Time())
		_, err := g.Do(context.Background(), c)
		return err
	}
	commit, end, err := bareCommit(filepath.Join(dir, "bare.db"))
	if err != nil {
		return err
	}
	defer end()
	if err := oneCaller(do, commit); err != nil {
		return err
	}
	if err := manyCallers("two durable records", do); err != nil {
		return err
	}
	g = writ.NewGate(counting{d}, noApprover{}, desk, noop{})
	if err := manyCallers("counted against a quota as well", do); err != nil {
		return err
	}
	return approvals(db, l, desk, c, commit)
}

// oneCaller alternates rounds of both, and compares the middle of each.
func oneCaller(do, commit func() error) error {
	const n = 400
	var ours, bare []time.Duration
	for range 5 {
		a, err := median(n, do)
		if err != nil {
			return err
		}
		b, err := median(n, func() error { return errors.Join(commit(), commit()) })
		if err != nil {
			return err
		}
		ours, bare = append(ours, a), append(bare, b)
	}
	a, b := middle(ours), middle(bare)
	row("Gate.Do, two durable records, 1 caller, p50", a.String(), ratio(a, b)+" of two bare commits ("+b.String()+")")
	return nil
}

func middle(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func manyCallers(what string, do func() error) error {
	const callers, total = 64, 60_000
	var left atomic.Int64
	left.Store(total)
	var failed atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(error); ok {
		return err
	}
	perSecond := float64(total) / time.Since(began).Seconds()
	row(fmt.Sprintf("Gate.Do, %s, %d callers", what, callers), fmt.Sprintf("%.0f calls/s", perSecond), "")
	return nil
}

// bareCommit is one insert and commit with the same engine and durability.
func bareCommit(path string) (commit func() error, end func() error, err error) {
	q := url.Values{"_pragma": {"journal_mode(wal)", "synchronous(full)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+q.Encode())
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)"); err != nil {
		return nil, nil, err
	}
	insert, err := db.Prepare("INSERT INTO t (b) VALUES ($1)")
	if err != nil {
		return nil, nil, err
	}
	// Rows as large as the two entries of a call, in turns.
	bodies := []string{string(make([]byte, 1100)), string(make([]byte, 500))}
	n := 0
	return func() error { n++; _, err := insert.Exec(bodies[n%2]); return err }, db.Close, nil
}
