// Package engine joins the parts: it loads a configuration, opens the store and
// the ledger, builds the catalog, the decider and the gate, and closes them
// again. It constructs, it does not decide. The daemon is built on it, and a Go
// program can open one of its own:
//
//	e, err := engine.Open(ctx, engine.Options{Config: "writ.yaml"})
//	err = e.Register(ctx, engine.Tool{Name: "write_report", Policy: …, Run: render})
//	out, err := e.Do(ctx, engine.Call{Agent: "reporter", Tool: "write_report", Args: args})
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/bwrap"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/sandbox/firejail"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/seatbelt"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/git"
	"github.com/writ-run/writ/tool/web"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// Options open an engine. The zero value reads the user's own configuration.
type Options struct {
	Config string // path of the configuration; empty: where config.Path finds it
	// Launcher is the command that becomes a sandboxed process; it calls
	// subprocess.Main before anything else. Empty: this program itself.
	Launcher []string
	Log      *slog.Logger // nil: slog.Default
	Now      func() time.Time

	Tools []Tool // as Register takes them; here where the configuration names them
	Hooks Hooks

	Servers []Server // MCP servers of the program itself
}

// Engine is an open engine. It is safe for concurrent use.
type Engine struct {
	log        *slog.Logger
	now        func() time.Time
	hooks      Hooks
	store      *store.DB
	ledger     *ledger.Ledger
	desk       *approval.Desk
	people     *person.Checker
	sealKey    []byte
	drivers    sandbox.Set
	broker     *egress.Broker // the way out of calls
	ownBroker  *egress.Broker // and of the daemon itself
	ways       sync.Map       // of the daemon itself, that are open
	native     *native.Driver
	docker     *docker.Driver
	boxes      *sandbox.Boxes
	shipping   *shipping
	boxNotes   boxNotes
	closers    []io.Closer // drivers that keep something running
	jobs       *exec.Jobs
	builtins   []*tool.Tool
	registered []*tool.Tool // guarded by changing, like every change of rules
	gate       *writ.Gate

	changing sync.Mutex
	rules    atomic.Pointer[rules]
	prior    atomic.Pointer[rules]         // the ones before: calls decided under them may be about to run
	swapped  atomic.Pointer[chan struct{}] // closed when they change

	tokens tokens
	stops  stops
	scopes scopes
	turns  turns
	places places

	external  *external.Client
	keyring   *secret.Keyring
	disclosed disclosure
	upstreams upstreams
	webhooks  webhooks
	metrics   metrics
	loading   sync.Mutex // tokens and stops are read from the store and taken up by one at a time
	closed    atomic.Bool
	closing   chan struct{} // ends the sweeper
	sweeper   sync.WaitGroup
	resumed   sync.WaitGroup // approved calls that run with nobody waiting
}

// Open readies an engine. On error nothing is left open.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{log: o.Log, now: o.Now, hooks: o.Hooks, metrics: newMetrics(), closing: make(chan struct{})}
	if e.log == nil {
		e.log = slog.Default()
	}
	if e.now == nil {
		e.now = time.Now
	}
	for _, t := range o.Tools {
		made, err := t.make()
		if err != nil {
			return nil, err
		}
		e.registered = append(e.registered, made)
	}
	path, err := config.Path(o.Config)
	if err != nil {
		return nil, err
	}
	cfg, loaded, err := catalog.Load(path, e.registered)
	if err != nil {
		return nil, err
	}
	if err := e.build(cfg, o.Launcher, o.Servers); err != nil {
		return nil, err
	}
	if err := e.open(ctx, cfg, loaded); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// build makes everything that needs no store.
func (e *Engine) build(cfg *config.Config, launcher []string, servers []Server) error {
	sub := cfg.File.Sandboxing.Subprocess
	every := reach.Options{PathPrefixes: sub.ExtraSafePathPrefixes, UnsafeAnyPath: !sub.RestrictedPath, UnsafeAnyDir: !sub.WorkspaceOnly}
	e.broker = egress.New(egress.Options{})
	e.ownBroker = egress.New(egress.Options{Limits: egress.Limits{Connections: 4096, Bytes: math.MaxInt64, Idle: -1}})
	own := native.New(native.Options{Options: every, Program: programOf(launcher), Deployment: deployment(cfg.StatePath), Outlet: e.outlet})
	e.docker = docker.New(e.dockerOptions(cfg, every, programOf(launcher)))
	e.drivers = sandbox.Set{own,
		bwrap.New(bwrap.Options{Options: every, Program: programOf(launcher)}),
		firejail.New(firejail.Options{Options: every, Program: programOf(launcher)}),
		seatbelt.New(seatbelt.Options{PathPrefixes: every.PathPrefixes, Config: slices.Concat(policy.ConfigNames(), policy.HomeNames()), Git: policy.GitNames()}),
		e.docker,
		subprocess.New(subprocess.Options{Launcher: launcher, Options: every})}
	e.native = own
	e.boxes, e.shipping = sandbox.NewBoxes(e.drivers, lifecycle(cfg)), newShipping(e.log)
	e.boxes.Tell(e.report(cfg))
	e.webhooks.e = e
	e.closers = append(e.closers, &e.upstreams, e.boxes, own, e.docker, &e.boxNotes, e.shipping, &e.webhooks)
	e.jobs = exec.NewJobs(e.boxes, e.now, e.log)
	e.jobs.OnEnd = e.jobEnded
	var err error
	e.upstreams.own = servers
	e.disclosed.e, e.upstreams.e, e.upstreams.cache = e, e, upstream.NewCache(e.now)
	e.external, e.keyring = external.NewClient(outside{e}), secret.NewKeyring()
	e.builtins, err = catalog.Builtins(e.sources())
	return err
}

// sources are what the tools of this program work with.
func (e *Engine) sources() catalog.Sources {
	return catalog.Sources{
		Exec:      exec.Options{Boxes: e.boxes, Jobs: e.jobs, Refused: e.refusedHosts},
		Web:       web.Options{Reach: func(w writ.Writ) (web.Way, error) { return e.reach(w) }, Search: e.search},
		Git:       git.Options{Boxes: e.boxes, Refused: e.refusedOutside},
		Disclosed: &e.disclosed, External: e.external, Own: &administration{e: e},
	}
}

// lifecycle is how long boxes are kept.
func lifecycle(cfg *config.Config) sandbox.Lifecycle {
	l := cfg.File.Sandboxing.Lifecycle
	return sandbox.Lifecycle{Strategy: sandbox.Strategy(l.Strategy), Grace: time.Duration(l.Grace), Idle: time.Duration(l.Idle)}
}

// deployment tells daemons of one machine apart, by where each has its state.
func deployment(state string) string {
	sum := sha256.Sum256([]byte(state))
	return "writ-" + hex.EncodeToString(sum[:6])
}

// programOf is the file of this program, where a launcher names another.
func programOf(launcher []string) string {
	if len(launcher) == 0 {
		return ""
	}
	return launcher[0]
}

// open opens the store and what stands on it.
func (e *Engine) open(ctx context.Context, cfg *config.Config, loaded []*define.Loaded) error {
	var err error
	if e.store, err = sqlite.Open(ctx, cfg.StatePath); err != nil {
		return err
	}
	if err := e.protect(cfg.StatePath); err != nil {
		return err
	}
	keys, err := loadKeys(filepath.Join(cfg.StatePath, "keys"))
	if err != nil {
		return err
	}
	e.sealKey = keys.seal
	e.docker.Own(keys.of("containers"))
	e.ledger, err = ledger.Open(ctx, e.store, ledger.Options{Key: keys.sign, Witness: cfg.Witness, Now: e.now})
	if err != nil {
		return err
	}
	e.desk, err = approval.NewDesk(approval.Options{
		Store: e.store, Ledger: e.ledger, Key: keys.seal, Terms: e.terms, Inputs: e.inputs, Edit: e.edit,
	})
	if err != nil {
		return err
	}
	e.people = person.NewChecker(e.now)
	if err := e.change(ctx, cfg, loaded); err != nil {
		return err
	}
	if err := errors.Join(e.loadState(ctx), e.loadScopes(ctx)); err != nil {
		return err
	}
	if err := errors.Join(e.desk.Recover(ctx), e.desk.Sweep(ctx)); err != nil {
		return err
	}
	if err := e.boxNotes.begin(ctx, e); err != nil {
		return err
	}
	if err := errors.Join(e.upstreams.keep(cfg), e.webhooks.keep(ctx, cfg)); err != nil {
		return err
	}
	e.gate = writ.NewGate(decider{e}, approver{e}, recorder{e}, runner{e})
	e.sweeper.Go(e.reconcile)
	e.sweeper.Go(e.sweep)
	e.sweeper.Go(e.renew)
	e.sweeper.Go(e.resume)
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		// What was granted under another configuration does not come back with this one.
		return ledger.Entry{Kind: "engine.opened", Data: []wire.Field{
			wire.Str("policy", cfg.Digest.String()), wire.Str("version", writ.Version()),
			wire.Str("unsafe", strings.Join(cfg.Warnings, "\n")),
		}}, tx.RevokeOtherGrants(cfg.Digest.String(), e.ledger.Now())
	})
}

// Config is the configuration in force.
func (e *Engine) Config() *config.Config { return e.at().cfg }

// reconcile removes what daemons before left of this deployment, while calls go on: before
// the first container is made it is done in any case. An engine may be slow to make the
// last one for a daemon that was killed, so it is done again.
func (e *Engine) reconcile() {
	for _, wait := range []time.Duration{0, 5 * time.Second, 30 * time.Second, 5 * time.Minute} {
		select {
		case <-e.closing:
			return
		case <-time.After(wait):
			e.reconcileOnce()
		}
	}
}

func (e *Engine) reconcileOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-e.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	removed, err := e.docker.Reconcile(ctx)
	switch {
	case err != nil:
		e.log.Warn("containers that a daemon before left could not be removed; this is tried again before the next one is made", "err", err)
	case removed > 0:
		e.log.Info("containers that a daemon before left were removed", "count", removed)
	}
}

// sweep ends, now and then, what ends by itself: requests whose time is over, so
// that their sealed arguments go even when nobody asks again, and what lies idle.
func (e *Engine) sweep() {
	for {
		select {
		case <-e.closing:
			return
		case <-time.After(sweepEvery):
		}
		if err := e.sweepOnce(context.Background()); err != nil {
			e.log.Error("what is over could not be ended", "err", err)
		}
	}
}

const sweepEvery = time.Minute

// renew keeps the hold on what runs here, and says what could not be said before.
func (e *Engine) renew() {
	const often = 2 * time.Second
	for n := 1; ; n++ {
		select {
		case <-e.closing:
			return
		case <-time.After(often):
		}
		err := e.desk.SayUnsaid(context.Background())
		if n%int(approval.RenewEvery/often) == 0 {
			err = errors.Join(err, e.desk.Renew(context.Background()))
		}
		if err != nil {
			e.log.Error("what runs, or has ended, could not be written down", "err", err)
		}
	}
}

func (e *Engine) sweepOnce(ctx context.Context) error {
	now := e.ledger.Now()
	return errors.Join(e.desk.Sweep(ctx), e.desk.Escalate(ctx), e.desk.Forget(ctx), e.endIdle(ctx),
		e.endDelegations(ctx, "expired", func(d store.Delegation) bool { return d.Expires <= now }))
}

// Close ends the engine: calls under way are cancelled and waited for first, then
// background jobs. Closing again does nothing.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.stops.cancelAll()
	if e.jobs != nil {
		e.jobs.Close()
	}
	if e.ledger == nil {
		return e.close()
	}
	if e.desk != nil { // an end that is known here is not left to be unknown
		if err := e.desk.SayUnsaid(context.Background()); err != nil {
			e.log.Error("the end of a call could not be written down; it will be unknown", "err", err)
		}
	}
	err := e.ledger.Append(context.Background(), ledger.Entry{Kind: "engine.closed"})
	return errors.Join(err, e.close())
}

func (e *Engine) close() error {
	close(e.closing)
	e.sweeper.Wait()
	var errs []error
	for _, c := range e.closers {
		errs = append(errs, c.Close())
	}
	e.ways.Range(func(w, _ any) bool { errs = append(errs, w.(*Way).Close()); return true })
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	return errors.Join(errs...)
}

// jobEnded writes down how a background job ended: its call finished long before.
func (e *Engine) jobEnded(j exec.Ended) {
	data := []wire.Field{
		wire.Str("job", j.Job), wire.Str("session", j.Session), wire.Str("task", j.Task), wire.Str("outcome", string(j.State)),
		wire.Int("exit_code", int64(j.ExitCode)), wire.Str("limit", j.Limit), wire.Int("output_bytes", j.Bytes), wire.Int("micros", j.Elapsed.Microseconds()),
	}
	if j.Container != "" {
		data = append(data, wire.Str("container_id", j.Container))
	}
	err := e.ledger.Append(context.Background(), ledger.Entry{Kind: "job.ended", Call: j.Call, Agent: j.Agent, Data: data})
	if err != nil {
		e.log.Error("the end of a job could not be recorded", "job", j.Job, "err", err)
	}
}

// runner runs a tool under its writ. It is the gate's Runner.
type runner struct{ e *Engine }

func (r runner) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	c := w.Call()
	t := r.e.tool(c)
	if t == nil {
		return writ.Result{}, writ.Fail(writ.Changed, fmt.Sprintf("tool %s changed since the call was made", c.Tool), nil)
	}
	ctx, done, err := r.e.stops.begin(ctx, &run{call: c.ID, chain: c.Chain, token: c.Token, session: c.Session, task: c.Task})
	if err != nil {
		return writ.Result{}, err
	}
	defer done()
	if !r.e.scopes.open(c) {
		return writ.Result{}, errEnded
	}
	leave, err := r.e.turns.run(ctx, c.ID)
	if err != nil {
		return writ.Result{}, err
	}
	defer leave()
	if !c.Code { // a tool that calls others must not wait for itself
		done, err := r.e.places.take(ctx, c.Root())
		if err != nil {
			return writ.Result{}, err
		}
		defer done()
	}
	res, err := t.Run(ctx, w)
	if ctx.Err() != nil && (err != nil || res.IsError) {
		return res, cutOff(context.Cause(ctx))
	}
	if w.Approval().Edited && t.Output == nil { // JSON that a schema holds stays JSON
		res.Content = fmt.Sprintf("[a person approved this call with other arguments: %s]\n%s", c.Args, res.Content)
	}
	return res, err
}

// cutOff is the error of a run that somebody ended before it was done.
func cutOff(why error) error {
	var w *writ.Error
	if errors.As(why, &w) {
		return w
	}
	return writ.Fail(writ.Cancelled, "the call was cancelled, because its caller went away or the daemon ends", why)
}

// tool is the definition that a call was decided about: of the rules in force, or
// of the ones just before.
func (e *Engine) tool(c writ.Call) *tool.Tool {
	for _, r := range []*rules{e.rules.Load(), e.prior.Load()} {
		if r == nil {
			continue
		}
		if t, ok := r.catalog.Lookup(c.Tool); ok && t.Digest == c.Definition {
			return t
		}
	}
	return nil
}
