//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// bare is 'writ run --unsafe-unconfined' in the workspace.
func (w *world) bare(args ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"run", "--unsafe-unconfined"}, args...)...)
	cmd.Env, cmd.Dir = append(w.env(), "MY_API_KEY=secret"), w.ws
	return cmd
}

func (w *world) ends(cmd *exec.Cmd) outcome {
	w.t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout = &out; cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return outcome{exit(w.t, cmd), out.String(), errs.String()}
}

type unconfinedEntry struct {
	Kind, Call, Agent, Person string
	Data                      map[string]any
}

// unconfinedEntries are the ledger's about such commands.
func (w *world) unconfinedEntries() (out []unconfinedEntry) {
	w.t.Helper()
	for line := range strings.Lines(w.must("", "ledger", "tail", "-n", "1000", "--json")) {
		var e struct{ Body unconfinedEntry }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		if strings.HasPrefix(e.Body.Kind, "unconfined.") {
			out = append(out, e.Body)
		}
	}
	return out
}

func digestOf(argv ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(argv, "\x00") + "\x00"))
	return hex.EncodeToString(sum[:])
}

// said is the line that a command begins with, and the id in it.
var said = regexp.MustCompile(`(?m)^writ: UNCONFINED: nothing limits what (\S+) reads, writes or reaches \(--unsafe-unconfined; recorded as (unconfined_[a-z0-9]{16})\)\n`)

// A command runs as its caller, with nothing around it, printed and recorded before
// and after, by the daemon where one runs and without one where none does.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	for _, daemon := range []bool{false, true} {
		t.Run(fmt.Sprint("daemon ", daemon), func(t *testing.T) {
			w := newWorld(t, standard, "").init()
			if daemon {
				w.must("", "agent", "list") // starts one
			} else {
				w.daemonGone()
			}
			outside := filepath.Join(w.home, "outside")
			argv := []string{"sh", "-c", `touch "$1"; echo $MY_API_KEY $HOME $PWD; id -u; ` + program + ` ledger tail --json; exit 7`, "sh", outside}
			o := w.ends(w.bare(append([]string{"--"}, argv...)...))
			line := said.FindStringSubmatch(o.err)
			if o.code != 7 || line == nil || line[1] != "sh" || !strings.HasPrefix(o.err, line[0]) {
				t.Fatalf("%+v", o)
			}
			if want := fmt.Sprintf("secret %s %s\n%d\n", w.home, w.ws, os.Getuid()); !strings.HasPrefix(o.out, want) {
				t.Errorf("it does not run as its caller: %.200q", o.out)
			}
			if _, err := os.Stat(outside); err != nil {
				t.Error(err)
			}
			if !strings.Contains(o.out, `"call":"`+line[2]+`"`) || strings.Contains(o.out, "unconfined.ended") {
				t.Errorf("the command does not find its own start, or finds its end: %s", o.out)
			}
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			want := []unconfinedEntry{
				{Kind: "unconfined.started", Call: line[2], Data: map[string]any{"user": cli.UserName(), "uid": float64(os.Getuid()), "program": sh, "directory": w.ws,
					"argv_sha256": digestOf(argv...), "args": 5.0, "args_bytes": float64(len(strings.Join(argv, " ")) + 1)}},
				{Kind: "unconfined.ended", Call: line[2], Data: map[string]any{"outcome": "exited", "exit_code": 7.0, "signal": 0.0}},
			}
			if diff := cmp.Diff(want, w.unconfinedEntries()); diff != "" {
				t.Error(diff)
			}
			if out := w.must("", "ledger", "show", line[2]); strings.Contains(out, "MY_API_KEY") || strings.Count(out, `"kind": "unconfined.`) != 2 {
				t.Errorf("shown: %s", out)
			}
			tail := w.must("", "ledger", "tail")
			for _, shows := range []string{`unconfined\.started +user=` + cli.UserName() + `  program=` + sh + `  ` + line[2], `unconfined\.ended +outcome=exited  ` + line[2]} {
				if !regexp.MustCompile(`(?m)^ +\d+  \S+  ` + shows + `$`).MatchString(tail) {
					t.Errorf("no %s in\n%s", shows, tail)
				}
			}
			w.verifies()
		})
	}
}

// What comes of a command is what comes of it without writ.
func TestUnconfinedEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	if err := os.Mkdir(filepath.Join(w.ws, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(w.ws, "sub", "script")
	if err := os.WriteFile(script, []byte("#!/nowhere/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		args     []string
		code     int
		out, err string         // err: after the line
		end      map[string]any // as recorded; nil: nothing is
	}{
		{"an exit code", []string{"--", "sh", "-c", "echo out; echo err >&2; exit 255"}, 255, "out\n", "err\n", map[string]any{"outcome": "exited", "exit_code": 255.0, "signal": 0.0}},
		{"a signal", []string{"--", "sh", "-c", "kill -9 $$"}, 137, "", "", map[string]any{"outcome": "signalled", "exit_code": 137.0, "signal": 9.0}},
		{"input", []string{"--", "cat"}, 0, "typed\n", "", map[string]any{"outcome": "exited", "exit_code": 0.0, "signal": 0.0}},
		{"a directory", []string{"--dir", "sub", "--", "sh", "-c", "echo $PWD; pwd"}, 0, w.ws + "/sub\n" + w.ws + "/sub\n", "", map[string]any{"outcome": "exited", "exit_code": 0.0, "signal": 0.0}},
		{"what the system cannot execute", []string{"--dir", "sub", "--", "./script"}, 125, "",
			"writ run: not started: fork/exec ./script: no such file or directory\n", map[string]any{"outcome": "not_started", "exit_code": 125.0, "signal": 0.0}},
		{"no such program", []string{"--", "nonsense"}, 125, "", `writ run: not started: the program "nonsense" cannot be executed: executable file not found in $PATH; check its name and your PATH` + "\n", nil},
		{"no such directory", []string{"--dir", "none", "--", "true"}, 125, "", "writ run: not started: --dir: none: there is no such file or directory; make it first\n", nil},
		{"no command", []string{"--"}, 2, "", "writ: expected a command: writ run -- COMMAND [ARG...]\nRun 'writ run --help' for how it is used.\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(w.unconfinedEntries())
			cmd := w.bare(tc.args...)
			cmd.Stdin = strings.NewReader("typed\n")
			o := w.ends(cmd)
			if o.code != tc.code || o.out != tc.out || said.ReplaceAllString(o.err, "") != tc.err || said.MatchString(o.err) != (tc.end != nil) {
				t.Errorf("%+v", o)
			}
			now := w.unconfinedEntries()[before:]
			if tc.end == nil {
				if len(now) != 0 {
					t.Errorf("recorded: %v", now)
				}
				return
			}
			if len(now) != 2 || now[0].Kind != "unconfined.started" {
				t.Fatalf("recorded: %v", now)
			}
			if diff := cmp.Diff(tc.end, now[1].Data); diff != "" {
				t.Error(diff)
			}
		})
	}
	w.verifies()
}

// What cannot be recorded, or said, does not run.
func TestUnconfinedUnrecorded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		put  func(w *world, cmd *exec.Cmd)
		err  string // regular expression
	}{
		{"control", func(*world, *exec.Cmd) {}, ""},
		{"no configuration", func(w *world, _ *exec.Cmd) { os.Remove(w.config) },
			`it could not be recorded: there is no configuration at \S+/writ\.yaml; 'writ init' writes a starting one`},
		{"a configuration that does not hold", func(w *world, _ *exec.Cmd) { os.WriteFile(w.config, []byte("version: 1\nagnts: {}\n"), 0o600) },
			`it could not be recorded: writ\.yaml:2: .*agnts`},
		{"no room for the store", func(w *world, _ *exec.Cmd) {
			os.RemoveAll(w.state())
			os.WriteFile(w.state(), nil, 0o600)
		}, `it could not be recorded: writ\.yaml: store\.path: \S+ cannot be the store; name a directory of its own`},
		{"a ledger that was taken away", func(w *world, _ *exec.Cmd) {
			for _, name := range []string{"writ.db", "writ.db-wal", "writ.db-shm"} {
				os.Remove(w.state(name))
			}
		}, `it could not be recorded: open the ledger: `},
		{"nobody can read it", func(w *world, cmd *exec.Cmd) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { full.Close() })
			cmd.Stderr = full
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, standard, "").init()
			cmd := w.bare("--", "touch", "marker")
			tc.put(w, cmd)
			o := w.ends(cmd)
			_, err := os.Stat(filepath.Join(w.ws, "marker"))
			if tc.name == "control" {
				if o.code != 0 || err != nil {
					t.Errorf("inconclusive: %+v %v", o, err)
				}
				return
			}
			if o.code != 125 || o.out != "" || err == nil || !regexp.MustCompile(tc.err).MatchString(o.err) || strings.Contains(o.err, "UNCONFINED") {
				t.Errorf("%+v, marker: %v", o, err)
			}
			if tc.name == "nobody can read it" {
				if all := w.unconfinedEntries(); len(all) != 2 || all[1].Data["outcome"] != "not_started" {
					t.Errorf("recorded: %v", all)
				}
			}
		})
	}
}

// A daemon of another configuration is not the one that was meant.
func TestUnconfinedNamedConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.must("", "agent", "list")
	o := w.ends(w.bare("--config", filepath.Join(w.home, "other.yaml"), "--", "touch", "marker"))
	if _, err := os.Stat(filepath.Join(w.ws, "marker")); o.code != 125 || err == nil || !strings.Contains(o.err, "there is no configuration at "+w.home+"/other.yaml") {
		t.Errorf("%+v", o)
	}
	if o := w.ends(w.bare("--config", w.config, "--", "touch", "marker")); o.code != 0 {
		t.Errorf("inconclusive: %+v", o)
	}
	// One that runs has it, whatever has become of the file.
	if err := os.WriteFile(w.config, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := w.ends(w.bare("--", "true")); o.code != 0 || !said.MatchString(o.err) {
		t.Errorf("%+v", o)
	}
}

// Flags that would be dropped are refused, with the names of all of them.
func TestUnconfinedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	for flags, named := range map[string]string{
		"--read /etc":                "--read",
		"--write /srv":               "--write",
		"--env A=1":                  "--env",
		"--program cat":              "--program",
		"--policy p.yaml":            "--policy",
		"--timeout 5s":               "--timeout",
		"--no-caches":                "--no-caches",
		"--env A=1 --read / --dir .": "--read, --env",
	} {
		o := w.ends(w.bare(append(strings.Fields(flags), "--", "touch", "marker")...))
		want := "writ: --unsafe-unconfined confines nothing, so " + named + " would mean nothing; leave one or the other out\nRun 'writ run --help' for how it is used.\n"
		if _, err := os.Stat(filepath.Join(w.ws, "marker")); o.code != 2 || o.err != want || err == nil {
			t.Errorf("%s: %+v %v", flags, o, err)
		}
	}
	if o := w.ends(w.bare("--dir", ".", "--", "touch", "marker")); o.code != 0 {
		t.Errorf("inconclusive: %+v", o)
	}
	if out := w.must("", "__complete", "run", "--unsafe"); !strings.Contains(out, "--unsafe-unconfined\tno sandbox: nothing is limited, and the ledger has it\n") {
		t.Errorf("completes %q", out)
	}
	if out := w.must("", "run", "--help"); !strings.Contains(out, "writ run --unsafe-unconfined -- ./install.sh\n") {
		t.Errorf("help: %s", out)
	}
}

// Several at once are all recorded, and so is one whose daemon ends meanwhile.
func TestUnconfinedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if o := w.ends(w.bare("--", "true")); o.code != 0 || said.ReplaceAllString(o.err, "") != "" {
				t.Errorf("%+v", o)
			}
		})
	}
	all.Wait()
	w.must("", "agent", "list") // starts a daemon
	if o := w.ends(w.bare("--", program, "serve", "--stop")); o.code != 0 || o.out != "the daemon is ending\n" || said.ReplaceAllString(o.err, "") != "" {
		t.Errorf("%+v", o)
	}
	if o := w.ends(w.bare("--", "sh", "-c", program+" serve --stop >/dev/null 2>&1; mv "+w.config+" "+w.home+"; exit 3")); o.code != 3 ||
		!regexp.MustCompile(`^writ: the end of unconfined_\w+ could not be recorded: there is no configuration at `).MatchString(said.ReplaceAllString(o.err, "")) {
		t.Errorf("an end that cannot be recorded: %+v", o)
	}
	if err := os.Rename(filepath.Join(w.home, "writ.yaml"), w.config); err != nil {
		t.Fatal(err)
	}
	if got := w.unconfinedEntries(); len(got) != 8*2+2+1 {
		t.Errorf("%d entries: %v", len(got), got)
	}
	w.verifies()
}

// In a box there is nowhere to record it, so an agent's command does not get there.
func TestUnconfinedInBox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: full, terminal: full}\n", "").init()
	for _, name := range []string{"writ", "writd"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(program), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.ws, name), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if o := w.shell("./writ --version && touch control"); o.code != 0 {
		t.Fatalf("inconclusive: %+v", o)
	}
	for _, env := range []string{"A=", "WRIT_CONFIG=" + w.config, "HOME=" + w.home} {
		if o := w.shell(env + " ./writ run --unsafe-unconfined -- touch marker; echo exit $?"); !strings.Contains(o.out, "exit 125") {
			t.Errorf("%s: %+v", env, o)
		}
	}
	made, _ := filepath.Glob(filepath.Join(w.ws, "[cm]*"))
	if len(made) != 1 || filepath.Base(made[0]) != "control" || len(w.unconfinedEntries()) != 0 {
		t.Errorf("%v, %v", made, w.unconfinedEntries())
	}
}

// Signals go to the command, which answers them; one that is ignored stays so.
func TestUnconfinedSignals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		begun := filepath.Join(w.ws, fmt.Sprint("begun", int(s)))
		cmd := w.bare("--", "sh", "-c", fmt.Sprintf("trap 'exit 9' %d; touch %s; while :; do sleep 0.05; done", s, begun))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { _, err := os.Stat(begun); return err == nil })
		cmd.Process.Signal(s)
		if code := exit(t, cmd); code != 9 {
			t.Errorf("%v: exit %d", s, code)
		}
	}
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$0" run --unsafe-unconfined -- sh -c 'kill -HUP $$; echo alive'`, program)
	cmd.Env, cmd.Dir = w.env(), w.ws
	if o := w.ends(cmd); o.code != 0 || o.out != "alive\n" {
		t.Errorf("%+v", o)
	}
}

// hearing counts what it hears, as soon as it hears it: a shell would put two signals
// that come one upon the other together.
const hearing = `
import os, signal, sys
n = 0
def heard(*_):
    global n
    n += 1
    os.write(1, b"interrupted %d\n" % n)
signal.signal(signal.SIGINT, heard)
size = os.get_terminal_size()
print(size.columns, size.lines, flush=True)
x = sys.stdin.readline().strip()
print("got", x, flush=True)
y = sys.stdin.readline().strip()
print(x, "and", y, n, flush=True)
sys.exit(5)
`

// At a terminal the command has that terminal, and hears a key once.
func TestUnconfinedAtTerminal(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	w := newWorld(t, standard, "").init()
	tm := newTerminal(t, 97, 31)
	cmd := w.onIn(tm, "run", "--unsafe-unconfined", "--", "python3", "-c", hearing)
	tm.waits("does not show its size", func() bool { return strings.Contains(tm.raw(), "97 31\r\n") })
	tm.types("hello\r")
	tm.waits("does not read", func() bool { return strings.Contains(tm.raw(), "got hello\r\n") }) // a key that interrupts drops what is not read
	tm.types("\x03")
	tm.waits("does not hear Ctrl-C", func() bool { return strings.Contains(tm.raw(), "interrupted 1\r\n") })
	tm.types("again\r")
	tm.waits("does not read again", func() bool { return strings.Contains(tm.raw(), "hello and again 1\r\n") })
	if code := exit(t, cmd); code != 5 || tm.modes() != tm.before {
		t.Errorf("exit %d", code)
	}
}

// Where no sandbox can be had, what is missing is named, and the way without one last.
func TestNoSandboxNamesUnconfined(t *testing.T) {
	t.Parallel()
	need.Programs(t, "unshare", "setpriv")
	w := newWorld(t, standard, "")
	w.own(w.home)
	run := func(setting string) outcome {
		inside := setting + `; exec "$0" run -- true`
		args := []string{"unshare", "-U", "--map-user=65534", "--map-group=65534", "--keep-caps", "sh", "-c", inside, program}
		if os.Getuid() == 0 {
			args = append([]string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}, args...)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Dir = w.env(), w.ws
		return w.ends(cmd)
	}
	if o := run("true"); o.code != 0 {
		need.Lacking(t, "no sandbox inside a user namespace here: %+v", o)
	}
	last := `  'writ doctor' shows what works here; to run it with nothing confined, which is recorded: writ run --unsafe-unconfined -- COMMAND\n$`
	o := run("echo 0 >/proc/sys/user/max_user_namespaces")
	want := `^writ run: sandbox_unavailable: [^\n]*namespaces[^\n]*\n  no user namespaces may be made: sysctl -w user\.max_user_namespaces=15000\n(  [^\n]*\n)*` + last
	if o.code != 125 || !regexp.MustCompile(want).MatchString(o.err) {
		t.Errorf("%+v", o)
	}
	o = run("echo 0 >/proc/sys/user/max_net_namespaces") // its launcher begins, and its box does not
	want = `^writ run: sandbox_unavailable: no namespaces can be made; [^\n]*user\.max_\*_namespaces[^\n]*\n(  [^\n]*\n)*` + last
	if o.code != 125 || !regexp.MustCompile(want).MatchString(o.err) {
		t.Errorf("%+v", o)
	}
}
