package sandboxtest

import (
	"context"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Kept is the driver with boxes that are kept between commands that reach the same: a
// probe's attack has the box in which its control ran.
func Kept(d sandbox.Keeper) sandbox.Driver {
	return &keeping{Keeper: d, idle: map[string]sandbox.Kept{}}
}

type keeping struct {
	sandbox.Keeper
	mu   sync.Mutex
	idle map[string]sandbox.Kept
}

// Start implements sandbox.Driver. What reaches the network is not kept by anybody.
func (k *keeping) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	p, err := k.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	if w.Confinement().Network.Mode != writ.NetworkNone {
		return p.Start(ctx)
	}
	in := k.take(p.Alike())
	if in != nil {
		if box, err := p.StartIn(ctx, in); err == nil {
			return &keptBox{box, k, p.Alike(), in}, nil
		}
		in.Close() // it was unfit, as after a limit that bit: the next is fresh
	}
	if in, err = p.Keep(ctx); err != nil {
		return nil, err
	}
	box, err := p.StartIn(ctx, in)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &keptBox{box, k, p.Alike(), in}, nil
}

func (k *keeping) take(alike string) sandbox.Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	in := k.idle[alike]
	delete(k.idle, alike)
	return in
}

// keptBox gives its box back once its command has ended.
type keptBox struct {
	sandbox.Box
	of    *keeping
	alike string
	in    sandbox.Kept
}

// Wait implements sandbox.Box.
func (b *keptBox) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit, err := b.Box.Wait(ctx)
	if b.in.Renew(context.WithoutCancel(ctx)) != nil {
		b.in.Close()
		return exit, err
	}
	b.of.mu.Lock()
	other := b.of.idle[b.alike]
	b.of.idle[b.alike] = b.in
	b.of.mu.Unlock()
	if other != nil {
		other.Close()
	}
	time.AfterFunc(2*time.Second, func() {
		if in := b.of.take(b.alike); in != nil {
			in.Close()
		}
	})
	return exit, err
}
