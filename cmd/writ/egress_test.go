package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
)

// leaves puts rows into the log while no daemon runs.
func (w *world) leaves(rows ...store.Egress) {
	w.t.Helper()
	w.run("", "serve", "--stop")
	w.daemonGone()
	db, err := sqlite.Open(w.t.Context(), w.state())
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := tx.AddEgress(rows); err != nil {
		w.t.Fatal(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

var someEgress = []store.Egress{
	{At: "2026-01-02T03:04:05.000000006Z", Call: "call_aaaaaaaaaaaaaaaaaa", Agent: "coder", Kind: "dns", Host: "ok.example", Verdict: "allowed", Class: "public", Rule: "egress[0]"},
	{At: "2026-01-02T03:04:06Z", Call: "call_aaaaaaaaaaaaaaaaaa", Agent: "coder", Kind: "connect", Host: "ok.example:443", Address: "192.0.2.1:443", Verdict: "allowed", Rule: "egress[0]", Sent: 512, Received: 1234567, Micros: 9},
	{At: "2026-01-02T03:04:07Z", Call: "call_aaaaaaaaaaaaaaaaaa", Agent: "coder", Kind: "dns", Host: "bad.example", Verdict: "host_not_allowed", Rule: "bad.example:443"},
	{At: "2026-01-02T03:04:08Z", Call: "call_bbbbbbbbbbbbbbbbbb", Agent: "other", Kind: "connect", Host: "in.example:443", Verdict: "address_not_open", Class: "private", Rule: `egress.hosts."in.example:443".ranges: [10.0.0.1/32]`, Detail: "10.0.0.1"},
	{At: "2026-01-02T03:04:09Z", Agent: "other", Kind: "connect", Address: "203.0.113.9:80", Verdict: "nobodys_address", Rule: "203.0.113.9:80"},
	{At: "2026-01-02T03:04:10Z", Call: "call_bbbbbbbbbbbbbbbbbb", Agent: "other", Kind: "http", Host: "x\x1b[2J\n\u202e:80", Verdict: "method_refused", Rule: "egress[2]", Detail: "PO\rST"},
}

const egressTable = `TIME                 CALL OR AGENT            KIND     HOST                      ADDRESS              VERDICT              SENT  RECEIVED  RULE
2026-01-02T03:04:05  call_aaaaaaaaaaaaaaaaaa  dns      ok.example                -                    allowed                 0         0  egress[0]
2026-01-02T03:04:06  call_aaaaaaaaaaaaaaaaaa  connect  ok.example:443            192.0.2.1:443        allowed               512   1234567  egress[0]
2026-01-02T03:04:07  call_aaaaaaaaaaaaaaaaaa  dns      bad.example               -                    host_not_allowed        0         0  needs bad.example:443
2026-01-02T03:04:08  call_bbbbbbbbbbbbbbbbbb  connect  in.example:443            -                    address_not_open        0         0  needs egress.hosts."in.example:443".ranges: [10.0.0.1/32] (private: 10.0.0.1)
2026-01-02T03:04:09  other                    connect  -                         203.0.113.9:80       nobodys_address         0         0  needs 203.0.113.9:80
2026-01-02T03:04:10  call_bbbbbbbbbbbbbbbbbb  http     x<U+001B>[2J<U+000A><U+202E>:80  -                    method_refused          0         0  egress[2] (PO<U+000D>ST)
`

// tableOf is the table with only some of its rows.
func tableOf(rows ...int) string {
	lines := strings.SplitAfter(egressTable, "\n")
	out := lines[0]
	for _, n := range rows {
		out += lines[n]
	}
	return out
}

// The log shows what left boxes, by every filter, with nothing in it that a terminal
// obeys; --json has all of it.
func TestEgressLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	if out := w.must("", "egress", "log"); out != "none\n" {
		t.Errorf("of nothing: %q", out)
	}
	w.leaves(someEgress...)
	const older = "older ones are left out; --limit shows up to 1000\n"
	noCall := fmt.Sprintf("writ: there is no call \"call_aaaaaaaaaaaaaaaaaa\"; '%s invocation list' shows them\n", program)
	const noAgent = "writ: there is no agent \"%s\"%s\n"
	for _, row := range []struct{ line, out, err string }{
		{"", egressTable, ""},
		{"--refused", tableOf(3, 4, 5, 6), ""},
		{"--agent coder", tableOf(1, 2, 3), ""},
		{"--call call_bbbbbbbbbbbbbbbbbb", tableOf(4, 6), ""},
		{"--call call_aaaaaaaaaaaaaaaaaa --agent coder --refused", tableOf(3), ""},
		{"--call call_aaaaaaaaaaaaaaaaaa --agent other", "", fmt.Sprintf(noAgent, "other", "")},
		{"--call call_aaaaaaaaaaaaaaaaab", "", strings.Replace(noCall, "aa\"", "ab\"", 1)},
		{"--agent codr", "", fmt.Sprintf(noAgent, "codr", "; did you mean coder?")},
		{"--agent coder --call call_bbbbbbbbbbbbbbbbbb", "", strings.ReplaceAll(noCall, "aaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbb")},
		{"--agent listen.oauth", "none\n", ""},
		{"--limit 2", tableOf(5, 6), older},
		{"--limit 6", egressTable, ""},
	} {
		code := 0
		if row.out == "" {
			code = 1
		}
		if o := w.run("", append([]string{"egress", "log"}, strings.Fields(row.line)...)...); o != (outcome{code, row.out, row.err}) {
			t.Errorf("egress log %s: exit %d\n%s%s\nwant\n%s%s", row.line, o.code, o.out, o.err, row.out, row.err)
		}
	}
	if got := w.must("", "egress", "log", "--agent", "webhook cloud"); got != "none\n" {
		t.Errorf("of a webhook that nothing is logged of: %s", got)
	}
	out := w.must("", "egress", "log", "--json", "--limit", "1")
	const want = `{"n":6,"at":"2026-01-02T03:04:10Z","call":"call_bbbbbbbbbbbbbbbbbb","agent":"other","kind":"http","host":"x\u001b[2J\n\u202e:80",` +
		`"verdict":"method_refused","rule":"egress[2]","detail":"PO\rST","sent":0,"received":0,"took_micros":0}` + "\n"
	if out != want {
		t.Errorf("as JSON:\n%s\nwant\n%s", out, want)
	}
	if lines := strings.Count(w.must("", "egress", "log", "--json"), "\n"); lines != len(someEgress) {
		t.Errorf("%d lines of JSON", lines)
	}
}

// A program that asks for a name asks twice, for addresses of both kinds: one line says it.
func TestEgressLogSaysANameOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	other := someEgress[2]
	other.Host, other.Rule = "worse.example", "worse.example"
	w.leaves(someEgress[2], someEgress[2], other, someEgress[2], someEgress[1], someEgress[1])
	out := w.must("", "egress", "log")
	if strings.Count(out, "needs bad.example") != 2 || strings.Count(out, "needs worse.example") != 1 || strings.Count(out, "ok.example:443") != 2 {
		t.Errorf("%s", out)
	}
	if out := w.must("", "egress", "log", "--json"); strings.Count(out, "\n") != 6 || strings.Count(out, `"needs":"bad.example:443"`) != 3 {
		t.Errorf("as JSON: %s", out)
	}
}

func TestEgressUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	const help = "\nRun 'writ egress log --help' for how it is used."
	for _, row := range []struct {
		says string
		args []string
	}{
		{"--call is empty; name one, or leave it out to list all", []string{"--call", ""}},
		{"--agent is empty; name one, or leave it out to list all", []string{"--agent="}},
		{`invalid argument "0" for "--limit" flag: write a whole number from 1 to 1000`, []string{"--limit", "0"}},
		{`invalid argument "1001" for "--limit" flag: write a whole number from 1 to 1000`, []string{"--limit", "1001"}},
		{"expected no arguments", []string{"call_x"}},
		{"unknown flag: --limt; did you mean --limit?", []string{"--limt", "3"}},
		{"unknown flag: --jsn; did you mean --json?", []string{"--jsn"}},
		{"unknown flag: --nothing-like-it", []string{"--nothing-like-it"}},
	} {
		says(t, strings.Join(row.args, " "), w.run("", append([]string{"egress", "log"}, row.args...)...), 2, row.says+help)
	}
	says(t, "egress tail", w.run("", "egress", "tail"), 2, "unknown verb \"tail\"\nRun 'writ egress --help' for how it is used.")
	says(t, "completion bsh", w.run("", "completion", "bsh"), 2, "unknown verb \"bsh\"; did you mean bash?\nRun 'writ completion --help' for how it is used.")
	w.call("delete_file", map[string]any{"path": "x"})
	for flag, want := range map[string]string{"--agent": "coder", "--call": w.pending()} {
		if out := w.must("", "__complete", "egress", "log", flag, ""); !strings.Contains(out, want) {
			t.Errorf("%s does not offer %s: %s", flag, want, out)
		}
	}
	for _, flag := range []string{"--ssh", "--allow-host", "--read-host", "--allow-range"} {
		if out := w.must("", "__complete", "run", flag, ""); !strings.HasPrefix(out, ":4\n") {
			t.Errorf("%s offers files: %s", flag, out)
		}
	}
}

// heard is what a command that goes on has said until now.
type heard struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

// follows starts 'egress log --follow', and interrupts it in the end as Ctrl-C does.
func (w *world) follows(args ...string) (out, errOut *heard, end func()) {
	w.t.Helper()
	out, errOut = &heard{}, &heard{}
	cmd := exec.Command(program, append([]string{"egress", "log", "--follow"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env(), w.home, out, errOut
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return out, errOut, func() {
		w.t.Helper()
		cmd.Process.Signal(os.Interrupt)
		if code := exit(w.t, cmd); code != 0 {
			w.t.Errorf("interrupted: exit %d", code)
		}
	}
}

// logs adds to the log beside a daemon that runs.
func (w *world) logs(e store.Egress) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.state(), sqlite.Name)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`INSERT INTO egress_events (n, at, call, agent, kind, host, address, verdict, address_class, rule, detail, sent, received, micros)
		SELECT max(n) + 1, $1, $2, $3, $4, $5, '', $6, '', $7, '', 0, 0, 0 FROM egress_events`, e.At, e.Call, e.Agent, e.Kind, e.Host, e.Verdict, e.Rule)
	if err != nil {
		w.t.Fatal(err)
	}
}

// What is followed comes once, in order, also across a restart of the daemon; what the
// filters leave out does not come.
func TestEgressFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.leaves(someEgress...)
	w.serve()
	all, _, endAll := w.follows("--limit", "2")
	refused, said, endRefused := w.follows("--refused", "--json", "--limit", "1")
	waitFor(t, func() bool { return all.String() == tableOf(5, 6) && strings.Count(refused.String(), "\n") == 1 })
	w.logs(someEgress[0])
	w.logs(someEgress[2])
	waitFor(t, func() bool { return all.String() == tableOf(5, 6, 1, 3) && strings.Count(refused.String(), "\n") == 2 })
	w.leaves(someEgress[1], someEgress[3])
	waitFor(t, func() bool {
		return said.String() == "older ones are left out; --limit shows up to 1000\nthe daemon is down; waiting for it\n"
	})
	w.serve()
	waitFor(t, func() bool {
		return all.String() == tableOf(5, 6, 1, 3, 2, 4) && strings.Count(refused.String(), "\n") == 3
	})
	endAll()
	endRefused()
	var hosts []string
	for line := range strings.Lines(refused.String()) {
		var e struct{ Host string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		hosts = append(hosts, e.Host)
	}
	if got := strings.Join(hosts[1:], " "); got != "bad.example in.example:443" {
		t.Errorf("refused were %q", hosts)
	}
}

// The documentation has every verdict there is, and no other.
func TestEgressVerdictsAreDocumented(t *testing.T) {
	t.Parallel()
	words := func(file, pattern string) (out []string) {
		t.Helper()
		text, err := os.ReadFile(filepath.FromSlash("../../" + file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
		return out
	}
	have, want := words("docs/egress.md", "(?m)^\\| `(\\w+)` \\|"), words("egress/verdict.go", `Verdict += "(\w+)"`)
	if !slices.Equal(have, want) || len(want) < 14 {
		t.Errorf("documented are %q\nthere are %q", have, want)
	}
}
