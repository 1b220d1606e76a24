package main

import (
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
)

const severalPeople = "there are several people; say who you are, with --as NAME"

// Among several people, whatever a person decides is refused without --as before
// anything is shown or asked; with it, it goes on to the passphrase.
func TestAsComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.place("tools/publish.yaml", definedTool("publish", "one", "write", ""))
	w.place("tools/fresh.yaml", definedTool("fresh", "two", "none", ""))
	w.accept("publish")
	w.add("bob", "approver")
	id := w.asks("x")
	for _, args := range [][]string{
		{"stop", "coder", "--lift"},
		{"stop", "--all", "--lift"},
		{"tool", "accept", "fresh"},
		{"tool", "waive", "publish", "--class", "none", "--reason", "looked at"},
		{"agent", "token", "coder"},
		{"person", "add", "carol", "viewer"},
		{"person", "role", "bob", "viewer"},
		{"approval", "approve", id},
		{"approval", "reject", id},
		{"approval", "edit", id, "--args", `{"path":"y"}`},
		{"approval", "grant", id},
		{"task", "rate", "task_none", "5"},
	} {
		what := strings.Join(args, " ")
		o := w.run("", append(args, "--passphrase-stdin")...)
		if says(t, what, o, 1, severalPeople); o.out != "" {
			t.Errorf("%s shows something first: %s", what, o.out)
		}
		says(t, what+" --as alice", w.run("", append(args, "--as", "alice", "--passphrase-stdin")...), 1, "there is no passphrase on standard input")
	}
	says(t, "resolve", w.run("", "invocation", "resolve", id, "--happened", "yes", "--note", "seen"), 1, severalPeople)
	says(t, "a passphrase of nobody", w.run("", "person", "passphrase", "carol", "--as", "alice", "--passphrase-stdin"), 1,
		`there is no person "carol"; 'writ person list' shows who there is`)
	if out := w.must("", "agent", "show", "coder"); strings.Contains(out, "STOPPED") {
		t.Errorf("it is stopped: %s", out)
	}
	w.must("", "stop", "coder")
	if out := w.must("", "agent", "show", "coder"); !strings.Contains(out, "  STOPPED: a person lifts it with: writ stop --lift coder --as NAME (--all where everybody is)\n") {
		t.Errorf("%s", out)
	}
	w.ok(w.by("alice", nil, "stop", "--lift", "coder"))
}

// The live screen says so before it shows anything; lines for programs need nobody.
func TestWatchTakesAs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	one, _ := w.watches(nil) // the control: there is one person
	w.add("bob", "approver")
	tm := newTerminal(t, 100, 20)
	if code := exit(t, w.on(tm, nil, "approval", "watch")); code != 1 {
		t.Errorf("exit %d", code)
	}
	tm.waits("does not say why", func() bool { return strings.Contains(tm.raw(), "writ: "+severalPeople) })
	if strings.Contains(tm.raw(), enterScreen) {
		t.Error("it shows the screen first")
	}
	w.watches(nil, "--as", "bob")
	// Where the second person came after it began, it says so before it asks.
	w.asks("x")
	one.sees("1 request waits")
	one.reads()
	one.types("a")
	one.sees(severalPeople)
	if strings.Contains(one.raw(), "Passphrase") {
		t.Error("it asks for a passphrase first")
	}
}

// What is wrong in the flags and arguments alone is usage, without a daemon, and in
// words that say what to write.
func TestUsageBeforeAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	long := strings.Repeat("x", cli.MaxWords+1)
	const (
		request, call, tool = "expected the id of a request; 'writ approval list' shows them", "expected the id of a call; 'writ invocation list' shows them", "expected a tool's name; 'writ tool list' shows them"
		week                = "write a time from 1s to 7d, in s, m, h or d"
		uses                = "write a whole number from 1 to 1000"
	)
	bad := func(value, flag, why string) string {
		return `invalid argument "` + value + `" for "` + flag + `" flag: ` + why
	}
	for _, c := range []struct{ line, says string }{
		{"approval grant call_x --for 169h", bad("169h", "--for", week)},
		{"approval grant call_x --for 8d", bad("8d", "--for", week)},
		{"approval grant call_x --for 0s", bad("0s", "--for", week)},
		{"approval grant call_x --for long", bad("long", "--for", week)},
		{"approval grant call_x --uses 0", bad("0", "--uses", uses)},
		{"approval grant call_x --uses 1001", bad("1001", "--uses", uses)},
		{"approval grant call_x --uses many", bad("many", "--uses", uses)},
		{"approval grant call_x --match path=a --match path=b", "--match: path is given twice; one argument has one pattern"},
		{"approval grant call_x --match path", `--match: "path" is not ARGUMENT=PATTERN`},
		{"tool waive publish --class nine --reason x", `there is no class "nine"; did you mean none?; there are none, read_only, write`},
		{"invocation show call_x --wait 10m", bad("10m", "--wait", "write a time from 1s to 5m, in s, m, h or d")},
		{"invocation show call_x --wait=-5s", bad("-5s", "--wait", "write a time from 1s to 5m, in s, m, h or d")},
		{"invocation list --limit many", bad("many", "--limit", uses)},
		{"ledger tail -n 0", bad("0", "-n, --lines", uses)},
		{"batch - --wait 1h", bad("1h", "--wait", "write a time from 1s to 5m, in s, m, h or d")},
		{"agent delegate kid --lasts 2d", bad("2d", "--lasts", "write a time from 1s to 24h, in s, m, h or d")},
		{"approval reject call_x --reason " + long, "--reason has 2001 bytes; write at most 2000"},
		{"stop coder --reason " + long, "--reason has 2001 bytes; write at most 2000"},
		{"invocation resolve call_x --happened yes --note " + long, "--note has 2001 bytes; write at most 2000"},
		{"tool waive publish --class none --reason " + long, "--reason has 2001 bytes; write at most 500"},
		{"approval show EMPTY", request},
		{"approval approve EMPTY", request},
		{"approval reject EMPTY", request},
		{"approval edit EMPTY", request},
		{"approval grant EMPTY", request},
		{"approval revoke EMPTY", "expected the id of a grant; 'writ approval grants' lists them"},
		{"invocation show EMPTY", call},
		{"invocation cancel EMPTY", "expected the id of a call; 'writ invocation list --state running' shows them"},
		{"invocation resolve EMPTY --happened yes --note x", "expected the id of a call; 'writ invocation list --state unknown' shows them"},
		{"tool show EMPTY", tool},
		{"call EMPTY", tool},
		{"explain EMPTY --agent coder", tool},
		{"stop EMPTY", "name one agent, or --all"},
		{"person role EMPTY viewer", "expected a person's name and a role: viewer, approver, operator, admin"},
		{"person passphrase EMPTY", "expected at most one name; 'writ person list' shows them"},
		{"session end EMPTY", "expected a session's id; 'writ session list' shows them"},
		{"person remove bob", "people are never removed; as a viewer one decides nothing: writ person role bob viewer"},
		{"person rm", "people are never removed; as a viewer one decides nothing: writ person role NAME viewer"},
	} {
		args := strings.Fields(c.line)
		of := args[0]
		if len(args) > 1 && args[0] != "batch" && args[0] != "call" && args[0] != "explain" && args[0] != "stop" && args[1] != "remove" && args[1] != "rm" {
			of += " " + args[1]
		}
		for n := range args {
			args[n] = strings.TrimPrefix(args[n], "EMPTY")
		}
		says(t, c.line, w.run("", args...), 2, c.says+"\nRun 'writ "+of+" --help' for how it is used.")
	}
	if !unlocked(w.state("writ.db.lock")) {
		t.Error("a daemon was started")
	}
}

// A grant is refused before it is shown where its request is not there or has no such
// argument; as long as the configuration writes it, it lasts.
func TestGrantTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	grant := func(id string, flags ...string) outcome {
		return w.run(pass+"\n", append([]string{"approval", "grant", id, "--passphrase-stdin"}, flags...)...)
	}
	id := w.asks("x")
	for _, c := range []struct {
		says  string
		id    string
		flags []string
	}{
		{`there is no request "call_nope"; 'writ approval list' shows those that wait`, "call_nope", nil},
		{`--match: "file" is not an argument of this call with a text as its value; it has path`, id, []string{"--match", "file=*"}},
	} {
		o := grant(c.id, c.flags...)
		if says(t, c.id, o, 1, c.says); o.out != "" {
			t.Errorf("it is shown first: %s", o.out)
		}
	}
	o := grant(id, "--for", "7d", "--uses", "1000", "--match", "path=*")
	if o.code != 0 || !strings.HasPrefix(o.out, "grants    1000 later calls, for 7d\n          path may match *\nrequest   "+id) {
		t.Fatalf("%+v", o)
	}
	var gs []client.Grant
	w.decode(&gs, "", "approval", "grants")
	made, err1 := time.Parse(time.RFC3339Nano, gs[0].Made)
	ends, err2 := time.Parse(time.RFC3339Nano, gs[0].Expires)
	if err1 != nil || err2 != nil || ends.Sub(made) != 7*24*time.Hour || gs[0].Max != 1000 {
		t.Errorf("%+v", gs)
	}
	waitFor(t, func() bool { return w.state1(id).State == "used" })
	says(t, "granted again", grant(id), 1, "request "+id+" is used; only one that waits can be granted")
}
