package docker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/rig"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// An engine that is killed during a call leaves nothing that goes on: neither the command,
// nor a container that waits for the next one. While the engine lives a command takes as
// long as it takes, also one that never reads what it is sent.
func TestEngineKilled(t *testing.T) {
	e := rig.Small(t, rig.Own(t))
	o := options(t)
	o.Host, o.Image = e.Host, e.Image
	d, ws := driver(t, o), workspace(t)
	d.beatEvery, d.silence = tick, 6*tick
	file := filepath.Join(ws, "file")
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	sandboxtest.With(t, confined, ws, func(ctx context.Context, w writ.Writ) {
		spec := shell(`for i in {1..30}; do echo x >>file; sleep 0.2; done`, ws)
		spec.Stdin = bytes.NewReader(make([]byte, 1<<20))
		p, err := d.Plan(ctx, w, spec)
		if err != nil {
			t.Fatal(err)
		}
		waits, err := p.Keep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if exit := endsIn(t, p, waits); exit.Code != 0 || exit.Elapsed < 2*d.silence-tick || size(file) != 60 {
			t.Fatalf("with an engine that lives: %+v, %d bytes", exit, size(file))
		}
		b, err := d.Start(ctx, w, shell(`while :; do echo x >>file; i=$((i+1)); mkdir -p r$i/.git/hooks; echo x >r$i/.git/hooks/pre-commit; sleep 0.2; done`, ws))
		if err != nil {
			t.Fatal(err)
		}
		for size(file) < 70 {
			time.Sleep(tick)
		}
		rig.Kill(t, e)
		was := size(file)
		time.Sleep(2 * tick)
		if size(file) == was {
			t.Error("the command ended with the engine: nothing was tried")
		}
		stop, cancel := context.WithCancel(ctx)
		cancel() // whoever gives up is told no less
		if _, err := b.Wait(stop); err == nil || !strings.Contains(err.Error(), "was lost while the command ran") {
			t.Errorf("it is told as %v", err)
		}
		if hooks, _ := filepath.Glob(ws + "/r*/.git/hooks/pre-commit"); len(hooks) > 0 {
			t.Errorf("%d hooks are left", len(hooks))
		}
		was = size(file)
		time.Sleep(4 * tick)
		if now := size(file); now != was {
			t.Errorf("the command goes on: %d bytes, then %d", was, now)
		}
		if left := shown(ws); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
	})
}

// A container that somebody pauses for longer than the daemon may be silent goes on where it
// was: its beats have waited for it.
func TestPaused(t *testing.T) {
	d, ws := driver(t, options(t)), workspace(t)
	d.beatEvery, d.silence = tick, 4*tick
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	sandboxtest.With(t, confined, ws, func(ctx context.Context, w writ.Writ) {
		b, err := d.Start(ctx, w, shell("sleep 3; exit 7", ws))
		if err != nil {
			t.Fatal(err)
		}
		c := b.(*box).in
		if _, err := c.engine.ContainerPause(ctx, c.id, client.ContainerPauseOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * d.silence)
		if _, err := c.engine.ContainerUnpause(ctx, c.id, client.ContainerUnpauseOptions{}); err != nil {
			t.Fatal(err)
		}
		if exit, err := b.Wait(ctx); err != nil || exit.Code != 7 || exit.Elapsed < 2*d.silence {
			t.Errorf("%+v %v", exit, err)
		}
	})
}

func endsIn(t *testing.T, p sandbox.Plan, in sandbox.Kept) sandbox.Exit {
	t.Helper()
	b, err := p.StartIn(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := b.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// shown are the processes of containers that are shown a directory.
func shown(dir string) (lines []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, at := range all {
		line, _ := os.ReadFile(at + "/cmdline")
		mounts, _ := os.ReadFile(at + "/mountinfo")
		if bytes.Contains(mounts, []byte(dir)) {
			lines = append(lines, string(line))
		}
	}
	return lines
}
