//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// repository makes the workspace one, with another below it and things to protect.
func (w *world) repository() {
	w.t.Helper()
	need.Programs(w.t, "git")
	script := `set -e; git init -q; git config user.email a@b; git config user.name x; mkdir -p lib/deep; git init -q lib/deep/nested
		echo secret-one >.env; mkdir -p conf; echo secret-two >conf/.env; echo {} >.mcp.json; echo plain >plain; git add plain; git commit -qm first`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = w.ws, append(w.env(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chown", "-R", "65534:65534", w.ws).CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
}

// Whatever a shell in a box tries, protected names stay as they are, whether they were
// there or not; the work beside them goes on.
func TestProtectedNamesInShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	w.repository()
	look := func() string {
		var b strings.Builder
		for _, name := range []string{".git/config", ".git/hooks", "lib/deep/nested/.git/config", "lib/deep/nested/.git/hooks", ".mcp.json", ".env", "conf/.env", ".envrc", ".vscode", ".claude", ".gitmodules", "lib/deep/nested/.envrc"} {
			info, err := os.Lstat(filepath.Join(w.ws, name))
			if err != nil {
				b.WriteString(name + " is not there\n")
				continue
			}
			text, _ := os.ReadFile(filepath.Join(w.ws, name))
			entries, _ := os.ReadDir(filepath.Join(w.ws, name))
			b.WriteString(name + " " + info.Mode().String() + " " + string(text))
			for _, e := range entries {
				b.WriteString(" " + e.Name())
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	before := look()
	for name, row := range map[string][2]string{ // a control, and an attack
		"a hook":                     {"echo x >new", "echo x >.git/hooks/pre-commit"},
		"the configuration of git":   {"git config --list", "git config core.fsmonitor 'touch /x'"},
		"by another name":            {"mv plain p2 && mv p2 plain", "mv .git x && cp -r x .git"},
		"an ancestor":                {"mkdir d && mv d e && rmdir e", "mv lib lib2"},
		"an ancestor, exchanged":     {"true", `python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b'lib',-100,b'conf',2))"`},
		"a nested one":               {"echo x >lib/deep/nested/file", "echo x >lib/deep/nested/.git/hooks/post-checkout"},
		"what is not there":          {"echo x >other", "echo x >.envrc"},
		"a directory not there":      {"mkdir -p o/p && rm -r o", "mkdir -p .vscode && echo {} >.vscode/tasks.json"},
		"what is not there, nested":  {"echo x >lib/deep/nested/other", "echo x >lib/deep/nested/.envrc"},
		"by a link":                  {"ln plain l && rm l", "ln .mcp.json l && echo y >>l"},
		"by a symlink":               {"ln -s plain s && echo plain >s && rm s", "ln -s .git/config s; echo y >>s; r=$?; rm s; exit $r"},
		"removed":                    {"echo x >r && rm r", "rm -rf .mcp.json .git/hooks; test ! -e .mcp.json"},
		"a secret":                   {"cat plain", "cat .env"},
		"a secret below":             {"cat plain", "cat conf/.env"},
		"a secret, copied":           {"mkdir c1 && cp plain c1 && cat c1/plain && rm -r c1", "cp -r conf c2; cat c2/.env"},
		"the placeholder":            {"true", "rmdir .claude || rm -f .envrc; test ! -e .claude -o ! -e .envrc"},
		"a mount away":               {"true", "umount .git/hooks || umount .envrc"},
		"through /proc":              {"cat /proc/self/cwd/plain", "echo x >/proc/self/cwd/.envrc"},
		"with a case that is folded": {"echo x >Other && rm Other", "test -e .GIT/hooks && echo x >.GIT/hooks/pre-commit"},
	} {
		t.Run(name, func(t *testing.T) {
			if o := w.shell(row[0]); o.code != 0 {
				t.Fatalf("inconclusive: the control: %+v", o)
			}
			o := w.shell(row[1])
			if o.code == 0 || strings.Contains(o.out, "secret-") {
				t.Errorf("it worked: %+v", o)
			}
			for end := time.Now().Add(5 * time.Second); look() != before; time.Sleep(20 * time.Millisecond) { // placeholders linger
				if time.Now().After(end) {
					t.Fatalf("changed:\n%s\nwas\n%s", look(), before)
				}
			}
		})
	}
	if o := w.shell("echo more >>plain && git add -A . ':!lib' ':!conf' ':!.env' && git -c user.name=x -c user.email=a@b commit -qm second && git log --oneline | wc -l && git status --short | grep -v '??'"); !strings.Contains(o.out, "2\n") {
		t.Errorf("git does not work: %+v", o)
	}
	if out, _ := exec.Command("git", "-c", "safe.directory=*", "-C", w.ws, "ls-files").Output(); strings.Contains(string(out), ".envrc") || strings.Contains(string(out), ".vscode") {
		t.Errorf("placeholders were committed: %s", out)
	}
}

// A tool whose policy names something protected can change that, and nothing else that is
// protected; no tool gets at secrets by naming them.
func TestProtectedNamesOfAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	w.repository()
	define := func(name, also string) {
		w.place("tools/"+name+".yaml", `name: `+name+`
description: Put a line into a file of the workspace.
category: file_system
action_type: code:write
egress_class: none
policy:
  risk: low
  filesystem: {read: ["`+w.ws+`/**"], write: ["`+w.ws+`/**"`+also+`]}
  exec: allow
parameters: {type: object, properties: {file: {type: string}, at: {type: string, x-writ-path: write}}, additionalProperties: false}
runner: {process: {argv: [sh, -c, 'mkdir -p "$(dirname "$1")"; echo new >>"$1"', put, {arg: file}]}}
`)
	}
	define("put_named", `, "`+w.ws+`/.vscode/**", "`+w.ws+`/.env"`)
	define("put_plain", "")
	w.accept("put_named", "put_plain")
	for _, tc := range []struct {
		tool, file string
		put        bool
	}{
		{"put_named", "plain2", true},
		{"put_named", ".vscode/tasks.json", true},
		{"put_named", ".claude/settings.json", false},
		{"put_named", ".git/hooks/pre-commit", false},
		{"put_named", ".env", false},
		{"put_plain", "plain3", true},
		{"put_plain", ".vscode/settings.json", false},
	} {
		o := w.call(tc.tool, map[string]any{"file": tc.file})
		text, err := os.ReadFile(filepath.Join(w.ws, tc.file))
		if put := err == nil && strings.HasSuffix(string(text), "new\n"); put != tc.put {
			t.Errorf("%s %s: %q %v %+v", tc.tool, tc.file, text, err, o)
		}
	}
	// The gate on arguments says the same.
	if o := w.run("", "explain", "put_named", "--agent", "coder", "at="+w.ws+"/.vscode/tasks.json"); strings.Contains(o.out, "is protected") {
		t.Errorf("%+v", o)
	}
	if o := w.run("", "explain", "put_plain", "--agent", "coder", "at="+w.ws+"/.vscode/tasks.json"); !strings.Contains(o.out, `".vscode" is protected and cannot be changed`) {
		t.Errorf("%+v", o)
	}
}

// What appears elsewhere during a run is moved away, and said.
func TestProtectedNamesThatAppear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	o := w.shell("mkdir -p a/b && echo evil >a/b/.envrc && git init -q fresh && echo '#!/bin/sh' >fresh/.git/hooks/pre-commit && chmod +x fresh/.git/hooks/pre-commit && echo fine >a/b/file")
	if o.code != 0 || strings.Count(o.out, "undone, since it is protected") != 2 {
		t.Errorf("%+v", o)
	}
	for _, gone := range []string{"a/b/.envrc", "fresh/.git/hooks/pre-commit"} {
		if _, err := os.Lstat(filepath.Join(w.ws, gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	for _, there := range []string{"a/b/file", "fresh/.git/HEAD"} {
		if _, err := os.Lstat(filepath.Join(w.ws, there)); err != nil {
			t.Error(err)
		}
	}
	for script, gone := range map[string]string{
		"git init -q --bare sub && git -C sub config core.fsmonitor 'touch /x'":                                                                                           "sub/config",
		`mkdir b2; git init -q a2; git -C a2 config core.fsmonitor x; python3 -c "import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b'a2',-100,b'b2',2))"`:      "b2/.git/config",
		"G=node_modules/z/.git/modules/m; mkdir -p p; git init -q --bare $G; git --git-dir=$G config core.fsmonitor x; echo \"gitdir: ../$G\" >p/.git; echo fine >p/file": "p/.git",
	} {
		if o := w.shell(script); o.code != 0 || !strings.Contains(o.out, "undone, since it is protected") || !strings.Contains(o.out, gone) {
			t.Errorf("%s: %+v", script, o)
		}
		if _, err := os.Lstat(filepath.Join(w.ws, gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	kept, _ := filepath.Glob(w.state("quarantine", "*", "a", "b", ".envrc"))
	if len(kept) != 1 {
		t.Errorf("nothing may be lost: %v", kept)
	}
}

// Two runs hand over what neither may leave: one makes a repository and a second name of its
// settings, which the other, from which they are kept, opens meanwhile, and writes when the
// first has ended.
func TestProtectedNamesHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	is := func(name string) func() bool {
		return func() bool { _, err := os.Lstat(filepath.Join(w.ws, name)); return err == nil }
	}
	maker := exec.Command(program, "run", "--no-caches", "--", "bash", "-c", "git init -q sub && ln sub/.git/config p && touch made && until test -e opened; do sleep 0.02; done; rm p")
	maker.Env, maker.Dir = w.env(), w.ws
	if err := maker.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, is("made"))
	said := make(chan outcome, 1)
	go func() {
		said <- w.shell("echo >>sub/.git/config && echo WRITTEN; exec 3>>p && touch opened; until test -e ended; do sleep 0.02; done; printf '[core]\\n\\tfsmonitor = touch /x\\n' >&3 && echo HANDED OVER")
	}()
	if err := maker.Wait(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(w.ws, "ended"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := <-said
	if strings.Contains(o.out, "WRITTEN") || !strings.Contains(o.out, "HANDED OVER") {
		t.Errorf("inconclusive: %+v", o)
	}
	if !strings.Contains(o.out, "sub/.git/config (it has settings by which git runs") || is("sub/.git/config")() {
		t.Errorf("%+v", o)
	}
}

// A daemon that is killed leaves placeholders behind; the next one takes them away.
func TestProtectedNamesAfterKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	_, kill := w.serve()
	running := w.starts("call", "shell_command", "command=touch begun; sleep 300")
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(w.ws, "begun")); return err == nil })
	if _, err := os.Lstat(filepath.Join(w.ws, ".envrc")); err != nil {
		t.Fatalf("inconclusive: %v", err)
	}
	kill()
	running.cmd.Process.Kill()
	if o := w.call("stat", map[string]any{"path": "begun"}); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	entries, _ := os.ReadDir(w.ws)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// A protected name may be a symlink to something that is called otherwise: by that name it is
// neither read nor changed, nor by another symlink to it.
func TestProtectedNamesAsSymlinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	script := `set -e; mkdir -p conf/sec conf/vscode; echo SECRET >conf/sec/env; echo plain >conf/plain; echo '{}' >conf/vscode/tasks.json
		ln -s conf/sec/env .env; ln -s conf/vscode .vscode; ln -s conf/plain link; ln -s .env other`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = w.ws
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.ownAll(t, w.ws)
	if o := w.call("read_file", map[string]any{"path": "link"}); o.code != 0 || !strings.Contains(o.out, "plain") {
		t.Errorf("another symlink: %+v", o)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"read_file", map[string]any{"path": ".env"}}, {"read_file", map[string]any{"path": "other"}}, {"read_file", map[string]any{"path": "conf/../.env"}},
		{"write_file", map[string]any{"path": ".vscode/tasks.json", "content": "evil"}}, {"write_file", map[string]any{"path": ".env", "content": "evil"}},
		{"move_file", map[string]any{"source": ".env", "destination": "p"}}, {"edit_file", map[string]any{"path": ".vscode/tasks.json", "old_text": "{}", "new_text": "evil"}},
	} {
		if o := w.call(c.tool, c.args); o.code != cli.ExitDenied || !strings.Contains(o.err, "is protected") || strings.Contains(o.out, "SECRET") {
			t.Errorf("%s %v: %+v", c.tool, c.args, o)
		}
	}
	if b, err := os.ReadFile(filepath.Join(w.ws, "conf/vscode/tasks.json")); err != nil || string(b) != "{}\n" {
		t.Errorf("%q %v", b, err)
	}
}
