package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-run/writ/sandbox/rig"
)

// contained is a world whose commands run in containers. sandboxing is YAML beside the
// driver, more is YAML at top level.
func contained(t *testing.T, sandboxing, more string) *world {
	t.Helper()
	w, _ := docked(t, ", mount_mode: rw", sandboxing)
	w.edit("sandboxing: ", more+"sandboxing: ")
	return w
}

// reply is a call's, as 'writ call --json' prints it.
type reply struct {
	CallID   string `json:"call_id"`
	Content  string
	Metadata struct {
		Driver      string
		Met, Limit  string
		Code        int     `json:"exit_code"`
		ContainerID *string `json:"container_id"`
		SidecarID   *string `json:"sidecar_id"`
		SidecarLogs *[]any  `json:"sidecar_logs"`
		AgentID     *string `json:"agent_id"`
		Millis      *int64  `json:"execution_time_ms"`
	}
}

func (w *world) reply(args ...string) reply {
	w.t.Helper()
	var r reply
	out := w.run("", append([]string{"call", "--json", "shell_command"}, args...)...).out
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Metadata.Driver == "" {
		w.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// logged are the records of container runs in the daemon's log, by call.
func (w *world) logged() map[string]map[string]string {
	w.t.Helper()
	text, err := os.ReadFile(w.state("daemon.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]map[string]string{}
	pair := regexp.MustCompile(`([a-z_.]+)=("(?:[^"\\]|\\.)*"|\S*)`)
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `msg="container run"`) {
			continue
		}
		attrs := map[string]string{}
		for _, m := range pair.FindAllStringSubmatch(line, -1) {
			v, err := strconv.Unquote(m[2])
			if err != nil {
				v = m[2]
			}
			attrs[m[1]] = v
		}
		all[attrs["writ.request.id"]] = attrs
	}
	return all
}

// Each command that ran in a container is one record of the log and says so in its result
// and in the ledger; of what it wrote the log has the sizes alone.
func TestContainerLogs(t *testing.T) {
	w := contained(t, "", "")
	r := w.reply("command=printf 'a word'; printf 'another' >&2; exit 3")
	m := r.Metadata
	if m.Driver != "docker" || m.ContainerID == nil || len(*m.ContainerID) != 64 || m.SidecarID == nil || m.SidecarLogs == nil || m.AgentID == nil || *m.AgentID != "coder" || m.Millis == nil {
		t.Fatalf("the result says %+v", r)
	}
	var got map[string]string
	waitFor(t, func() bool { got = w.logged()[r.CallID]; return got != nil })
	e := rig.Start(t)
	for key, want := range map[string]string{
		"container.id": *m.ContainerID, "container.image.name": e.Image, "writ.sidecar.id": "", "writ.agent.id": "coder", "writ.tool.name": "shell_command",
		"process.exit.code": "3", "writ.run.limit": "", "writ.run.stdout_bytes": "6", "writ.run.stderr_bytes": "7", "writ.sidecar.lines": "0", "writ.sidecar.lines_malformed": "0",
		"writ.run.execution_time_ms": fmt.Sprint(*m.Millis),
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for _, key := range []string{"container.image.id", "writ.box.id", "writ.session.id", "writ.task.id"} {
		if got[key] == "" {
			t.Errorf("there is no %s", key)
		}
	}
	if _, raw := got["writ.run.output"]; raw {
		t.Error("what it wrote is in the log")
	}
	if out := w.must("", "ledger", "show", r.CallID); !strings.Contains(out, *m.ContainerID) {
		t.Errorf("the ledger does not say where it ran:\n%s", out)
	}
	slow := w.reply("command=sleep 60", "timeout_seconds:=1")
	waitFor(t, func() bool { return w.logged()[slow.CallID]["writ.run.limit"] == "timeout" })
}

// Raw output is logged where the operator says so: its end, without what looks like a
// credential.
func TestContainerLogsRaw(t *testing.T) {
	w := contained(t, "", "container_log_shipping: {ship_raw_logs: true, max_log_bytes: 1k}\n")
	r := w.reply("command=seq 2000; echo password=hunter2; sleep 0.3; echo last >&2; sleep 0.1")
	var got map[string]string
	waitFor(t, func() bool { got = w.logged()[r.CallID]; return got != nil })
	out := got["writ.run.output"]
	if len(out) > 1<<10 || len(out) < 900 || !strings.Contains(out, "1999\n2000\n") || !strings.Contains(out, "last") || strings.Contains(out, "hunter2") {
		t.Errorf("%d bytes: %q", len(out), out)
	}
	if !strings.Contains(r.Content, "hunter2") {
		t.Errorf("the result has no such word, so the log shows nothing: %s", r.Content)
	}
}

// Nothing is logged where the operator says so, and nothing of other drivers, whose results
// have the same keys, empty.
func TestContainerLogsOff(t *testing.T) {
	w := contained(t, ", overrides: {code_execution: native}", "")
	var native reply
	w.decode(&native, "", "call", "--json", "code_runner", "language=bash", "code=true")
	if m := native.Metadata; m.Driver != "native" || m.ContainerID == nil || *m.ContainerID != "" || m.SidecarID == nil || *m.SidecarID != "" || m.SidecarLogs == nil || len(*m.SidecarLogs) > 0 || m.AgentID == nil || *m.AgentID != "" || m.Millis == nil || *m.Millis != 0 {
		t.Errorf("%+v", native)
	}
	if out := w.must("", "ledger", "show", native.CallID); strings.Contains(out, "container_id") {
		t.Errorf("the ledger speaks of a container:\n%s", out)
	}
	on := w.reply("command=true")
	waitFor(t, func() bool { return w.logged()[on.CallID] != nil })
	w.edit("sandboxing: ", "container_log_shipping: {enabled: false}\nsandboxing: ")
	w.must("", "config", "reload")
	off := w.reply("command=true")
	w.must("", "serve", "--stop")
	w.daemonGone()
	if all := w.logged(); len(all) != 1 || all[off.CallID] != nil || off.Metadata.ContainerID == nil {
		t.Errorf("%v", all)
	}
}

// A command finds in its environment whose it is, also in a box that is kept: the ids are
// those of each call, and its box is not another for them.
func TestIDsInBoxes(t *testing.T) {
	for driver, make := range map[string]func(sandboxing string) *world{
		"docker": func(s string) *world { return contained(t, s, "") },
		"native": func(s string) *world {
			return newWorld(t, standard, "sandboxing: {default_backend: native"+s+"}\n").init()
		},
	} {
		t.Run(driver, func(t *testing.T) {
			w := make("")
			const show = `command=env | grep _ID= | sort`
			for range 2 {
				r := w.reply(show)
				got := regexp.MustCompile(`^WRIT_AGENT_ID=coder\nWRIT_REQUEST_ID=(\S+)\nWRIT_SESSION_ID=\S+\nWRIT_TASK_ID=\S+\n$`).FindStringSubmatch(r.Content)
				if r.Metadata.Driver != driver || got == nil || got[1] != r.CallID {
					t.Fatalf("the environment of %s on %s:\n%s", r.CallID, r.Metadata.Driver, r.Content)
				}
				w.settled(1)
			}
			if b := w.sandboxes()[0]; b.Calls != 2 {
				t.Errorf("the box was not kept: %+v", b)
			}
			w.edit("sandboxing: {", "sandboxing: {compat_env: synthorg, ")
			w.must("", "config", "reload")
			r := w.reply(show)
			if strings.Count(r.Content, r.CallID) != 2 || !strings.Contains(r.Content, "SYNTHORG_REQUEST_ID="+r.CallID+"\n") || !strings.Contains(r.Content, "SYNTHORG_AGENT_ID=coder\n") {
				t.Errorf("the environment: %s", r.Content)
			}
		})
	}
}
