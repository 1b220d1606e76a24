package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Options say how to run the suite. The zero value runs all of it.
type Options struct {
	Dir      string           // where scratch directories are made: not below /tmp, /var/tmp or /dev/shm. Empty: found
	Parallel int              // how many probes at once; zero: as many as there are processors
	Only     func(Probe) bool // nil: every probe
}

// Prover tries probes on one driver. It is safe for concurrent use; Close it.
type Prover struct {
	driver sandbox.Driver
	have   sandbox.Features
	dir    string
	host   *host
	worlds atomic.Int64
}

// New probes the driver and makes what is attacked on the host. On error nothing is
// left behind.
func New(ctx context.Context, d sandbox.Driver, dir string) (*Prover, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	at, err := scratch(dir)
	if err != nil {
		return nil, err
	}
	p := &Prover{driver: d, dir: at}
	if p.host, err = newHost(at); err == nil { // before the driver starts anything that could inherit from it
		p.have, err = d.Probe(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Features is what the driver's own probe showed.
func (p *Prover) Features() sandbox.Features { return p.have }

// Close removes what the suite made.
func (p *Prover) Close() error {
	if p.host != nil {
		p.host.close()
	}
	return os.RemoveAll(p.dir)
}

// Run tries the probes on a driver and calls each with every result, one at a time. Ending
// the context ends the boxes and then Run, with the context's error; nothing is left.
func Run(ctx context.Context, d sandbox.Driver, o Options, each func(Result)) error {
	p, err := New(ctx, d, o.Dir)
	if err != nil {
		return err
	}
	var together, alone []Probe
	for _, x := range All() {
		switch {
		case o.Only != nil && !o.Only(x):
		case x.alone:
			alone = append(alone, x)
		default:
			together = append(together, x)
		}
	}
	workers := o.Parallel
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p.many(ctx, together, workers, each)
	p.many(ctx, alone, 1, each)
	return errors.Join(ctx.Err(), p.Close())
}

// many tries probes, so many at once, until the context ends.
func (p *Prover) many(ctx context.Context, probes []Probe, workers int, each func(Result)) {
	var next atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(probes) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r := p.Try(ctx, probes[i])
				if ctx.Err() != nil {
					return // what was cut short shows nothing
				}
				mu.Lock()
				each(r)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// Try tries one probe.
func (p *Prover) Try(ctx context.Context, x Probe) Result {
	began := time.Now()
	r := Result{Probe: x.Name, Group: x.Group, Feature: x.Feature}
	said, err := p.tryIn(ctx, x)
	r.Elapsed = time.Since(began)
	var f *finding
	switch {
	case err == nil:
		r.Verdict, r.Detail = Held, said
	case errors.As(err, &f):
		r.Verdict, r.Detail = f.verdict, f.text
	default:
		r.Verdict, r.Detail = Inconclusive, err.Error()
	}
	return r
}

// tryIn tries a probe in a world of its own.
func (p *Prover) tryIn(ctx context.Context, x Probe) (string, error) {
	if x.Feature != "" && !p.have.Has(x.Feature) {
		return "", skipped("the driver does not enforce %s here", x.Feature)
	}
	if x.shared && p.have.Has(sandbox.ProcessTable) {
		return "", skipped("the box has a process table and queues of its own: there is nobody else's to touch")
	}
	w, err := p.newWorld(filepath.Join(p.dir, fmt.Sprintf("w%d", p.worlds.Add(1))))
	defer w.close()
	if err != nil {
		return "", err
	}
	if x.arrange != nil {
		if err := x.arrange(w); err != nil {
			return "", err
		}
	}
	if x.try != nil {
		return "", x.try(ctx, w)
	}
	c := w.confinement()
	if x.confine != nil {
		x.confine(w, &c)
	}
	return w.attack(ctx, x, c)
}

// attack runs a probe's control and then its attack, and returns how that was refused.
func (w *world) attack(ctx context.Context, x Probe, c writ.Confinement) (string, error) {
	g := w.gvisor(x)
	if g.without != "" {
		return "", skipped("with gVisor %s", g.without)
	}
	control := w.bash(ctx, c, prelude+x.Control, x.env)
	works := control.Error == nil && control.Exit.Code == 0
	if !works && !g.lacking(control) {
		return "", inconclusive("the control failed: %s", control)
	}
	before, err := w.snapshot()
	if err != nil {
		return "", err
	}
	o := w.bash(ctx, c, prelude+g.script(x.Attack), x.env)
	said := o.Out + o.Err
	after, err := w.snapshot()
	switch {
	case errors.Is(o.Error, errStuck):
		return "", errStuck
	case o.Error != nil:
		return "", inconclusive("the attack was not run: %s", o)
	case strings.Contains(said, canary):
		return "", broken("the box saw what it must not see: %s", o)
	case o.Exit.Code == 0:
		return "", broken("it worked: %s", o)
	case err != nil && !x.free:
		return "", err
	case before != after && !x.free:
		return "", broken("something outside changed:\n%s\nwas\n%s", after, before)
	case !works:
		return "", skipped("gVisor has no such thing, and the attack did not work: %s", o)
	case g.nobody(said):
		return "", skipped("the command is the first process of its box: there is nobody else's to attack")
	}
	for _, text := range slices.Concat(x.Refusal, g.refusal) {
		if strings.Contains(said, text) || o.Exit.Signal == text {
			return text, nil
		}
	}
	return "", inconclusive("it failed, but not with %q: %s", x.Refusal, o)
}

// String is an outcome in a line or two.
func (o Outcome) String() string {
	how := fmt.Sprintf("exit %d", o.Exit.Code)
	for _, more := range []string{o.Exit.Signal, o.Exit.Limit} {
		if more != "" {
			how += ", " + more
		}
	}
	if o.Error != nil {
		how += ", " + o.Error.Error()
	}
	said := strings.TrimSpace(o.Out + o.Err)
	if len(said) > 600 {
		said = "…" + strings.ToValidUTF8(said[len(said)-600:], "")
	}
	return strings.TrimSpace(how + ": " + said)
}
