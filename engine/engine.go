// Package engine joins the parts: it loads a configuration, opens the store and
// the ledger, builds the catalog, the decider and the gate, and closes them
// again. It constructs, it does not decide. The daemon is built on it, and a Go
// program can open one of its own.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/files"
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
}

// Engine is an open engine. It is safe for concurrent use.
type Engine struct {
	Config *config.Config

	log     *slog.Logger
	now     func() time.Time
	store   *store.DB
	ledger  *ledger.Ledger
	desk    *approval.Desk
	people  *person.Checker
	catalog *tool.Catalog
	decider *decide.Decider
	drivers sandbox.Set
	gate    *writ.Gate
	agents  map[string]*access.Agent
	tokens  tokens
	stops   stops
	closing chan struct{} // ends the sweeper
	sweeper sync.WaitGroup
}

// Open readies an engine. On error nothing is left open.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{log: o.Log, now: o.Now, agents: map[string]*access.Agent{}, closing: make(chan struct{})}
	if e.log == nil {
		e.log = slog.Default()
	}
	if e.now == nil {
		e.now = time.Now
	}
	path, err := config.Path(o.Config)
	if err != nil {
		return nil, err
	}
	cfg, err := LoadConfig(path)
	if err != nil {
		return nil, err
	}
	if err := e.build(cfg, o.Launcher); err != nil {
		return nil, err
	}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// LoadConfig reads and checks a configuration against the tools there are.
func LoadConfig(path string) (*config.Config, error) {
	tools, err := builtins(nil)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return config.Load(path, names)
}

func builtins(boxes exec.Starter) ([]*tool.Tool, error) {
	fileTools, err := files.Tools()
	if err != nil {
		return nil, err
	}
	execTools, err := exec.Tools(boxes)
	return append(fileTools, execTools...), err
}

// build makes everything that needs no store.
func (e *Engine) build(cfg *config.Config, launcher []string) error {
	e.Config = cfg
	sub := cfg.File.Sandboxing.Subprocess
	e.drivers = sandbox.Set{subprocess.New(subprocess.Options{
		Launcher: launcher, PathPrefixes: sub.ExtraSafePathPrefixes,
		UnsafeAnyPath: !sub.RestrictedPath, UnsafeAnyDir: !sub.WorkspaceOnly,
	})}
	tools, err := builtins(e.drivers)
	if err != nil {
		return err
	}
	if e.catalog, err = tool.NewCatalog(tools...); err != nil {
		return err
	}
	for i := range cfg.Agents {
		e.agents[cfg.Agents[i].Name] = &cfg.Agents[i]
	}
	e.decider = decide.New(e.input(cfg))
	return nil
}

func (e *Engine) input(cfg *config.Config) decide.Input {
	f := cfg.File
	in := decide.Input{
		Types: cfg.Types, Agents: cfg.Agents, Presets: cfg.Presets, Tools: e.catalog.All(), Rules: map[string]decide.Rule{},
		Commands: access.Set[[]string]{V: findPrograms(config.Programs(f.ToolAccess.RestrictedCommands), f.Sandboxing.Subprocess.ExtraSafePathPrefixes), At: cfg.At("tool_access.restricted_commands")},
		Hide:     hidden(cfg), Digest: cfg.Digest,
		Backends: decide.Backends{Default: string(f.Sandboxing.DefaultBackend), ByCategory: map[action.Category]string{}},
		Limits: writ.Limits{
			Wall:  time.Duration(f.Sandboxing.Subprocess.TimeoutSeconds) * time.Second,
			Grace: time.Duration(f.Sandboxing.Subprocess.KillGraceSeconds) * time.Second,
		},
	}
	for c, b := range f.Sandboxing.Overrides {
		in.Backends.ByCategory[c] = string(b)
	}
	for name, r := range f.Tools {
		key := "tools." + name
		in.Rules[name] = decide.Rule{
			RequiresApproval: access.Set[bool]{V: r.RequiresApproval, At: cfg.At(key + ".requires_approval")},
			Disabled:         access.Set[bool]{V: r.Disabled, At: cfg.At(key + ".disabled")},
		}
	}
	return in
}

// hidden is writ's own state: store, keys, socket, witness and configuration, as
// they resolve. A configuration directory of writ's own is hidden whole, so that
// nothing can be put beside the file either.
func hidden(cfg *config.Config) []string {
	path := cfg.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if dir := filepath.Dir(path); filepath.Base(dir) == "writ" {
		path = dir
	}
	hide := []string{cfg.StatePath}
	if !policy.Below(cfg.Witness, cfg.StatePath) {
		hide = append(hide, cfg.Witness)
	}
	return append(hide, path)
}

// open opens the store and what stands on it.
func (e *Engine) open(ctx context.Context) error {
	var err error
	if e.store, err = sqlite.Open(ctx, e.Config.StatePath); err != nil {
		return err
	}
	keys, err := loadKeys(filepath.Join(e.Config.StatePath, "keys"))
	if err != nil {
		return err
	}
	e.ledger, err = ledger.Open(ctx, e.store, ledger.Options{Key: keys.sign, Witness: e.Config.Witness, Now: e.now})
	if err != nil {
		return err
	}
	e.desk, err = approval.NewDesk(approval.Options{
		Store: e.store, Ledger: e.ledger, Key: keys.seal, Expiry: time.Duration(e.Config.File.Approvals.Expiry), Now: e.now,
	})
	if err != nil {
		return err
	}
	e.people = person.NewChecker(e.now)
	if err := e.loadState(ctx); err != nil {
		return err
	}
	if err := e.desk.Sweep(ctx); err != nil {
		return err
	}
	e.sweeper.Go(e.sweep)
	e.gate = writ.NewGate(decider{e}, e.desk, e.ledger, runner{e})
	return e.ledger.Append(ctx, ledger.Entry{Kind: "engine.opened", Data: []wire.Field{
		wire.Str("policy", e.Config.Digest.String()), wire.Str("version", Version()),
		wire.Str("unsafe", strings.Join(e.Config.Warnings, "\n")),
	}})
}

// sweep ends, now and then, requests whose time is over, so that their sealed
// arguments go even when nobody asks again.
func (e *Engine) sweep() {
	for {
		select {
		case <-e.closing:
			return
		case <-time.After(sweepEvery):
		}
		if err := e.desk.Sweep(context.Background()); err != nil {
			e.log.Error("expired requests could not be ended", "err", err)
		}
	}
}

const sweepEvery = time.Hour

// Close ends the engine: calls under way are cancelled and waited for first.
func (e *Engine) Close() error {
	e.stops.cancelAll()
	if e.ledger == nil {
		return e.close()
	}
	err := e.ledger.Append(context.Background(), ledger.Entry{Kind: "engine.closed"})
	return errors.Join(err, e.close())
}

func (e *Engine) close() error {
	close(e.closing)
	e.sweeper.Wait()
	var errs []error
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	return errors.Join(errs...)
}

// runner runs a tool under its writ. It is the gate's Runner.
type runner struct{ e *Engine }

func (r runner) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	c := w.Call()
	t, ok := r.e.catalog.Lookup(c.Tool)
	if !ok || t.Digest != c.Definition {
		return writ.Result{}, writ.Fail(writ.Changed, fmt.Sprintf("tool %s changed since the call was made", c.Tool), nil)
	}
	ctx, done, err := r.e.stops.begin(ctx, c.Agent)
	if err != nil {
		return writ.Result{}, err
	}
	defer done()
	return t.Run(ctx, w)
}
