package prove

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// canary is in everything that a box must not see.
const canary = "CANARY-7f1c"

// A world is what a box has and does not have. All of it belongs to the user of the box,
// so that owners and modes stop nothing.
type world struct {
	driver             sandbox.Driver
	have               sandbox.Features
	base, ws, ro, out  string
	hidden, hiddenFile string // in ro
	vars               map[string]string
	last               []func()
	begin              string // of every script
}

// newWorld makes one in a directory that does not exist yet.
func (p *Prover) newWorld(base string) (*world, error) {
	w := &world{
		driver: p.driver, have: p.have, base: base,
		ws: filepath.Join(base, "ws"), ro: filepath.Join(base, "ro"), out: filepath.Join(base, "out"),
		hidden: filepath.Join(base, "ro/hidden"), hiddenFile: filepath.Join(base, "ro/hiddenfile"),
	}
	w.vars = maps.Clone(p.host.vars)
	maps.Copy(w.vars, map[string]string{
		"WS": w.ws, "RO": w.ro, "OUT": w.out, "BASE": w.base, "HID": w.hidden, "HIDFILE": w.hiddenFile, "LC_ALL": "C",
	})
	if p.have.Has(sandbox.GVisor) {
		w.numberless()
	}
	w.later(func() { os.RemoveAll(base) })
	var err error
	for _, dir := range []string{base, w.ws, w.ro, w.out, w.hidden, filepath.Join(w.ws, "keep/hidden")} {
		err = errors.Join(err, os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755))
	}
	for path, text := range map[string]string{
		"ws/file": "mine\n", "ro/file": "shared\n", "out/canary": canary, "out/link-to-me": canary,
		"ro/hidden/canary": canary, "ro/hiddenfile": canary, "ws/keep/hidden/canary": canary,
	} {
		at := filepath.Join(base, path)
		err = errors.Join(err, os.WriteFile(at, []byte(text), 0o644), os.Chmod(at, 0o644))
	}
	return w, errors.Join(err, giveAway(base))
}

// nobody is who boxes run as when this is root: the owner of their workspace.
const nobody = 65534

// giveAway makes the user of the box the owner of a tree.
func giveAway(root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
}

// later has f called when the world ends, last one first.
func (w *world) later(f func()) { w.last = append(w.last, f) }

func (w *world) close() {
	for i := len(w.last) - 1; i >= 0; i-- {
		w.last[i]()
	}
}

// wall is how long a script of a probe may take: far longer than any does.
const wall = 20 * time.Second

// confinement lets a box read ro and write ws.
func (w *world) confinement() writ.Confinement {
	return writ.Confinement{
		Read: []string{w.ro}, Write: []string{w.ws}, Hide: []string{w.hidden, w.hiddenFile, filepath.Join(w.ws, "keep/hidden")},
		Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process,
		Limits: writ.Limits{Wall: wall, Grace: 100 * time.Millisecond},
	}
}

// bash runs a script in a box. $WS, $RO, $OUT, $BASE, $HID and $HIDFILE name the world;
// those of the host are in host.go.
func (w *world) bash(ctx context.Context, c writ.Confinement, script string, env map[string]string) Outcome {
	vars := maps.Clone(w.vars)
	maps.Copy(vars, env)
	return w.run(ctx, c, sandbox.Spec{Argv: []string{"bash", "-c", w.begin + script}, Env: vars})
}

// run runs a command in a box, in the workspace.
func (w *world) run(ctx context.Context, c writ.Confinement, spec sandbox.Spec) Outcome {
	if spec.Dir == "" {
		spec.Dir = w.ws
	}
	return Command(ctx, w.driver, c, spec)
}

// snapshot is everything that is not the workspace: names, modes, owners, times, content.
func (w *world) snapshot() (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(w.base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == w.ws {
			fmt.Fprintln(&b, path)
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if len(text) > 4096 { // a program that the suite put there
			text = fmt.Append(nil, len(text))
		}
		_, err = fmt.Fprintf(&b, "%s %s %d %s %s\n", path, info.Mode(), info.ModTime().UnixNano(), owner(info), text)
		return err
	})
	return b.String(), err
}
