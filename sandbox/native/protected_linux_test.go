package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/protect"
)

// A place is a workspace whose protected names are kept, and boxes that write it.
type place struct {
	t     *testing.T
	ws    string
	boxes *sandbox.Boxes
}

func newPlace(t *testing.T, s sandbox.Strategy, linger time.Duration) place {
	need.Programs(t, "git")
	d := native.New(native.Options{})
	t.Cleanup(func() { d.Close() })
	state := t.TempDir()
	names, err := protect.New(protect.Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: linger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { names.Close() })
	d.Protect(names)
	needLauncher(t, d)
	boxes := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{Strategy: s, Idle: time.Minute})
	t.Cleanup(func() { boxes.Close() })
	return place{t, workspace(t), boxes}
}

// in runs a script in a box.
func (p place) in(script string) (code int, out string) {
	p.t.Helper()
	g := calls{confined(p.ws), func(ctx context.Context, w writ.Writ) {
		tail := sandbox.NewTail(1 << 16)
		b, _, err := p.boxes.Start(ctx, w, sandbox.Spec{Argv: []string{"bash", "-c", script}, Stdout: tail, Stderr: tail})
		if err != nil {
			p.t.Fatal(err)
		}
		exit, err := b.Wait(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		code, out = exit.Code, tail.String()
	}}
	if _, err := writ.NewGate(g, g, g, g).Do(p.t.Context(), writ.Call{ID: "c", Agent: "a", Session: "s", Tool: "t", Definition: writ.Digest{1}, Dir: p.ws, Resolved: true}); err != nil {
		p.t.Fatal(err)
	}
	return code, out
}

// outside runs a script on the host.
func (p place) outside(script string) {
	p.t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", script, err, out)
	}
	if os.Geteuid() == 0 {
		exec.Command("chown", "-R", "65534:65534", p.ws).Run()
	}
}

// attack tries everything in a repository; what works is printed.
const attack = `cd %s || exit 9
	echo x >fine || exit 8
	for try in 'echo evil >>.git/config' 'echo evil >.git/hooks/evil' 'echo evil >.envrc' 'mkdir -p .vscode/evil' 'mv .git git2' 'rm -rf .git/config; test ! -e .git/config' 'echo evil >.git/info/evil'; do
		(eval "$try") 2>/dev/null && echo "worked: $try"
	done; true`

// Whatever happens to protected names between two runs, outside or in boxes, the next run
// finds them kept: mounts that were made ahead hold, or are made anew.
func TestNamesChangeBetweenRuns(t *testing.T) {
	for _, s := range []sandbox.Strategy{sandbox.PerAgent, sandbox.PerCall} {
		t.Run(string(s), func(t *testing.T) {
			p := newPlace(t, s, 300*time.Millisecond)
			p.outside("git init -q .; git config a.b c; mkdir -p lib/deep; git init -q lib/deep/nested")
			for _, step := range []struct{ name, outside, in, where string }{
				{"at first", "true", "true", "."},
				{"the same again", "true", "true", "."},
				{"settings changed by git", "git config a.b d", "true", "."},
				{"settings exchanged for a copy", "cp .git/config c; mv c .git/config", "true", "."},
				{"settings written in place", "echo '#' >>.git/config", "true", "."},
				{"removed and made again", "rm .git/config; echo '[core]' >.git/config", "true", "."},
				{"moved away and back", "mv .git g; mv g .git", "true", "."},
				{"exchanged for a copy", "cp -r .git g; mv .git h; mv g .git; rm -r h", "true", "."},
				{"a nested one moved", "mv lib lib2; mv lib2 lib", "true", "lib/deep/nested"},
				{"a nested one elsewhere", "mv lib other", "true", "other/deep/nested"},
				{"a nested one more", "git init -q more", "true", "more"},
				{"a nested one from a box", "true", "git init -q boxed", "boxed"},
				{"a nested one, removed and made in a box", "true", "rm -rf boxed; git init -q boxed", "boxed"},
				{"placeholders removed", "rmdir .vscode .claude 2>/dev/null; rm -f .envrc; true", "true", "."},
				{"something in their place", "rm -rf .envrc .vscode; echo mine >.envrc; mkdir .vscode; true", "true", "."},
				{"and gone again", "rm -rf .envrc .vscode", "true", "."},
				{"a symlink in its place", "mv more/.git real; ln -s ../real more/.git", "true", "."},
				{"more changes than the kernel tells of", "mkdir many; for i in $(seq 300); do for j in $(seq 60); do : >many/$i.$j; done; done; git init -q late; rm -r many", "true", "late"},
			} {
				p.outside(step.outside)
				p.in(step.in)
				before := p.look(step.where)
				if code, out := p.in(fmt.Sprintf(attack, step.where)); code != 0 || out != "" {
					t.Errorf("%s: exit %d: %s", step.name, code, out)
				}
				if now := p.look(step.where); now != before {
					t.Errorf("%s:\n%s\nwas\n%s", step.name, now, before)
				}
			}
		})
	}
}

// look tells what is protected in a repository.
func (p place) look(where string) string {
	var b strings.Builder
	for _, name := range []string{".git/config", ".git/hooks/evil", ".git/info/evil", ".envrc", ".vscode/evil"} {
		text, err := os.ReadFile(filepath.Join(p.ws, where, name))
		fmt.Fprintf(&b, "%s %q %v\n", name, text, err == nil)
	}
	return b.String()
}

// names are those of everything in the workspace.
func (p place) names() (all []string) {
	filepath.WalkDir(p.ws, func(path string, _ os.DirEntry, _ error) error { // what is gone meanwhile was there
		all = append(all, path)
		return nil
	})
	return all
}

// Mounts of placeholders that come and go do not pile up in a box that is used again.
func TestMountsDoNotPile(t *testing.T) {
	p := newPlace(t, sandbox.PerAgent, 200*time.Millisecond)
	p.outside("git init -q .")
	without := p.names()
	var counts []int
	for range 8 {
		_, out := p.in("wc -l </proc/self/mountinfo")
		n, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
		eventually(t, "placeholders stay", func() bool { return slices.Equal(p.names(), without) }) // all: over one that stays there would be another mount
	}
	// The second run has what was made ahead, below a fresh /tmp that shows it once more.
	if slices.Max(counts[2:]) > counts[1] {
		t.Errorf("mounts: %v", counts)
	}
}
