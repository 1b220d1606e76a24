package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// plain is an agent that asks for nothing but class write.
const plain = "level: standard\nautonomy: full\n"

// place writes a file beside the configuration, as the operator would.
func (w *world) place(name, text string) {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.config), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// decode runs a command with --json and reads what it prints.
func (w *world) decode(into any, stdin string, args ...string) {
	w.t.Helper()
	out := w.must(stdin, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		w.t.Fatalf("writ %v: %v\n%s", args, err, out)
	}
}

// as runs f with another token.
func (w *world) as(token string, f func()) {
	mine := w.token
	w.token = token
	defer func() { w.token = mine }()
	f()
}

func (w *world) denied(o outcome, text string) {
	w.t.Helper()
	if o.code != cli.ExitDenied || !strings.Contains(o.err, text) {
		w.t.Errorf("want denied with %q: %+v", text, o)
	}
}

func (w *world) ok(o outcome) outcome {
	w.t.Helper()
	if o.code != 0 {
		w.t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
	return o
}

// explains demands that explaining a call of the agent says something.
func (w *world) explains(text, tool string, args ...string) {
	w.t.Helper()
	if o := w.run("", append([]string{"explain", tool, "--agent", "coder"}, args...)...); !strings.Contains(o.out, text) {
		w.t.Errorf("explain %s does not say %q: %+v", tool, text, o)
	}
}

// Constraints hold through the daemon, over a restart, in the session and the task
// that a call names.
func TestConstraints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, `tools:
  stat: {max_invocations: 2/session}
  list_directory: {max_invocations: 1/task}
  write_file: {only_after: [read_file]}
  move_file: {forbidden: true}
  delete_file: {rate: 1/1h}
`).init()
	w.write(filepath.Join(w.ws, "a"), "a")
	var s struct{ ID string }
	w.decode(&s, "", "session", "start", "work")
	stat := func(flags ...string) outcome {
		return w.run("", append([]string{"call", "stat", "path=a"}, flags...)...)
	}
	w.ok(stat("--session", s.ID))
	w.must("", "serve", "--stop")
	w.daemonGone()
	w.ok(stat("--session", s.ID))
	w.denied(stat("--session", s.ID), "tool stat was used 2 times in this session, which is all it may be")
	w.ok(stat()) // the session of the day is another
	list := func(task string) outcome { return w.run("", "call", "list_directory", "--task", task) }
	w.ok(list("one"))
	w.denied(list("one"), "used once in this task")
	w.ok(list("two"))
	put := func(task string) outcome {
		return w.run("", "call", "write_file", "path=b", "content=x", "--task", task)
	}
	w.denied(put("one"), "tool write_file runs only after read_file has succeeded in this task")
	if _, err := os.Stat(filepath.Join(w.ws, "b")); err == nil {
		t.Error("it ran all the same")
	}
	w.ok(w.run("", "call", "read_file", "path=a", "--task", "one"))
	w.ok(put("one"))
	w.denied(put("two"), "only after read_file")
	w.denied(w.run("", "call", "move_file", "from=a", "to=c"), "for code alone")
	w.ok(w.run("", "call", "delete_file", "path=b"))
	w.denied(w.run("", "call", "delete_file", "path=a"), "used once within 1h, which is all it may be; again in ")
	w.explains("which is all it may be", "delete_file", "path=a")
	w.verifies()
}

func TestSessionAndTaskCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "").init()
	var s, day struct{ ID, Agent string }
	w.decode(&s, "", "session", "start")
	var task struct{ ID, Session, Name string }
	w.decode(&task, "", "task", "start", "fix tests", "--session", s.ID)
	if task.Session != s.ID || task.Name != "fix tests" {
		t.Errorf("%+v", task)
	}
	w.ok(w.run("", "call", "list_directory", "--session", s.ID, "--task", task.ID))
	if out := w.must("", "session", "list"); !strings.Contains(out, s.ID) || !strings.Contains(out, "open") {
		t.Errorf("%s", out)
	}
	if out := w.must("", "task", "list"); !strings.Contains(out, task.ID) {
		t.Errorf("%s", out)
	}
	w.must("", "task", "end", task.ID)
	if o := w.run("", "call", "list_directory", "--session", s.ID, "--task", task.ID); o.code != 1 || !strings.Contains(o.err, "there is no such open task") {
		t.Errorf("%+v", o)
	}
	w.must(pass+"\n", "task", "rate", task.ID, "9", "--passphrase-stdin")
	if o := w.run("wrong wrong\n", "task", "rate", task.ID, "0", "--passphrase-stdin"); o.code != 1 {
		t.Errorf("rated with a wrong passphrase: %+v", o)
	}
	if out := w.must("", "task", "list"); !strings.Contains(out, "9 by alice") {
		t.Errorf("%s", out)
	}
	for _, bad := range []string{"11", "-1", "good"} {
		if o := w.run("", "task", "rate", "--", task.ID, bad); o.code != cli.ExitUsage {
			t.Errorf("rating %s: %+v", bad, o)
		}
	}
	w.must("", "session", "end", s.ID)
	if o := w.run("", "call", "list_directory", "--session", s.ID); o.code != 1 || !strings.Contains(o.err, "there is no such open session") {
		t.Errorf("%+v", o)
	}
	// Another agent's token sees and ends nothing of it.
	w.decode(&day, "", "session", "start")
	token := w.token
	out := w.must(pass+"\n", "agent", "token", "coder", "--passphrase-stdin", "--json")
	var other struct{ Token string }
	if err := json.Unmarshal([]byte(out), &other); err != nil {
		t.Fatal(err)
	}
	w.as(other.Token, func() {
		if out := w.must("", "session", "list"); strings.Contains(out, day.ID) {
			t.Errorf("another token sees it: %s", out)
		}
		if o := w.run("", "session", "end", day.ID); o.code != 1 || !strings.Contains(o.err, "there is no open session") {
			t.Errorf("another token ends it: %+v", o)
		}
	})
	if token != w.token {
		t.Fatal("token")
	}
	w.verifies()
}

func TestBatchCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.write(filepath.Join(w.ws, "a"), "alpha")
	calls := `[{"tool":"read_file","args":{"path":"a"}},
	 {"tool":"write_file","args":{"path":"b","content":"beta"}},
	 {"tool":"read_file","args":{"path":"b"}},
	 {"tool":"read_file","args":{"path":"/etc/shadow"}},
	 {"tool":"delete_file","args":{"path":"a"}},
	 {"tool":"nonsense"},
	 {"tool":"read_file","args":{"path":"a"}}]`
	o := w.run(calls, "batch", "-", "--json")
	var got struct {
		Results []struct {
			Content string
			IsError bool `json:"is_error"`
			Error   *struct{ Kind, Approval string }
		}
	}
	if err := json.Unmarshal([]byte(o.out), &got); err != nil || len(got.Results) != 7 {
		t.Fatalf("%v %+v", err, o)
	}
	for i, want := range []string{"alpha", "created b", "beta", "denied", "approval_pending", "not_found", "alpha"} {
		r := got.Results[i]
		kind := ""
		if r.Error != nil {
			kind = r.Error.Kind
		}
		if !strings.Contains(r.Content, want) && kind != want || r.IsError != (r.Error != nil) {
			t.Errorf("%d: %+v, want %s", i, r, want)
		}
	}
	if o.code != cli.ExitDenied {
		t.Errorf("exit code %d", o.code)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "a")); err != nil {
		t.Error("a was deleted")
	}
	for args, text := range map[string]string{`[]`: "a batch has at least one call", `{}`: "is not a JSON array", `[{"tol":"x"}]`: "is not a JSON array"} {
		if o := w.run(args, "batch", "-"); o.code == 0 || !strings.Contains(o.err, text) {
			t.Errorf("%s: %+v", args, o)
		}
	}
	if o := w.run(`[{"tool":"stat","args":{"path":"a"}}]`, "batch", "-", "--order", "random"); o.code != 1 || !strings.Contains(o.err, "none of in_order, concurrent") {
		t.Errorf("%+v", o)
	}
	w.verifies()
}

// A child through the command line: it gets no more than its parent, follows when
// the configuration changes, and ends.
func TestDelegationCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "").init()
	w.write(filepath.Join(w.ws, "a"), "alpha")
	delegate := func(args ...string) (agent, token string) {
		t.Helper()
		var d struct{ Agent, Token string }
		w.decode(&d, "", append([]string{"agent", "delegate"}, args...)...)
		return d.Agent, d.Token
	}
	read := func() outcome { return w.call("read_file", map[string]any{"path": "a"}) }
	agent, child := delegate("reader", "--allowed", "fs_read,shell_command", "--level", "elevated", "--terminal", "none")
	w.as(child, func() {
		w.ok(read())
		w.denied(w.call("write_file", map[string]any{"path": "b", "content": "x"}), "does not include tool write_file")
		w.denied(w.shell("id"), "terminal: none")
		w.denied(w.call("read_file", map[string]any{"path": "/etc/passwd"}), "is outside file_system")
		out := w.must("", "tool", "list", "--mine")
		if strings.Contains(out, "write_file") || !strings.Contains(out, "read_file") {
			t.Errorf("it sees\n%s", out)
		}
		_, grand := delegate("greedy", "--allowed", "*", "--level", "elevated", "--file-system", "full")
		w.as(grand, func() {
			w.ok(read())
			w.denied(w.call("write_file", map[string]any{"path": "b", "content": "x"}), "by parent "+agent)
			w.denied(w.call("read_file", map[string]any{"path": "/etc/passwd"}), "outside file_system: project_directory")
		})
		// A child cannot name another agent: identity comes with the token.
		if o := w.call("read_file", map[string]any{"path": "a", "agent_id": "coder"}); o.code != 1 || !strings.Contains(o.err, "agent_id") {
			t.Errorf("%+v", o)
		}
	})
	if out := w.must("", "agent", "tree"); !strings.Contains(out, "\n    "+agent+" ") || !strings.Contains(out, "\n        "+agent+"/greedy-") {
		t.Errorf("tree:\n%s", out)
	}
	// Narrow the parent in mid-session.
	w.edit("workspace: main", "workspace: main\n    denied: [read_file]")
	w.must("", "config", "reload")
	w.as(child, func() { w.denied(read(), "by parent coder") })
	w.edit("    denied: [read_file]", "    denied: []")
	w.must("", "config", "reload")
	w.as(child, func() { w.ok(read()) })
	w.must("", "stop", "coder")
	w.as(child, func() { w.denied(read(), "agent coder is stopped") })
	w.must(pass+"\n", "stop", "coder", "--lift", "--passphrase-stdin")
	w.as(child, func() { w.ok(read()) })
	w.must("", "agent", "end", agent)
	w.as(child, func() {
		if o := read(); o.code != 1 || !strings.Contains(o.err, "unknown or revoked") {
			t.Errorf("an ended child calls: %+v", o)
		}
	})
	w.verifies()
}

const appendTool = `name: append_line
description: Appends a line to a file of the workspace.
category: file_system
action_type: code:write
egress_class: none
policy: {risk: low, filesystem: {read: ["/**"], write: ["/**"]}}
parameters:
  type: object
  required: [file, line]
  properties:
    file: {type: string, x-writ-path: write}
    line: {type: string, x-writ-text: true, maxLength: 1000}
runner: {process: {argv: [tee, -a, --, {arg: file}], stdin: {arg: line}}}
`

// A definition in a file: suspended, looked at, accepted, used; suspended again when
// it changes, and nothing of the change runs.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	need.Programs(t, "tee", "python3")
	w := newWorld(t, plain, "").init()
	w.ok(w.call("list_directory", map[string]any{})) // the daemon has read what there is
	w.place("tools/append_line.yaml", appendTool)
	w.place("tools/shout/TOOL.md", `---
name: shout
description: Says it louder.
category: file_system
action_type: code:read
permission_level: none
policy: {risk: low}
parameters: {type: object, required: [text], properties: {text: {type: string, x-writ-text: true}}}
runner: {script: {language: python, file: shout.py}}
---
## Capability Description
Upper case.
## Inputs
text
## Outputs
TEXT
## Failure Modes
- none
`)
	w.place("tools/shout/shout.py", "import json, sys\nprint(json.load(sys.stdin)['text'].upper())\n")
	use := func() outcome { return w.call("append_line", map[string]any{"file": "log", "line": "one\n"}) }
	if o := use(); o.code != 1 || !strings.Contains(o.err, "there is no tool") {
		t.Errorf("before it is read: %+v", o)
	}
	w.must("", "config", "reload")
	w.denied(use(), "tool append_line is new and suspended until a person accepts it: writ tool accept append_line")
	if out := w.must("", "tool", "list", "--mine"); strings.Contains(out, "append_line") {
		t.Errorf("an agent sees a suspended tool: %s", out)
	}
	if out := w.must("", "tool", "list"); !strings.Contains(out, "suspended") {
		t.Errorf("the operator does not see that it is: %s", out)
	}
	if out := w.must("", "tool", "diff", "append_line"); !strings.Contains(out, "nobody has accepted it") || !strings.Contains(out, `+ runner.spec.argv[0]: "tee"`) {
		t.Errorf("%s", out)
	}
	if o := w.run("wrong wrong\n", "tool", "accept", "append_line", "--passphrase-stdin"); o.code != 1 {
		t.Errorf("accepted with a wrong passphrase: %+v", o)
	}
	for _, name := range []string{"append_line", "shout"} {
		w.must(pass+"\n", "tool", "accept", name, "--passphrase-stdin")
	}
	w.ok(use())
	w.ok(use())
	if b, _ := os.ReadFile(filepath.Join(w.ws, "log")); string(b) != "one\none\n" {
		t.Errorf("it wrote %q", b)
	}
	if o := w.call("shout", map[string]any{"text": "hey"}); o.code != 0 || o.out != "HEY\n" {
		t.Errorf("%+v", o)
	}
	w.denied(w.call("append_line", map[string]any{"file": "/etc/x", "line": "x"}), "is outside file_system")
	w.denied(w.call("append_line", map[string]any{"file": ".git/config", "line": "x"}), "is protected")
	if o := w.call("append_line", map[string]any{"file": "log"}); o.code != 1 || !strings.Contains(o.err, "line") {
		t.Errorf("%+v", o)
	}
	// The script changes and nothing else: another tool.
	w.place("tools/shout/shout.py", "print(open('/etc/hostname').read())\n")
	w.must("", "serve", "--stop")
	w.daemonGone()
	w.denied(w.call("shout", map[string]any{"text": "hey"}), "tool shout changed and is suspended")
	if out := w.must("", "tool", "diff", "shout"); !strings.Contains(out, "changed since alice accepted it") || !strings.Contains(out, "/etc/hostname") {
		t.Errorf("%s", out)
	}
	w.ok(use()) // the other goes on
	// A file that does not hold stops a reload, and a start.
	w.place("tools/append_line.yaml", strings.Replace(appendTool, "category: file_system", "category: file_sistem", 1))
	if o := w.run("", "config", "reload"); o.code != 1 || !strings.Contains(o.err, "append_line.yaml:3: category") || !strings.Contains(o.err, "did you mean file_system?") {
		t.Errorf("%+v", o)
	}
	w.ok(use())
	w.must("", "serve", "--stop")
	w.daemonGone()
	if o := w.run("", "serve"); o.code != 1 || !strings.Contains(o.err, "append_line.yaml:3: category") {
		t.Errorf("%+v", o)
	}
	w.place("tools/append_line.yaml", appendTool)
	w.place("tools/READ_FILE.yaml", strings.Replace(appendTool, "name: append_line", "name: READ_FILE", 1))
	if o := w.run("", "serve"); o.code != 1 || !strings.Contains(o.err, "tool READ_FILE is defined twice (the other is read_file)") {
		t.Errorf("%+v", o)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(w.config), "tools/READ_FILE.yaml")); err != nil {
		t.Fatal(err)
	}
	w.verifies()
}

// A profile decides what its agent sees and uses.
func TestProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "profile: careful\n", "")
	w.place("profiles/careful.md", "---\nname: careful\nrole: developer\nallowedTools: [fs_*, '@github:search']\ndisallowedTools: [delete_file]\nmcpServers:\n  github: {command: gh-mcp}\n---\nBe careful.\n")
	w.init()
	w.write(filepath.Join(w.ws, "a"), "alpha")
	w.ok(w.call("read_file", map[string]any{"path": "a"}))
	w.denied(w.call("delete_file", map[string]any{"path": "a"}), `is denied to agent coder by "delete_file"`)
	w.denied(w.shell("id"), "does not include tool shell_command")
	w.explains("careful.md:5", "delete_file", "path=a")
	w.place("profiles/careful.md", "---\nrole: developr\n---\n")
	if o := w.run("", "config", "reload"); o.code != 1 || !strings.Contains(o.err, "developr") {
		t.Errorf("%+v", o)
	}
	w.ok(w.call("read_file", map[string]any{"path": "a"}))
}

// SIGHUP reloads; a file that does not hold changes nothing.
func TestHangup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain, "").init()
	cmd := exec.Command(program, "serve")
	cmd.Env, cmd.Dir = w.env(), "/"
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.home, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := io.ReadAtLeast(out, make([]byte, 4096), 40); err != nil { // it serves; no call starts another
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	w.ok(w.run("", "call", "list_directory"))
	w.edit("workspace: main", "workspace: main\n    denied: [list_directory]")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return w.run("", "call", "list_directory").code == cli.ExitDenied })
	w.edit("version: 1", "version: 7")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { b, _ := os.ReadFile(log.Name()); return strings.Contains(string(b), "version: must be 1") })
	w.denied(w.run("", "call", "list_directory"), "is denied to agent coder")
	w.edit("version: 7", "version: 1")
	kinds := strings.Join(w.ledgerKinds(), " ")
	if strings.Count(kinds, "config.reloaded") != 1 {
		t.Errorf("%s", kinds)
	}
}

// Background jobs: started, read, cancelled; gone with their task, their session, a
// stop and the daemon.
func TestJobs(t *testing.T) {
	need.Programs(t, "bash", "sleep")
	w := newWorld(t, "level: elevated\nautonomy: full\n", "").init()
	n := 0
	start := func(flags ...string) (job, marker string) {
		t.Helper()
		n++
		marker = fmt.Sprintf("writ-job-%d-%d", os.Getpid(), n)
		o := w.run("", append([]string{"call", "shell_command", "background:=true", "--json",
			fmt.Sprintf("command=echo begun; (setsid bash -c 'exec -a %s sleep 60' &); exec -a %s sleep 60", marker, marker)}, flags...)...)
		var r struct{ Metadata struct{ Job string } }
		if err := json.Unmarshal([]byte(o.out), &r); err != nil || r.Metadata.Job == "" {
			t.Fatalf("%v %+v", err, o)
		}
		waitFor(t, func() bool { return processExists(marker) })
		return r.Metadata.Job, marker
	}
	ask := func(do, job string, flags ...string) outcome {
		return w.run("", append([]string{"call", "shell_job", "do=" + do, "job=" + job}, flags...)...)
	}
	gone := func(what, marker string) {
		t.Helper()
		if processExists(marker) {
			t.Errorf("%s left a process of the job", what)
		}
	}
	job, marker := start()
	if o := w.ok(ask("check", job)); !strings.Contains(o.out, "running") {
		t.Errorf("%+v", o)
	}
	waitFor(t, func() bool { return strings.Contains(ask("output", job).out, "begun") })
	if o := w.run("", "call", "shell_job", "do=list"); !strings.Contains(o.out, job) {
		t.Errorf("%+v", o)
	}
	w.ok(ask("cancel", job))
	gone("cancel", marker)

	_, marker = start("--task", "build")
	var tasks []struct{ ID string }
	w.decode(&tasks, "", "task", "list")
	w.must("", "task", "end", tasks[0].ID)
	gone("the end of its task", marker)

	var s struct{ ID string }
	w.decode(&s, "", "session", "start")
	job, marker = start("--session", s.ID)
	if o := ask("check", job); o.code != 1 || !strings.Contains(o.err, "there is no job") {
		t.Errorf("another session sees it: %+v", o)
	}
	w.must("", "session", "end", s.ID)
	gone("the end of its session", marker)

	_, marker = start()
	w.must("", "stop", "coder")
	gone("a stop", marker)
	w.must(pass+"\n", "stop", "coder", "--lift", "--passphrase-stdin")

	w.must("", "serve", "--stop")
	w.daemonGone()
	_, kill := w.serve()
	job, marker = start()
	kill()
	waitFor(t, func() bool { return !processExists(marker) })
	if o := ask("check", job); o.code != 1 || !strings.Contains(o.err, "there is no job") {
		t.Errorf("after a crash: %+v", o)
	}
	for range 5 {
		start()
	}
	if o := w.run("", "call", "shell_command", "background:=true", "command=sleep 1"); o.code != 1 || !strings.Contains(o.err, "5 jobs of agent coder") {
		t.Errorf("a sixth: %+v", o)
	}
	if k := strings.Join(w.ledgerKinds(), " "); strings.Count(k, "job.ended") != 4 {
		t.Errorf("ends recorded: %d", strings.Count(k, "job.ended"))
	}
	w.verifies()
}
