package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// elsewhere is a world whose configuration and state are not where HOME alone leads.
func elsewhere(t *testing.T) (w *world, xdg []string) {
	w = connectWorld(t)
	conf, state := filepath.Join(w.home, "my conf"), filepath.Join(w.home, "my state")
	if err := os.Mkdir(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Dir(w.config), filepath.Join(conf, "writ")); err != nil {
		t.Fatal(err)
	}
	xdg = append(w.env(), "XDG_CONFIG_HOME="+conf, "XDG_STATE_HOME="+state)
	t.Cleanup(func() {
		runIn(t, xdg, "", program, "serve", "--stop")
		w.eventually("the daemon ends", func() bool { return unlocked(filepath.Join(state, "writ/writ.db.lock")) })
	})
	return w, xdg
}

// runIn runs a command in an environment, and gives what it prints.
func runIn(t *testing.T, env []string, stdin string, argv ...string) string {
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	if t.Context().Err() != nil { // when the test is over
		cmd = exec.Command(argv[0], argv[1:]...)
	}
	cmd.Env, cmd.Dir, cmd.Stdin = env, "/", strings.NewReader(stdin)
	out, _ := cmd.CombinedOutput() // what it printed tells
	return string(out)
}

// entryOf is the command of a client's entry, and the environment it adds.
func entryOf(t *testing.T, home, client string) (argv, env []string) {
	t.Helper()
	var entry struct {
		Command string
		Args    []string
		Env     map[string]string
	}
	if client == "codex" {
		text, err := os.ReadFile(filepath.Join(home, ".codex/config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		json.Unmarshal(regexp.MustCompile(`(?m)^command = (.*)$`).FindSubmatch(text)[1], &entry.Command)
		json.Unmarshal(regexp.MustCompile(`(?m)^args = (.*)$`).FindSubmatch(text)[1], &entry.Args)
		if m := regexp.MustCompile(`(?m)^env = \{ (\w+) = "(.*)" \}$`).FindSubmatch(text); m != nil {
			entry.Env = map[string]string{string(m[1]): string(m[2])}
		}
	} else {
		var file struct{ McpServers map[string]json.RawMessage }
		text, err := os.ReadFile(filepath.Join(home, ".claude.json"))
		if err == nil {
			err = json.Unmarshal(text, &file)
		}
		if err == nil {
			err = json.Unmarshal(file.McpServers["writ"], &entry)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range entry.Env {
		env = append(env, k+"="+v)
	}
	return append([]string{entry.Command}, entry.Args...), env
}

// TestConnectElsewhere starts what clients are told to start, with HOME and PATH alone.
func TestConnectElsewhere(t *testing.T) {
	t.Parallel()
	w, xdg := elsewhere(t)
	for _, client := range []string{"codex", "claude-code"} {
		runIn(t, xdg, "", filepath.Join(w.home, "bin/writ"), "connect", client, "--yes")
		argv, env := entryOf(t, w.home, client)
		got := runIn(t, append([]string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}, env...), begun, argv...)
		if !strings.Contains(got, `"protocolVersion":"2025-06-18"`) {
			t.Errorf("%s: %q with %q: %s", client, argv, env, got)
		}
	}
	if _, err := os.Stat(filepath.Join(w.home, "my state/writ/writ.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.state()); !os.IsNotExist(err) {
		t.Errorf("there is a second state: %v", err)
	}
}

// What HOME alone leads to is not named.
func TestConnectAtHome(t *testing.T) {
	t.Parallel()
	w := connectWorld(t)
	env := append(w.env(), "XDG_CONFIG_HOME="+filepath.Join(w.home, ".config"), "XDG_STATE_HOME="+filepath.Join(w.home, ".local/state")+"/")
	runIn(t, env, "", filepath.Join(w.home, "bin/writ"), "connect", "codex", "--yes")
	if argv, env := entryOf(t, w.home, "codex"); strings.Join(argv[1:], " ") != "mcp --agent coder" || len(env) > 0 {
		t.Errorf("%q %q", argv, env)
	}
	w.edit("version: 1", "version: 1\nstore: {path: "+filepath.Join(w.home, "kept")+"}")
	runIn(t, append(w.env(), "XDG_STATE_HOME=/elsewhere"), "", filepath.Join(w.home, "bin/writ"), "connect", "codex", "--yes")
	if _, env := entryOf(t, w.home, "codex"); len(env) > 0 {
		t.Errorf("the configuration says where the state is: %q", env)
	}
}

func TestConnectElsewhereRealCodex(t *testing.T) {
	t.Parallel()
	need.Programs(t, "codex")
	w, xdg := elsewhere(t)
	runIn(t, xdg, "", filepath.Join(w.home, "bin/writ"), "connect", "codex", "--yes")
	var all []struct {
		Transport struct {
			Args []string
			Env  map[string]string
		}
	}
	out := w.clientSays(w.home, "codex", "mcp", "list", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	config, state := filepath.Join(w.home, "my conf/writ/writ.yaml"), filepath.Join(w.home, "my state")
	if got := all[0].Transport; strings.Join(got.Args, " ") != "mcp --agent coder --config "+config || got.Env["XDG_STATE_HOME"] != state {
		t.Errorf("%+v", got)
	}
}

// TestPortHeld starts a daemon on the port of another, which has another state.
func TestPortHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	w.edit("127.0.0.1:0", at)
	env := append(w.env(), "XDG_STATE_HOME="+filepath.Join(w.home, "second"))
	got := runIn(t, env, begun, program, "mcp", "--agent", "coder")
	if !strings.Contains(got, "address already in use; set 'listen' in the configuration to a free port") {
		t.Errorf("something else has it: %s", got)
	}
	l.Close()
	w.serve()
	got = runIn(t, env, begun, program, "mcp", "--agent", "coder")
	want := regexp.MustCompile(`^writ: the daemon did not start: another daemon answers on ` + at + ` \(process \d+, with its state in ` + w.state() + `\), and this one would have its state in ` + w.home +
		`/second/writ; to use that one, say XDG_STATE_HOME=` + filepath.Dir(w.state()) + `, or store\.path: ` + w.state() + `, as it was told; to have two, give one of them another port with 'listen' in ` + w.config + "\n$")
	if !want.MatchString(got) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
