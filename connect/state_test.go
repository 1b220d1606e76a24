package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A state that is elsewhere is in the entry's environment, is changed where nothing of
// somebody else's is lost by it, and goes with the entry.
func TestState(t *testing.T) {
	away := coder
	away.State = "/srv/my state"
	const line = "env = { XDG_STATE_HOME = \"/srv/my state\" }\n"
	full := strings.Replace(flat, `"env":{}`, `"env":{"XDG_STATE_HOME":"/srv/my state"}`, 1)
	file := func(entry string) string { return `{"mcpServers":{"writ":` + entry + `}}` }
	const keyed = `,"timeout":5}`
	refusal := func(does string) string {
		return "line 1 has an entry with keys that you added (timeout), and its state is elsewhere; " + does + ", then run this again, or write it anew without them: --replace"
	}
	for _, c := range []struct {
		name, before string
		s            Server
		replace      bool
		action, want string
	}{
		{"added", `{"mcpServers":{}}`, away, false, Added, file(full)},
		{"there", file(full), away, false, Unchanged, file(full)},
		{"comes", file(flat), away, false, Replaced, file(full)},
		{"goes", file(full), coder, false, Replaced, file(flat)},
		{"moves", file(strings.Replace(full, "my ", "", 1)), away, false, Replaced, file(full)},
		{"other values change in place", file(strings.Replace(full, "coder", "x", 1)), away, false, Replaced, file(full)},
		{"comes, beside other keys", file(strings.TrimSuffix(flat, "}") + keyed), away, false, "", refusal(`give its env XDG_STATE_HOME = "/srv/my state"`)},
		{"goes, beside other keys", file(strings.TrimSuffix(full, "}") + keyed), coder, false, "", refusal("take XDG_STATE_HOME out of its env")},
		{"comes, replacing", file(strings.TrimSuffix(flat, "}") + keyed), away, true, Replaced, file(full)},
		{"beside other keys", file(strings.TrimSuffix(full, "}") + keyed), away, false, Unchanged, file(strings.TrimSuffix(full, "}") + keyed)},
		{"to http", file(full), remote, false, Replaced, file(claude.entry(remote))},
	} {
		is(t, "json "+c.name, claude, c.before, c.s, c.replace, c.action, c.want)
	}
	is(t, "toml added", TOML{}, "", away, false, Added, table+line)
	is(t, "toml there", TOML{}, table+line, away, false, Unchanged, table+line)
	is(t, "toml comes", TOML{}, table, away, false, Replaced, table+line)
	is(t, "toml goes", TOML{}, table+line, coder, false, Replaced, table)
	for _, form := range []string{"[mcp_servers.writ.env]\nXDG_STATE_HOME = '/srv/my state'\n", "env.XDG_STATE_HOME = \"/srv/my state\"\n"} {
		is(t, form, TOML{}, table+form, away, false, Unchanged, table+form)
	}
	is(t, "toml beside others", TOML{}, table+"[mcp_servers.writ.env]\nA = 'b'\n", away, false, "",
		`line 1 has an entry with keys that you added (env), and its state is elsewhere; give its env XDG_STATE_HOME = "/srv/my state", then run this again, or write it anew without them: --replace`)
	for _, l := range []Language{claude, TOML{}} {
		made, err := Connect(l, nil, away, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Disconnect(l, made.After, nil, false); err != nil || got.After != nil {
			t.Errorf("%T removed: %v %q", l, err, got.After)
		}
	}
	for _, s := range []Server{{URL: "http://127.0.0.1:7323/mcp", State: "/x"}, {Command: "/writ", State: "/${X}"}} {
		if _, err := Connect(claude, nil, s, false); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

func is(t *testing.T, name string, l Language, before string, s Server, replace bool, action, want string) {
	t.Helper()
	got, err := Connect(l, []byte(before), s, replace)
	if said := fmt.Sprint(err); err != nil && said != want || err == nil && string(got.After) != want || got.Action != action {
		t.Errorf("%s: %s %v\n%s\nwant %s\n%s", name, got.Action, err, got.After, action, want)
	}
}

func TestStateIsPrinted(t *testing.T) {
	away := coder
	away.State = "/srv/state"
	for _, c := range Clients {
		if !c.Printed() {
			continue
		}
		want := `"XDG_STATE_HOME": "/srv/state"`
		if c.Name == "goose" {
			want = "    envs:\n      XDG_STATE_HOME: \"/srv/state\"\n"
		}
		if got := c.Stdio(away); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s", c.Name, got)
		}
		if got := c.Stdio(coder); strings.Contains(got, "env") {
			t.Errorf("%s, where HOME leads there:\n%s", c.Name, got)
		}
	}
}

// Only an empty directory that connect can have made goes with its file.
func TestTidy(t *testing.T) {
	for name, c := range map[string]struct {
		own  bool
		mode os.FileMode
		left string
		gone bool
	}{
		"made":                 {true, 0o700, "", true},
		"not empty":            {true, 0o700, "history", false},
		"somebody's":           {true, 0o755, "", false},
		"not the client's own": {false, 0o700, "", false},
	} {
		dir := filepath.Join(t.TempDir(), "dir")
		if err := os.Mkdir(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		if c.left != "" {
			write(t, filepath.Join(dir, c.left), "", 0o600)
		}
		err := Target{File: filepath.Join(dir, "config.toml"), Own: c.own}.Tidy()
		if err != nil || exists(dir) == c.gone {
			t.Errorf("%s: there %v, %v", name, exists(dir), err)
		}
	}
}
