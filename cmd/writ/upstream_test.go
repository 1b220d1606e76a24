package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withServer is a world with the test's MCP server behind the gateway. tools is what it
// offers: names, each with its annotations as JSON, or none.
func withServer(t *testing.T, more string, tools map[string]string) (*world, string) {
	t.Helper()
	w := newWorld(t, "level: elevated\nautonomy: full\nallowed: [\"@srv\"]", "")
	dir := filepath.Join(w.home, "server")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "server"), "./testdata/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := filepath.Join(dir, "tools.json")
	w.offer(list, tools)
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "upstreams:\n  srv:\n    command: [%q, %q]\n    read: [%q]\n%s", filepath.Join(dir, "server"), list, dir, more)
	return w.init(), list
}

// offer writes what the server has.
func (w *world) offer(list string, tools map[string]string) {
	w.t.Helper()
	var out []string
	for name, hints := range tools {
		extra := ""
		if hints != "" {
			extra = `,"annotations":` + hints
		}
		out = append(out, fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object","properties":{"path":{"type":"string","x-writ-text":true},"to":{"type":"string"}}}%s}`, name, name, extra))
	}
	if err := os.WriteFile(list, []byte("["+strings.Join(out, ",")+"]"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// takeUp has a person accept tools of the server, and let them count as reading nothing.
func (w *world) takeUp(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.eventually(n+" is offered", func() bool { return strings.Contains(w.must("", "tool", "list"), n+" ") })
		w.must(pass+"\n", "tool", "accept", n, "--passphrase-stdin")
		w.must(pass+"\n", "tool", "waive", n, "--class", "none", "--reason", "a test", "--passphrase-stdin")
	}
}

// TestUpstream: a server's tools are pinned and asked about, and the server itself
// reaches what its configuration says and nothing else.
func TestUpstream(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w, list := withServer(t, "    env: {GREETING: hi, SRV_API_KEY: k3y}\n", map[string]string{"peek": `{"readOnlyHint":true}`, "put": "", "dial": "", "environment": "", "poke": "", "look": `{"readOnlyHint":true}`, "wipe": `{"readOnlyHint":true,"destructiveHint":true}`})
	secret := filepath.Join(w.home, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is offered", func() bool { return strings.Contains(w.must("", "tool", "list"), "srv__peek") })
	p := w.speak("2025-11-25", `{}`, "--agent", "coder", "--wait", "1s")

	t.Run("nothing is callable before a person accepted it", func(t *testing.T) {
		if got := strings.Join(p.names(), " "); strings.Contains(got, "srv__") {
			t.Errorf("listed: %s", got)
		}
		if text, failed := p.call("srv__peek", `{"path":"`+secret+`"}`); !failed || !strings.Contains(text, "suspended") {
			t.Errorf("called: %q", text)
		}
	})
	t.Run("annotations propose a class, and never a lower one", func(t *testing.T) {
		got := w.must("", "tool", "list")
		for name, class := range map[string]string{"srv__look": "read_only", "srv__put": "write", "srv__wipe": "write,"} {
			for line := range strings.Lines(got) {
				if f := strings.Fields(line); f[0] == name && f[4] != class {
					t.Errorf("%s is %s, want %s", name, f[4], class)
				}
			}
		}
	})
	t.Run("an accepted tool of class write asks", func(t *testing.T) {
		w.must(pass+"\n", "tool", "accept", "srv__put", "--passphrase-stdin")
		if text, failed := p.call("srv__put", `{"path":"x"}`); !failed || !strings.Contains(text, "approval_pending") {
			t.Errorf("%q", text)
		}
	})
	w.takeUp("srv__peek", "srv__dial", "srv__environment", "srv__poke", "srv__look")
	t.Run("its box reaches what is configured", func(t *testing.T) {
		for what, c := range map[string]struct {
			tool, args, want string
			failed           bool
		}{
			"its own directory":   {"srv__peek", `{"path":"` + list + `"}`, "does peek", false},
			"another file":        {"srv__peek", `{"path":"` + secret + `"}`, "no such file", true},
			"writ's own":          {"srv__peek", `{"path":"` + w.config + `"}`, "is not for agents", true},
			"the network":         {"srv__dial", `{"to":"` + l.Addr().String() + `"}`, "error: ", true},
			"nothing of ours":     {"srv__environment", `{}`, "PATH=", false},
			"what it was given":   {"srv__environment", `{}`, "GREETING=hi", false},
			"and may be a secret": {"srv__environment", `{}`, "SRV_API_KEY=k3y", false},
			"a tool of its own":   {"srv__look", `{}`, "hello from look", false},
			"no tool of no name":  {"srv__nothing", `{}`, "there is no tool", true},
			"no tool of a server": {"other__look", `{}`, "there is no tool", true},
		} {
			text, failed := p.call(c.tool, c.args)
			if failed != c.failed || !strings.Contains(text, c.want) {
				t.Errorf("%s: %q, failed %v", what, text, failed)
			}
			if strings.Contains(text, "WRIT_TOKEN") || strings.Contains(text, "s3cret") {
				t.Errorf("%s: it got out: %q", what, text)
			}
		}
	})
	t.Run("a changed definition is suspended", func(t *testing.T) {
		w.offer(list, map[string]string{"peek": `{"readOnlyHint":true,"title":"now different"}`, "look": `{"readOnlyHint":true}`, "poke": ""})
		if text, failed := p.call("srv__poke", `{}`); failed {
			t.Fatal(text)
		}
		p.until("notifications/tools/list_changed")
		w.eventually("it is suspended", func() bool {
			text, failed := p.call("srv__peek", `{"path":"`+list+`"}`)
			return failed && strings.Contains(text, "suspended")
		})
		if text, failed := p.call("srv__look", `{}`); failed {
			t.Errorf("the control: %s", text)
		}
		if out := w.must("", "tool", "diff", "srv__peek"); !strings.Contains(out, "runner.spec.digest") {
			t.Errorf("the difference: %s", out)
		}
	})
	w.verifies()
}

// TestUpstreamFails: a server that dies or says nothing harms nobody else, and comes
// back; nothing of it is left when the daemon is killed.
func TestUpstreamFails(t *testing.T) {
	t.Parallel()
	w, _ := withServer(t, "    call_timeout: 2s\n", map[string]string{"die": "", "hang": "", "look": ""})
	w.takeUp("srv__die", "srv__hang", "srv__look")
	p := w.speak("2025-11-25", `{}`, "--agent", "coder")
	if text, failed := p.call("srv__look", `{}`); failed {
		t.Fatal(text)
	}
	if text, failed := p.call("srv__hang", `{}`); !failed || !strings.Contains(text, "did not answer within 2s (call_timeout)") {
		t.Errorf("hang: %q", text)
	}
	if text, failed := p.call("srv__die", `{}`); !failed || !strings.Contains(text, "whether it did anything is not known") {
		t.Errorf("die: %q", text)
	}
	if text, failed := p.call("stat", `{"path":"."}`); failed {
		t.Errorf("another tool: %s", text)
	}
	w.eventually("it comes back", func() bool { _, failed := p.call("srv__look", `{}`); return !failed })
	if !strings.Contains(w.must("", "invocation", "list", "--state", "unknown"), "srv__die") {
		t.Error("a call that may have run is not unknown")
	}
}

// A variable that would have a program run other code is not passed over in silence.
func TestUpstreamVariables(t *testing.T) {
	t.Parallel()
	w, _ := withServer(t, "    env: {NODE_OPTIONS: --require=/x}\n", map[string]string{"peek": ""})
	o := w.run("", "upstream", "test", "srv")
	if o.code != 1 || !strings.Contains(o.out, `env "NODE_OPTIONS" does not reach a program in a box: such names carry code that some program would run; remove it`) {
		t.Errorf("%+v", o)
	}
}

// A request whose tool has changed meanwhile, or whose server is gone, cannot be approved:
// the answer would be used up by a call that fails. It waits, and says what for.
func TestUpstreamBlocked(t *testing.T) {
	t.Parallel()
	w, list := withServer(t, "", map[string]string{"put": ""})
	bin := filepath.Join(filepath.Dir(list), "server")
	w.eventually("it is offered", func() bool { return strings.Contains(w.must("", "tool", "list"), "srv__put ") })
	w.must(pass+"\n", "tool", "accept", "srv__put", "--passphrase-stdin")
	if o := w.call("srv__put", map[string]any{"path": "x"}); o.code != 4 {
		t.Fatalf("%+v", o)
	}
	id := w.pending()
	blocked := func(why string) {
		t.Helper()
		w.eventually("it is blocked", func() bool {
			return strings.Contains(w.must("", "approval", "show", id), "blocked   it would not run now, so it cannot be approved yet: "+why)
		})
		w.fails(1, id+" would not run now, and still waits: "+why, pass+"\n", "approval", "approve", id, "--passphrase-stdin")
		if got := w.pending(); got != id {
			t.Fatalf("%q waits", got)
		}
	}
	w.offer(list, map[string]string{"put": `{"destructiveHint":true}`})
	w.must("", "upstream", "restart", "srv")
	blocked("tool srv__put changed and is suspended until a person accepts it: writ upstream accept srv")
	unblocked := func() {
		t.Helper()
		w.must("", "upstream", "restart", "srv")
		w.eventually("it is there again", func() bool { return !strings.Contains(w.must("", "approval", "show", id), "blocked ") })
	}
	w.offer(list, map[string]string{"put": ""})
	unblocked()
	if err := os.Rename(bin, bin+".gone"); err != nil {
		t.Fatal(err)
	}
	w.run("", "upstream", "restart", "srv")
	blocked("the server srv is not connected; see why: writ upstream show srv")
	if err := os.Rename(bin+".gone", bin); err != nil {
		t.Fatal(err)
	}
	unblocked()
	contains(t, w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin"), "it runs now, once")
}

// What an operator says of a server's tools that only read holds for one that a person lets
// count as such, too; and is what is shown of them.
func TestUpstreamWaived(t *testing.T) {
	t.Parallel()
	w, _ := withServer(t, "    read_action: code:read\n", map[string]string{"look": `{"readOnlyHint":true}`, "put": ""})
	w.eventually("it is offered", func() bool { return strings.Contains(w.must("", "tool", "list"), "srv__put ") })
	shows := func(tool string, what ...string) {
		t.Helper()
		contains(t, w.must("", "tool", "show", tool), what...)
	}
	shows("srv__look", "  action    code:read\n", "risk      unknown, which counts as high\n", "  state     suspended\n", "is new and suspended until a person accepts it")
	w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	shows("srv__put", "  action    comms:external\n", "  state     accepted\n")
	w.must(pass+"\n", "tool", "waive", "srv__put", "--class", "read_only", "--reason", "a test", "--passphrase-stdin")
	shows("srv__put", "  action    code:read\n", "  class     read_only (waived)\n")
	contains(t, w.must("", "explain", "srv__put", "--agent", "coder", "--args", "{}"), "code:read")
	w.must(pass+"\n", "tool", "waive", "srv__put", "--end", "--passphrase-stdin")
	shows("srv__put", "  action    comms:external\n")
}
