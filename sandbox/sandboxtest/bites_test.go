//go:build linux

package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/prove"
)

// TestBites runs the suite on a driver that confines nothing but claims everything: as
// an ordinary user, and what that user may not do anyway as root. Every probe must then
// fail, or be named in unbroken with the reason: one that holds all the same is dead, and
// would hold for the wrong reason.
func TestBites(t *testing.T) {
	count := bites(t, everything, func(prove.Probe) bool { return true })
	if count[prove.Broken] < 400 || count[prove.Broken] < 3*(count[prove.Held]+count[prove.Skipped]) {
		t.Errorf("too few attacks work without a sandbox: %v", count)
	}
}

// What counts for gVisor alone lets nothing hold that is not: not on Linux either.
func TestBitesGVisor(t *testing.T) {
	groups := []string{"read", "devices", "privileges", "processes", "table"}
	bites(t, append(slices.Clip(everything), sandbox.GVisor), func(p prove.Probe) bool {
		return slices.Contains(groups, p.Group) || strings.HasPrefix(p.Name, "other architecture") || strings.HasPrefix(p.Name, "setns")
	})
}

// bites counts what became of some probes on a driver that only claims.
func bites(t *testing.T, claims []sandbox.Feature, some func(prove.Probe) bool) map[prove.Verdict]int {
	t.Helper()
	need.Root(t)
	if err := prove.Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	dir, err := os.MkdirTemp("/srv", "writ-bites-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	left := leftInTemp(t)
	seen := map[string]prove.Result{}
	run := func(d bare, only func(prove.Probe) bool) {
		defer killAll(t, dir)
		err := prove.Run(t.Context(), d, prove.Options{Dir: dir, Only: func(p prove.Probe) bool { return some(p) && only(p) }}, func(r prove.Result) {
			if old, ok := seen[r.Name()]; !ok || worse(r.Verdict) > worse(old.Verdict) {
				seen[r.Name()] = r
			}
		})
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) { // what was left running writes there still
			t.Fatal(err)
		}
	}
	run(bare{claims: claims}, func(p prove.Probe) bool { return harm[p.Group+"/"+p.Name] == "" })
	run(bare{claims: exclude(claims, sandbox.ProcessTable)}, func(p prove.Probe) bool { return seen[p.Group+"/"+p.Name].Verdict == prove.Skipped })
	run(bare{claims: claims, root: true}, func(p prove.Probe) bool {
		name := p.Group + "/" + p.Name
		return (slices.Contains(asRoot, p.Group) || slices.Contains(asRoot, name)) && seen[name].Verdict == prove.Held
	})
	left()
	count := map[prove.Verdict]int{}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		r := seen[name]
		count[r.Verdict]++
		why := unbroken[name]
		switch held := r.Verdict == prove.Held || r.Verdict == prove.Skipped; {
		case strings.Contains(r.Detail, "the control failed"):
			t.Errorf("%s: nothing was shown: %s", name, r.Detail)
		case held && why == "" && !slices.Contains(honest, r.Group) && !notHere(r):
			t.Errorf("%s is %s without a sandbox: %s", name, r.Verdict, r.Detail)
		}
	}
	t.Logf("without a sandbox: %v", count)
	return count
}

// What is named as unbroken is there.
func TestUnbroken(t *testing.T) {
	all := prove.All()
	for name := range unbroken {
		if !slices.ContainsFunc(all, func(p prove.Probe) bool { return p.Group+"/"+p.Name == name }) {
			t.Errorf("unbroken names %s, which does not exist", name)
		}
	}
}

// notHere reports whether a probe goes for a file of the machine that this one has not.
func notHere(r prove.Result) bool {
	at := map[string]string{"devices": "/dev/", "knobs": "/"}[r.Group]
	_, err := os.Lstat(at + r.Probe)
	return at != "" && err != nil
}

// worse orders verdicts by how much they show.
func worse(v prove.Verdict) int {
	return slices.Index([]prove.Verdict{prove.Skipped, prove.Held, prove.Inconclusive, prove.Broken}, v)
}

// asRoot are groups, and probes, whose attacks do no harm to a machine either when root
// makes them.
var asRoot = []string{
	"kernel", "knobs", "devices", "network", "hosts", "read", "privileges",
	"write/device node", "write/block device", "write/capabilities of a file", "write/trusted attribute", "write/give a file to root",
}

var everything = []sandbox.Feature{
	sandbox.FileRead, sandbox.FileWrite, sandbox.StateHidden, sandbox.ExecListed, sandbox.NoNetwork, sandbox.HostAllowlist, sandbox.SSHAgent, sandbox.OwnProcesses,
	sandbox.ProcessTable, sandbox.WholeTreeDies, sandbox.Unprivileged, sandbox.Containerized, sandbox.LimitWall, sandbox.LimitMemory, sandbox.LimitPids, sandbox.LimitOutput,
}

func exclude(claims []sandbox.Feature, f sandbox.Feature) []sandbox.Feature {
	return slices.DeleteFunc(slices.Clone(claims), func(x sandbox.Feature) bool { return x == f })
}

// bare is a driver that starts commands and does nothing else.
type bare struct {
	claims []sandbox.Feature
	root   bool
}

func (bare) Name() string { return "bare" }

func (b bare) Probe(context.Context) (sandbox.Features, error) {
	var out sandbox.Features
	for _, f := range b.claims {
		out = append(out, sandbox.Finding{Feature: f, Enforced: true})
	}
	return out, nil
}

func (b bare) Start(_ context.Context, w writ.Writ, s sandbox.Spec) (sandbox.Box, error) {
	c := exec.Command(s.Argv[0], s.Argv[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = s.Dir, s.Stdin, s.Stdout, s.Stderr
	c.Env = append(os.Environ(), "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp")
	for k, v := range s.Env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.WaitDelay = 100 * time.Millisecond
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !b.root {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	return bareBox{c, w.Confinement().Limits.Wall}, c.Start()
}

type bareBox struct {
	c    *exec.Cmd
	wall time.Duration
}

// Wait ends the command some time after its limit, so that the suite ends.
func (b bareBox) Wait(ctx context.Context) (sandbox.Exit, error) {
	kill := func() { b.c.Process.Kill() }
	defer time.AfterFunc(b.wall+time.Second, kill).Stop()
	defer context.AfterFunc(ctx, kill)()
	b.c.Wait()
	exit := sandbox.Exit{Code: b.c.ProcessState.ExitCode()}
	if ws := b.c.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		exit.Signal = ws.Signal().String()
	}
	return exit, nil
}

// killAll ends what the attacks left running: processes that name the scratch directory
// in their environment.
func killAll(t *testing.T, dir string) {
	for end := time.Now().Add(10 * time.Second); ; {
		found := false
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range all {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			for _, of := range []string{path, filepath.Join(filepath.Dir(path), "cwd")} {
				if env, err := os.ReadFile(of); err == nil && pid != os.Getpid() && bytes.Contains(env, []byte("WS="+dir+"/")) {
					syscall.Kill(pid, syscall.SIGKILL)
					found = true
				}
			}
		}
		if !found {
			return
		}
		if time.Now().After(end) {
			t.Error("something of the attacks still runs")
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// leftInTemp notes what is in the host's temporary directories and returns a function
// that removes what came since and belongs to the attacks' user: without a sandbox,
// scripts use the host's.
func leftInTemp(t *testing.T) func() {
	list := func() map[string]bool {
		out := map[string]bool{}
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				info, err := e.Info()
				if err == nil && info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Uid == 65534 {
					out[filepath.Join(dir, e.Name())] = true
				}
			}
		}
		return out
	}
	before := list()
	return func() {
		for path := range list() {
			if !before[path] {
				os.Remove(path)
			}
		}
	}
}
