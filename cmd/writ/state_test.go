package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// An agent's shell, at the widest level there is, cannot read, write or reach
// writ's store, keys, configuration or sockets, nor approve anything.
func TestStateIsOutOfReach(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	w := newWorld(t, "level: elevated\nautonomy: full\noverrides: {requires_approval: [\"code:delete\"]}\n", "").init()
	w.call("delete_file", map[string]any{"path": "x"})
	id := w.pending()
	if o := w.shell("cat /etc/hostname && echo x > control && cat control"); o.code != 0 {
		t.Fatalf("the control does not run: %+v", o)
	}
	state, config := w.state(), filepath.Dir(w.config)
	before := fingerprint(t, state, config)
	attacks := map[string]string{
		"read the store":           "cat " + w.state("writ.db"),
		"read a key":               "cat " + w.state("keys/ledger.key"),
		"read the configuration":   "cat " + w.config,
		"read the witness":         "cat " + w.state("witness.jsonl"),
		"list the state":           "ls " + w.state("keys"),
		"through proc root":        "cat /proc/self/root" + w.config,
		"through the parent":       "cat /proc/$PPID/root" + w.config,
		"through the daemon":       "for p in /proc/[0-9]*; do cat $p/root" + w.config + " && exit 0; done; exit 1",
		"the daemon's descriptors": "for f in /proc/[0-9]*/fd/*; do case $(readlink $f) in *writ.db*) cat $f && exit 0;; esac; done; exit 1",
		"the daemon's environment": "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || { cat $p/environ && exit 0; }; done; exit 1",
		"write the configuration":  "echo x >> " + w.config,
		"replace it":               "cp /etc/hostname " + w.config,
		"remove it":                "rm -f " + w.config + " && test ! -e " + w.config + " && exit 1",
		"move the state away":      "mv " + state + " " + w.home + "/gone",
		"put a file beside it":     "touch " + config + "/other.yaml && test -e " + config + "/other.yaml && false",
		"change its mode":          "chmod 777 " + state + " && false",
		"link it into the work":    "ln " + w.config + " mine && cat mine",
		"symlink":                  "ln -sf " + w.config + " s; cat s",
		"connect to the socket":    fmt.Sprintf(`python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(%q)'`, w.state("writ.sock")),
		"signal the daemon":        "pkill -9 -f 'writ serve'; for p in /proc/[0-9]*; do kill -9 ${p#/proc/} 2>/dev/null && [ ${p#/proc/} != $$ ] && exit 0; done; exit 1",
		"approve":                  "echo '" + pass + "' | " + program + " --config " + w.config + " approval approve " + id + " --passphrase-stdin",
		"run the program":          "echo '" + pass + "' | " + program + " approval list",
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			o := w.shell(attack)
			if o.code == 0 {
				t.Errorf("it worked: %+v", o)
			}
			for _, secret := range []string{"workspaces:", "SQLite format", "signature"} {
				if strings.Contains(o.out, secret) {
					t.Errorf("it shows %q", secret)
				}
			}
		})
	}
	for _, p := range []string{w.config, w.state("writ.db"), state, config} {
		for _, tool := range []string{"read_file", "list_directory", "search_files", "stat"} {
			if o := w.call(tool, map[string]any{"path": p, "pattern": "a"}); o.code == 0 {
				t.Errorf("%s %s: %+v", tool, p, o)
			}
		}
	}
	if o := w.call("search_files", map[string]any{"path": w.home, "pattern": "workspaces:"}); strings.Contains(o.out, "writ.yaml") {
		t.Errorf("search walks into the configuration: %+v", o)
	}
	if after := fingerprint(t, state, config); after != before {
		t.Errorf("writ's files changed:\n%s\n%s", before, after)
	}
	if got := w.pending(); got != id {
		t.Errorf("the request is gone: %s", got)
	}
	w.verifies()
}

// fingerprint is names, modes and owners of everything below, without what the
// daemon itself changes.
func fingerprint(t testing.TB, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, d := range dirs {
		err := filepath.WalkDir(d, func(p string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil {
				if filepath.Base(filepath.Dir(p)) == "pool" { // spare ones, of any number
					return nil
				}
				fmt.Fprintln(&b, p, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// The agents' door: what it takes, and from whom (group J, what exists).
func TestHTTPDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	addr, _ := w.serve()
	send := func(method, path, body string, header map[string]string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+w.token)
		for k, v := range header {
			if k == "Host" {
				req.Host = v
			} else {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var v map[string]any
		json.NewDecoder(resp.Body).Decode(&v)
		return resp.StatusCode, v
	}
	good := `{"tool":"list_directory","args":{}}`
	tests := []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
	}{
		{"control", "POST", "/v1/calls", good, nil, 200},
		{"tools", "GET", "/v1/tools", "", nil, 200},
		{"no token", "POST", "/v1/calls", good, map[string]string{"Authorization": ""}, 401},
		{"wrong token", "POST", "/v1/calls", good, map[string]string{"Authorization": "Bearer writ_x"}, 401},
		{"another scheme", "POST", "/v1/calls", good, map[string]string{"Authorization": "Basic " + w.token}, 401},
		{"rebound name", "POST", "/v1/calls", good, map[string]string{"Host": "evil.example"}, 421},
		{"foreign origin", "POST", "/v1/calls", good, map[string]string{"Origin": "http://evil.example"}, 403},
		{"opaque origin", "POST", "/v1/calls", good, map[string]string{"Origin": "null"}, 403},
		{"a form", "POST", "/v1/calls", good, map[string]string{"Content-Type": "text/plain"}, 400},
		{"duplicate key", "POST", "/v1/calls", `{"tool":"stat","tool":"list_directory","args":{}}`, nil, 400},
		{"duplicate argument", "POST", "/v1/calls", `{"tool":"stat","args":{"path":"a","path":"/etc/passwd"}}`, nil, 400},
		{"folded key", "POST", "/v1/calls", `{"TOOL":"list_directory","args":{}}`, nil, 400},
		{"unknown key", "POST", "/v1/calls", `{"tool":"list_directory","args":{},"agent":"root"}`, nil, 400},
		{"agent in the arguments", "POST", "/v1/calls", `{"tool":"list_directory","args":{"agent":"root"}}`, nil, 400},
		{"bad UTF-8", "POST", "/v1/calls", "{\"tool\":\"stat\",\"args\":{\"path\":\"\xff\"}}", nil, 400},
		{"lone surrogate", "POST", "/v1/calls", `{"tool":"stat","args":{"path":"\ud800"}}`, nil, 400},
		{"NaN", "POST", "/v1/calls", `{"tool":"read_file","args":{"path":"a","start_line":NaN}}`, nil, 400},
		{"a number that changes", "POST", "/v1/calls", `{"tool":"read_file","args":{"path":"a","start_line":9007199254740993}}`, nil, 400},
		{"deep", "POST", "/v1/calls", `{"tool":"stat","args":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100) + "}", nil, 400},
		{"large", "POST", "/v1/calls", `{"tool":"stat","args":{"path":"` + strings.Repeat("a", 17<<20) + `"}}`, nil, 413},
		{"unknown tool", "POST", "/v1/calls", `{"tool":"read_fil","args":{}}`, nil, 404},
		{"a tool's name in another case", "POST", "/v1/calls", `{"tool":"Read_File","args":{"path":"a"}}`, nil, 404},
		{"not JSON", "POST", "/v1/calls", `hello`, nil, 400},
		{"NUL in a path", "POST", "/v1/calls", `{"tool":"stat","args":{"path":"a\u0000b"}}`, nil, 403},
		{"bad wait", "POST", "/v1/calls?wait=-1", good, nil, 400},
		{"calls by GET", "GET", "/v1/calls", "", nil, 405},
		{"its own approvals", "GET", "/v1/approvals", "", nil, 200},
		{"an approval that is not its own", "GET", "/v1/approvals/ap_x", "", nil, 404},
		{"deciding is not for agents", "POST", "/v1/approvals/x/decision", `{"approve":true}`, nil, 404},
		{"tokens are not for agents", "POST", "/v1/agents/coder/tokens", `{}`, nil, 404},
		{"people are not for agents", "POST", "/v1/people", `{}`, nil, 404},
		{"the ledger is not for agents", "GET", "/v1/ledger", "", nil, 404},
		{"ending the daemon is not for agents", "POST", "/v1/shutdown", `{}`, nil, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if status, v := send(tt.method, tt.path, tt.body, tt.header); status != tt.status {
				t.Errorf("got %d %v, want %d", status, v, tt.status)
			}
		})
	}
	if status, v := send("POST", "/v1/calls", `{"tool":"delete_file","args":{"path":"x"}}`, nil); status != 202 || v["approval"] == "" {
		t.Errorf("a call that asks: %d %v", status, v)
	}
	w.verifies()
}
