package docker

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/rig"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

func inRunsc(t *testing.T) Options {
	t.Helper()
	rig.Runsc(t)
	o := options(t)
	o.Runtime = runsc
	return o
}

// What every call demands is held with runsc, which is another kernel; what it is not able
// to hold is not claimed, and refused by name.
func TestRunsc(t *testing.T) {
	o := inRunsc(t)
	o.ReadOnly = true
	d, ws := driver(t, o), workspace(t)
	found, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Logf("%-16s %-5v %s", f.Feature, f.Enforced, f.Evidence)
	}
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized}
	if err := sandbox.Unmet(Name, found, c); err != nil {
		t.Fatal(err)
	}
	if !found.Has(sandbox.GVisor) {
		t.Error("gVisor is not claimed")
	}
	for _, f := range []sandbox.Feature{sandbox.ExecListed, sandbox.ProtectedName, sandbox.LimitPids} {
		if found.Has(f) {
			t.Errorf("%s is claimed", f)
		}
	}
	// The command is alone in a table of its own, nobody, and what it leaves ends with it.
	got := sandboxtest.Command(t, d, c, shell(`cat /proc/version; id -u; echo $$ $PPID; echo /proc/[0-9]*; grep Cap /proc/self/status; (setsid sleep 300 &) ; touch x`, ws))
	for _, want := range []string{"Linux version 4.4.0", "\n1000\n1 0\n/proc/1\n", "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing: %v", want, got)
		}
	}
	if got.Error != nil || got.Exit.Code != 1 || !strings.Contains(got.Err, "Read-only file system") {
		t.Errorf("a workspace that may be read alone: %v", got)
	}
	// It numbers files itself; when they were changed is the host's, which is how the suite tells them apart.
	var st syscall.Stat_t
	if err := syscall.Stat(ws, &st); err != nil {
		t.Fatal(err)
	}
	if got := sandboxtest.Command(t, d, c, shell(`python3 -c 'import os; print(os.stat(".").st_ctime_ns)'`, ws)); got.Out != fmt.Sprintln(st.Ctim.Nano()) {
		t.Errorf("a file was changed at %d: %v", st.Ctim.Nano(), got)
	}
	c.Exec.Mode = writ.ExecListed
	if got := sandboxtest.Command(t, d, c, shell("true", ws)); got.Error == nil || !strings.Contains(got.Error.Error(), "exec_listed") {
		t.Errorf("only listed programs: %v", got)
	}
}

// Where names are protected that a command could write, runsc is refused: it mounts nothing
// over them.
func TestRunscProtected(t *testing.T) {
	d, ws := driver(t, inRunsc(t)), workspace(t)
	c := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	if got := sandboxtest.Command(t, d, c, shell("echo x >.envrc", ws)); got.Error == nil || !strings.Contains(got.Error.Error(), "mount_mode: ro") {
		t.Errorf("%v", got)
	}
}

// What runsc claims holds in the suite. Names are not protected, or nothing could be written.
// All of it takes minutes, so CI has a part.
func TestDriverRunsc(t *testing.T) {
	o := inRunsc(t)
	d := New(o)
	d.Own([]byte(o.State))
	t.Cleanup(func() { d.Close() })
	groups := []string{"refuse", "privileges"}
	if os.Getenv("WRIT_SOAK") != "" {
		groups = nil
	}
	sandboxtest.Run(t, sandboxtest.Kept(d), groups...)
}
