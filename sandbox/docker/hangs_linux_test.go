package docker

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/rig"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// An engine that takes connections and answers nobody fails what wants something of it, and
// what ran through it ends. When it goes on, so does everything.
func TestEngineHangs(t *testing.T) {
	e := rig.Small(t, rig.Own(t))
	o := options(t)
	o.Host, o.Image = e.Host, e.Image
	d, ws := driver(t, o), workspace(t)
	d.beatEvery, d.silence, d.answers = tick, 6*tick, 8*tick
	file := filepath.Join(ws, "file")
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	sandboxtest.With(t, confined, ws, func(ctx context.Context, w writ.Writ) {
		b, err := d.Start(ctx, w, shell(`while :; do echo x >>file; sleep 0.2; done`, ws))
		if err != nil {
			t.Fatal(err)
		}
		for size(file) < 4*int64(d.silence/tick) { // it goes on for as long as the engine answers
			time.Sleep(tick)
		}
		goOn := rig.Hang(t, e)
		if _, err := b.Wait(ctx); err == nil || !strings.Contains(err.Error(), "was lost while the command ran") {
			t.Errorf("a command that ran is told as %v", err)
		}
		was := size(file)
		time.Sleep(2 * tick)
		if now := size(file); now != was {
			t.Errorf("the command goes on: %d bytes, then %d", was, now)
		}
		const hangs = "is there and does not answer; restart it"
		if _, err := d.Start(ctx, w, shell("true", ws)); err == nil || !strings.Contains(err.Error(), hangs) {
			t.Errorf("the next is told as %v", err)
		}
		if _, err := d.Examine(ctx); err == nil || !strings.Contains(err.Error(), hangs) {
			t.Errorf("looking at it says %v", err)
		}
		goOn()
		b, err = d.Start(ctx, w, shell("exit 7", ws))
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := b.Wait(ctx); err != nil || exit.Code != 7 {
			t.Errorf("then: %+v %v", exit, err)
		}
	})
}
