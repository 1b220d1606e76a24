//go:build linux

package subprocess_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"github.com/writ-run/writ/sandbox/subprocess"
)

// TestRefusals: what is asked for wrongly is refused with something to do.
func TestRefusals(t *testing.T) {
	d := subprocess.New(subprocess.Options{})
	ws := workspace(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(ws, link); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Argv: []string{"true"}}
	for _, tc := range []struct {
		name   string
		change func(*writ.Confinement, *sandbox.Spec)
		kind   writ.Kind
		says   string
	}{
		{"nothing wrong", func(*writ.Confinement, *sandbox.Spec) {}, "", ""},
		{"no command", func(_ *writ.Confinement, s *sandbox.Spec) { s.Argv = nil }, writ.Invalid, "no command"},
		{"relative root", func(c *writ.Confinement, _ *sandbox.Spec) { c.Read = []string{"x"} }, writ.Invalid, "absolute"},
		{"unclean root", func(c *writ.Confinement, _ *sandbox.Spec) { c.Read = []string{"/usr/../etc"} }, writ.Invalid, "clean"},
		{"root that is a symlink now", func(c *writ.Confinement, _ *sandbox.Spec) { c.Write = append(c.Write, link) }, writ.SandboxUnavailable, "symlinks"},
		{"root that is not there", func(c *writ.Confinement, _ *sandbox.Spec) { c.Write = append(c.Write, ws+"-no") }, writ.SandboxUnavailable, "must exist"},
		{"processes as a root", func(c *writ.Confinement, _ *sandbox.Spec) { c.Read = []string{"/proc"} }, writ.SandboxUnavailable, "a /proc of its own"},
		{"devices as a root", func(c *writ.Confinement, _ *sandbox.Spec) { c.Write = append(c.Write, "/dev") }, writ.SandboxUnavailable, "leave it out"},
		{"hidden workspace", func(c *writ.Confinement, _ *sandbox.Spec) { c.Hide = []string{filepath.Dir(ws)} }, writ.Invalid, "hidden"},
		{"directory outside", func(_ *writ.Confinement, s *sandbox.Spec) { s.Dir = "/etc" }, writ.Denied, "workspace"},
		{"directory that leads outside", func(_ *writ.Confinement, s *sandbox.Spec) {
			os.Symlink("/etc", ws+"/etc")
			s.Dir = ws + "/etc"
		}, writ.Denied, "workspace"},
		{"directory that is not there", func(_ *writ.Confinement, s *sandbox.Spec) { s.Dir = ws + "/no" }, writ.Invalid, "existing"},
		{"no such program", func(_ *writ.Confinement, s *sandbox.Spec) { s.Argv = []string{"nope"} }, writ.NotFound, "PATH"},
		{"not a program", func(_ *writ.Confinement, s *sandbox.Spec) { s.Argv = []string{"./data"} }, writ.Invalid, "format"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			os.WriteFile(ws+"/data", []byte("\x00\x01"), 0o755)
			c, s := confined(ws), spec
			tc.change(&c, &s)
			o := sandboxtest.Command(t, d, c, s)
			kind, msg := writ.Kind(""), ""
			if o.Error != nil {
				kind, msg = writ.Public(o.Error)
			}
			if kind != tc.kind || !strings.Contains(msg, tc.says) {
				t.Errorf("%q %q (%v), want %q and %q", kind, msg, o.Error, tc.kind, tc.says)
			}
		})
	}
}

// TestUnsafeOptions: both settings of each option.
func TestUnsafeOptions(t *testing.T) {
	ws, tools := workspace(t), workspace(t)
	if err := os.WriteFile(tools+"/mytool", []byte("#!/bin/sh\necho mine\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":/usr/bin:/bin")
	for _, tc := range []struct {
		name string
		opts subprocess.Options
		spec sandbox.Spec
		ok   bool
	}{
		{"dir", subprocess.Options{}, sandbox.Spec{Argv: []string{"true"}, Dir: "/etc"}, false},
		{"any dir", subprocess.Options{Options: reach.Options{UnsafeAnyDir: true}}, sandbox.Spec{Argv: []string{"true"}, Dir: "/etc"}, true},
		{"path", subprocess.Options{}, sandbox.Spec{Argv: []string{"mytool"}}, false},
		{"prefix", subprocess.Options{Options: reach.Options{PathPrefixes: []string{tools}}}, sandbox.Spec{Argv: []string{"mytool"}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := confined(ws)
			o := sandboxtest.Command(t, subprocess.New(tc.opts), c, tc.spec)
			if ok := o.Error == nil && o.Exit.Code == 0; ok != tc.ok {
				t.Errorf("%v, %+v %s", o.Error, o.Exit, o.Err)
			}
		})
	}
}

// TestRootWorkspace: nothing runs as root, whoever owns the workspace.
func TestRootWorkspace(t *testing.T) {
	need.Root(t)
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := sandboxtest.Command(t, subprocess.New(subprocess.Options{}), confined(ws), sandbox.Spec{Argv: []string{"id"}})
	if kind, msg := writ.Public(o.Error); kind != writ.SandboxUnavailable || !strings.Contains(msg, "chown -R USER: "+ws) {
		t.Errorf("%q %q", kind, msg)
	}
}

// TestLanguages: what people run works in a box.
func TestLanguages(t *testing.T) {
	d := subprocess.New(subprocess.Options{Options: reach.Options{PathPrefixes: []string{"/usr/local/go/bin"}}})
	for _, argv := range [][]string{
		{"python3", "-c", "import json, ssl, hashlib, subprocess; print(subprocess.check_output(['echo', 'ok']).decode())"},
		{"node", "-e", "new WebAssembly.Memory({initial:1}); require('child_process').execSync('true'); console.log('ok')"},
		{"git", "init", "ok"},
		{"perl", "-e", "print 'ok'"},
		{"java", "-version"},
		{"bash", "-c", "echo 'package main;func main(){println(\"ok\")}' >m.go; GOFLAGS=-buildvcs=false go run m.go"},
	} {
		t.Run(argv[0], func(t *testing.T) {
			need.Programs(t, argv[0])
			c := confined(workspace(t))
			c.Limits.Wall = 0
			if o := sandboxtest.Command(t, d, c, sandbox.Spec{Argv: argv}); o.Error != nil || o.Exit.Code != 0 || !strings.Contains(strings.ToLower(o.Out+o.Err), "ok") && argv[0] != "java" {
				t.Errorf("%v %+v\n%s%s", o.Error, o.Exit, o.Out, o.Err)
			}
		})
	}
}

// TestWholeTree: with everything writable, what belongs to the machine is not,
// and hidden stays hidden; with everything readable and a list of programs, the
// list holds.
func TestWholeTree(t *testing.T) {
	d := subprocess.New(subprocess.Options{})
	ws := workspace(t)
	if err := os.MkdirAll(ws+"/hidden/x", 0o777); err != nil {
		t.Fatal(err)
	}
	c := confined(ws)
	c.Write = append(c.Write, "/")
	c.Read, c.Hide = []string{"/"}, []string{ws + "/hidden"}
	o := sandboxtest.Command(t, d, c, sandbox.Spec{Dir: ws, Argv: []string{"bash", "-c",
		`echo x >` + ws + `/file && ls / >/dev/null && cat /etc/fstab >/dev/null && ! ls hidden/x && ! echo 1 >/proc/self/oom_score_adj && ! cat /proc/1/cmdline && ! touch /usr/x /proc/x /sys/x /dev/x`}})
	if o.Error != nil || o.Exit.Code != 0 {
		t.Errorf("%v %+v\n%s%s", o.Error, o.Exit, o.Out, o.Err)
	}
	if b, err := os.ReadFile(ws + "/file"); string(b) != "x\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestLargeCommand: the confiner still works under the limits of the command.
func TestLargeCommand(t *testing.T) {
	if restrict.RaceBuild {
		t.Skip("the race detector maps memory while the command is copied")
	}
	c := confined(workspace(t))
	c.Limits.Memory = 32 << 20
	argv := []string{"true"}
	for range 15 {
		argv = append(argv, strings.Repeat("x", 100<<10))
	}
	if o := sandboxtest.Command(t, subprocess.New(subprocess.Options{}), c, sandbox.Spec{Argv: argv}); o.Error != nil || o.Exit.Code != 0 {
		t.Errorf("%v %+v %s", o.Error, o.Exit, o.Err)
	}
}

// TestArgumentsAreBytes: they need not be text, and come as they are.
func TestArgumentsAreBytes(t *testing.T) {
	const want = "\xff\xfe text"
	o := sandboxtest.Command(t, subprocess.New(subprocess.Options{}), confined(workspace(t)), sandbox.Spec{Argv: []string{"printf", "%s", want}})
	if o.Error != nil || o.Exit.Code != 0 || o.Out != want {
		t.Errorf("%q, %+v, %v", o.Out, o.Exit, o.Error)
	}
}
