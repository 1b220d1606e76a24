package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the binary under test, built once.
var program string

// builtBefore names the program that this one's parent has built: a lab runs a test by
// starting its own program again.
const builtBefore = "WRIT_TEST_PROGRAM"

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if program = os.Getenv(builtBefore); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "writ-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	program = filepath.Join(dir, "writ")
	if out, err := exec.Command("go", "build", "-o", dir, ".", "../writd").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(builtBefore, program); err != nil {
		panic(err)
	}
	return m.Run()
}

// world is one user's set-up: a home, a configuration, a workspace inside a
// project, and a daemon that the first command starts.
type world struct {
	t       testing.TB
	home    string
	ws      string // the agent's workspace
	project string
	config  string
	token   string
	path    string   // PATH of the commands; empty: this process's
	more    []string // of the commands' environment
}

const pass = "correct horse"

// nobody is whom commands run as where root made what they write.
const nobody = 65534

// configText is a configuration with one agent; extra is laid into the agent.
const configText = `version: 1
listen: 127.0.0.1:0
workspaces:
  main: {path: %q, project: %q}
agents:
  coder:
    workspace: main
    person: alice
%s
`

// newWorld sets one up. agent is YAML of the agent, more is YAML at top level.
func newWorld(t testing.TB, agent, more string) *world {
	t.Helper()
	home, err := os.MkdirTemp(base(t), "writ-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, project: filepath.Join(home, "project"), config: filepath.Join(home, ".config/writ/writ.yaml")}
	w.ws = filepath.Join(w.project, "app")
	for _, d := range []string{w.ws, filepath.Dir(w.config)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.own(w.project, w.ws)
	text := fmt.Sprintf(configText, w.ws, w.project, indent(agent)) + more
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.run("", "serve", "--stop")
		w.daemonGone()
		os.RemoveAll(home)
	})
	return w
}

// base is where worlds are made: not below /tmp, which every box has of its own,
// and where the user that boxes run as can enter.
func base(t testing.TB) string {
	if os.Geteuid() == 0 {
		return "/srv"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// own gives paths to the user that boxes run as.
func (w *world) own(paths ...string) {
	if os.Geteuid() != 0 {
		return
	}
	for _, p := range paths {
		if err := os.Chown(p, nobody, nobody); err != nil {
			w.t.Fatal(err)
		}
	}
}

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + line)
	}
	return b.String()
}

func (w *world) state(parts ...string) string {
	return filepath.Join(append([]string{w.home, ".local/state/writ"}, parts...)...)
}

func (w *world) env() []string {
	return append([]string{"HOME=" + w.home, "PATH=" + cmp.Or(w.path, os.Getenv("PATH")), "WRIT_TOKEN=" + w.token, "LANG=C.UTF-8"}, w.more...)
}

// outcome is how a command ended.
type outcome struct {
	code     int
	out, err string
}

// run runs the program with standard input, bounded in time.
func (w *world) run(stdin string, args ...string) outcome {
	w.t.Helper()
	within := time.Minute
	if os.Getenv("WRIT_SOAK") != "" {
		within *= 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = w.env(), w.home
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("writ %v: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// must runs the program and demands that it succeeds.
func (w *world) must(stdin string, args ...string) string {
	w.t.Helper()
	o := w.run(stdin, args...)
	if o.code != 0 {
		w.t.Fatalf("writ %v: exit %d\n%s%s", args, o.code, o.out, o.err)
	}
	return o.out
}

// init makes the first person and takes the agent's token.
func (w *world) init() *world {
	w.t.Helper()
	out := w.must(pass+"\n", "init", "--as", "alice", "--passphrase-stdin")
	_, rest, ok := strings.Cut(out, "WRIT_TOKEN=")
	if !ok {
		w.t.Fatalf("init shows no token:\n%s", out)
	}
	w.token, _, _ = strings.Cut(rest, "\n")
	return w
}

// call calls a tool with JSON arguments and does not wait for a person.
func (w *world) call(tool string, args map[string]any) outcome {
	w.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(string(b), "call", tool, "--no-wait", "--args", "-")
}

// shell runs a command as the agent.
func (w *world) shell(command string) outcome {
	w.t.Helper()
	return w.call("shell_command", map[string]any{"command": command})
}

// pending is the id of the one request that waits.
func (w *world) pending() string {
	w.t.Helper()
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(w.must("", "approval", "list", "--json")), &list); err != nil || len(list) != 1 {
		w.t.Fatalf("want one request, got %v %v", list, err)
	}
	return list[0].ID
}

// verifies demands that the ledger verifies.
func (w *world) verifies() {
	w.t.Helper()
	if out := w.must("", "ledger", "verify"); !strings.Contains(out, "the ledger verifies") {
		w.t.Errorf("ledger: %s", out)
	}
}

// ledgerKinds lists the kinds of all entries.
func (w *world) ledgerKinds() []string {
	w.t.Helper()
	var kinds []string
	for line := range strings.Lines(w.must("", "ledger", "tail", "-n", "1000", "--json")) {
		var e struct{ Body struct{ Kind string } }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		kinds = append(kinds, e.Body.Kind)
	}
	return kinds
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.own(path)
}

// daemonGone waits until no daemon holds the store's lock.
func (w *world) daemonGone() {
	w.t.Helper()
	for range 1000 {
		if unlocked(w.state("writ.db.lock")) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Error("the daemon does not end")
}

// serve runs the daemon in the foreground and returns its address and a function
// that kills it as kill -9 would.
func (w *world) serve() (addr string, kill func()) {
	w.t.Helper()
	cmd := exec.Command(program, "serve")
	cmd.Env, cmd.Dir = w.env(), "/"
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill = func() { cmd.Process.Kill(); cmd.Wait() }
	w.t.Cleanup(kill)
	buf := make([]byte, 4096)
	n, err := io.ReadAtLeast(out, buf, 40)
	if err != nil {
		w.t.Fatalf("serve says nothing: %v", err)
	}
	_, rest, _ := strings.Cut(string(buf[:n]), "http://")
	addr, _, _ = strings.Cut(rest, "\n")
	go io.Copy(io.Discard, out)
	return addr, kill
}
