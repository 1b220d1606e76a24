package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}

// Each row of SPEC §5.2 with the real operation really blocked, and a control
// that shows the same operation working where it is allowed. What this driver
// cannot hold is refused by name.
func TestFileSystemRow(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"workspace_only", "project_directory", "full"} {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t, "level: standard\noverrides: {file_system: "+level+", terminal: full}\n", "").init()
			w.write(filepath.Join(w.ws, "in"), "inside")
			w.write(filepath.Join(w.project, "beside"), "beside")
			outside := filepath.Join(w.home, "outside")
			w.write(outside, "outside")
			project, full := level != "workspace_only", level == "full"
			check := func(what string, got outcome, want bool) {
				t.Helper()
				if (got.code == 0) != want {
					t.Errorf("%s: want %v, got %+v", what, want, got)
				}
			}
			check("read inside", w.call("read_file", map[string]any{"path": "in"}), true)
			check("shell reads inside", w.shell("cat in"), true)
			check("shell writes inside", w.shell("echo x > new"), true)
			check("read beside", w.call("read_file", map[string]any{"path": filepath.Join(w.project, "beside")}), project)
			check("shell reads beside", w.shell("cat ../beside"), project)
			check("shell writes beside", w.shell("echo x > ../new"), project)
			check("read outside", w.call("read_file", map[string]any{"path": outside}), full)
			check("shell reads outside", w.shell("cat "+outside), full)
			check("shell writes outside", w.shell("echo x > "+outside), false)
			check("shell changes the mode outside", w.shell("chmod 777 "+outside), false)
			check("through a symlink", w.shell("ln -s "+outside+" l && cat l"), full)
			check("the tool through that symlink", w.call("read_file", map[string]any{"path": "l"}), full)
			if o := w.call("write_file", map[string]any{"path": outside, "content": "x"}); full && o.code != 4 || !full && o.code != 3 {
				t.Errorf("write outside: %+v", o)
			}
			if b, _ := os.ReadFile(outside); string(b) != "outside" {
				t.Errorf("the file outside was changed: %q", b)
			}
		})
	}
}

// With full, a command writes elsewhere only where a person agreed to that place.
func TestWritableByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated\n", "").init()
	dir := filepath.Join(w.home, "shared")
	os.Mkdir(dir, 0o755)
	w.own(dir)
	args := map[string]any{"command": "echo x > " + dir + "/f", "writable": []string{dir}}
	if o := w.call("shell_command", args); o.code != 4 {
		t.Fatalf("it does not ask: %+v", o)
	}
	w.must(pass+"\n", "approval", "approve", w.pending(), "--passphrase-stdin")
	if o := w.call("shell_command", args); o.code != 0 {
		t.Errorf("approved: %+v", o)
	}
	if b, _ := os.ReadFile(dir + "/f"); string(b) != "x\n" {
		t.Errorf("it wrote %q", b)
	}
}

func TestNetworkRow(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hits := make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			hits <- struct{}{}
			c.Close()
		}
	}()
	probe := fmt.Sprintf(`python3 -c 'import socket; socket.create_connection(("127.0.0.1", %d), 3)'`, l.Addr().(*net.TCPAddr).Port)
	for _, mode := range []string{"none", "allowlist_only", "open"} {
		w := newWorld(t, "level: elevated\noverrides: {network: "+mode+"}\n", "").init()
		if o := w.shell(probe); o.code == 0 || !strings.Contains(o.out, "Connection refused") {
			t.Errorf("%s: without hosts there is no network: %+v", mode, o)
		}
		if o := w.shell("exec 3<>/dev/tcp/127.0.0.1/" + fmt.Sprint(l.Addr().(*net.TCPAddr).Port)); o.code == 0 {
			t.Errorf("%s: /dev/tcp: %+v", mode, o)
		}
		o := w.call("shell_command", map[string]any{"command": probe, "hosts": []string{"example.com"}})
		switch {
		case mode != "open" && o.code != 3:
			t.Errorf("%s: with hosts: %+v", mode, o)
		case mode == "open" && o.code != 4:
			t.Errorf("%s: nobody is asked: %+v", mode, o)
		}
	}
	select {
	case <-hits:
		t.Error("a box reached the listener")
	default:
	}
	if out, err := shellOutside(probe); err != nil {
		t.Fatalf("the control does not reach the listener: %s", out)
	}
	<-hits
}

func TestTerminalRow(t *testing.T) {
	t.Parallel()
	need.Programs(t, "perl")
	tests := []struct{ mode, level string }{{"none", "standard"}, {"restricted_commands", "standard"}, {"full", "standard"}}
	for _, tt := range tests {
		w := newWorld(t, "level: "+tt.level+"\noverrides: {terminal: "+tt.mode+", code_execution: process}\n", "").init()
		ls, perl, own := w.shell("ls -d ."), w.shell("perl -e 1"), w.shell("printf '#!/bin/sh\\necho ran\\n' > s; chmod +x s; ./s")
		loader := w.shell("/lib64/ld-linux-x86-64.so.2 $(command -v perl) -e 1")
		bash := w.call("code_runner", map[string]any{"language": "bash", "code": "echo hi"})
		switch tt.mode {
		case "none":
			if ls.code != 3 || !strings.Contains(ls.err, "terminal: none") || bash.code != 3 {
				t.Errorf("none: %+v %+v", ls, bash)
			}
		case "restricted_commands":
			if ls.code != 0 || perl.code == 0 || own.code == 0 || loader.code == 0 || bash.code != 0 {
				t.Errorf("restricted: ls %+v perl %+v own %+v loader %+v bash %+v", ls, perl, own, loader, bash)
			}
		case "full":
			if ls.code != 0 || perl.code != 0 || own.code != 0 || loader.code != 0 {
				t.Errorf("full: ls %+v perl %+v own %+v loader %+v", ls, perl, own, loader)
			}
		}
	}
}

func TestCodeExecutionRow(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	args := map[string]any{"language": "python", "code": "print(6*7)"}
	w := newWorld(t, "level: standard\n", "").init()
	if o := w.call("code_runner", args); o.code != 0 || o.out != "42\n" {
		t.Errorf("containerized: %+v", o)
	}
	w = newWorld(t, "level: standard\n", "sandboxing: {default_backend: subprocess}\n").init()
	if o := w.call("code_runner", args); o.code != 1 || !strings.Contains(o.err, "sandbox_unavailable: driver subprocess does not enforce containerized") {
		t.Errorf("containerized, on a driver that is not: %+v", o)
	}
	w = newWorld(t, "level: standard\noverrides: {code_execution: process}\n", "").init()
	if o := w.call("code_runner", args); o.code != 0 || o.out != "42\n" {
		t.Errorf("process: %+v", o)
	}
}

// Whatever git is set to, nothing leaves the machine on this driver: a push to a
// real git daemon fails inside and works outside.
func TestGitRow(t *testing.T) {
	need.Programs(t, "git")
	base := t.TempDir()
	run := func(cmd string) {
		t.Helper()
		if out, err := shellOutside(cmd); err != nil {
			t.Fatalf("%s: %s", cmd, out)
		}
	}
	port := freePort(t)
	run("git init -q --bare " + base + "/r.git && git -C " + base + "/r.git config daemon.receivepack true && touch " + base + "/r.git/git-daemon-export-ok")
	stop := startOutside(t, "git", "daemon", "--listen=127.0.0.1", fmt.Sprintf("--port=%d", port), "--base-path="+base, "--reuseaddr", base)
	defer stop()
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	push := fmt.Sprintf("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git push -q git://127.0.0.1:%d/r.git HEAD:refs/heads/%%s", port)
	for _, mode := range []string{"local_only", "read_and_branch", "full"} {
		w := newWorld(t, "level: elevated\noverrides: {git: "+mode+"}\n", "").init()
		if o := w.shell("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l"); o.code != 0 {
			t.Errorf("%s: committing locally: %+v", mode, o)
		}
		if o := w.shell(fmt.Sprintf(push, mode)); o.code == 0 {
			t.Errorf("%s: pushed: %+v", mode, o)
		}
	}
	work := t.TempDir()
	run("cd " + work + " && " + fmt.Sprintf(push, "control"))
	if out, _ := shellOutside("git -C " + base + "/r.git branch"); strings.TrimSpace(out) != "control" {
		t.Errorf("branches on the server: %s", out)
	}
}

func TestRequiresApprovalRow(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int{"code:delete": 4, "code": 4, "all": 4, "deploy:*": 0} {
		w := newWorld(t, "level: standard\noverrides: {requires_approval: ["+fmt.Sprintf("%q", pattern)+"]}\n", "").init()
		w.write(filepath.Join(w.ws, "x"), "x")
		if o := w.call("delete_file", map[string]any{"path": "x"}); o.code != want {
			t.Errorf("%s: %+v", pattern, o)
		}
	}
}
