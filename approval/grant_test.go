package approval

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
)

func (o *office) grants(r Request, a Allow) error {
	return o.desk.Decide(o.t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: true, Grant: &a, Person: "alice", Factor: "passphrase"})
}

// granted leaves a grant of a command behind, its own call used.
func (o *office) granted(command string, a Allow) store.Grant {
	o.t.Helper()
	if err := o.grants(o.ask(call(command, 0)), a); err != nil {
		o.t.Fatal(err)
	}
	if _, err := o.gate.Do(o.t.Context(), call(command, 0)); err != nil {
		o.t.Fatal(err)
	}
	all, err := o.db.Grants(o.t.Context())
	if err != nil || len(all) == 0 {
		o.t.Fatal(all, err)
	}
	return all[0]
}

// TestGrant: so many calls like it, for so long, and not one more.
func TestGrant(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		g := o.granted("ls", Allow{Uses: 3, For: time.Hour})
		for n := range 3 {
			c := call("ls", 0)
			c.Task = fmt.Sprint("another ", n) // a grant is not for one task
			if _, err := o.gate.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if i := o.invocation(c.ID); i.Approval != "approved" || i.Grant != g.ID || i.By != "alice" || i.Status != "completed" {
				t.Errorf("%+v", i)
			}
		}
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		if o.ran() != 4 {
			t.Errorf("%d runs", o.ran())
		}
	})
}

// TestGrantEnds: each thing that a grant is bound to.
func TestGrantEnds(t *testing.T) {
	for name, change := range map[string]func(*office, *writ.Call, store.Grant){
		"control":   func(*office, *writ.Call, store.Grant) {},
		"arguments": func(_ *office, c *writ.Call, _ store.Grant) { *c = call("ls -l", 0) },
		"agent":     func(_ *office, c *writ.Call, _ store.Grant) { c.Agent = "other" },
		"child":     func(_ *office, c *writ.Call, _ store.Grant) { c.Agent = "coder/kid" },
		"tool":      func(_ *office, c *writ.Call, _ store.Grant) { c.Tool, c.Definition = "read_file", writ.Digest{3} },
		"policy":    func(o *office, _ *writ.Call, _ store.Grant) { o.policy++ },
		"time":      func(*office, *writ.Call, store.Grant) { time.Sleep(time.Hour) },
		"revoked": func(o *office, _ *writ.Call, g store.Grant) {
			o.must(o.desk.Revoke(context.Background(), g.ID, "operator"))
		},
		"reach": func(o *office, _ *writ.Call, _ store.Grant) {
			o.decide = func(_ writ.Call, d *writ.Decision) { d.Base = writ.Digest{8} }
		},
		"class": func(o *office, _ *writ.Call, _ store.Grant) {
			o.decide = func(_ writ.Call, d *writ.Decision) { d.Class = writ.ClassReadOnly }
		},
		"dangerous": func(o *office, _ *writ.Call, _ store.Grant) {
			o.decide = func(_ writ.Call, d *writ.Decision) { d.Dangerous = true }
		},
		"quorum": func(o *office, _ *writ.Call, _ store.Grant) { o.terms.Quorum = 2 },
		"its quorum": func(o *office, _ *writ.Call, _ store.Grant) {
			o.decide = func(_ writ.Call, d *writ.Decision) { d.Quorum = 2 }
		},
		"a stop": func(o *office, _ *writ.Call, _ store.Grant) {
			o.must(o.ledger.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
				return ledger.Entry{Kind: "test"}, tx.RevokeGrants("coder", "", o.ledger.Now())
			}))
		},
		"an altered pattern": func(o *office, c *writ.Call, g store.Grant) {
			file, err := sql.Open("sqlite", "file:"+filepath.Join(o.dir, sqlite.Name))
			o.must(err)
			defer file.Close()
			_, err = file.Exec(`DROP TRIGGER grants_steps; UPDATE grants SET expires_at = '2999' WHERE id = $1`, g.ID)
			o.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				g := o.granted("ls", Allow{Uses: 10, For: time.Hour})
				c := call("ls", 0)
				c.Task = "another"
				change(o, &c, g)
				_, err := o.gate.Do(t.Context(), c)
				switch name {
				case "control":
					o.must(err)
				case "an altered pattern":
					wants(t, err, writ.Internal)
				default:
					wants(t, err, writ.Pending)
				}
				if want := map[bool]int{true: 2, false: 1}[name == "control"]; o.ran() != want {
					t.Errorf("%d runs", o.ran())
				}
			})
		})
	}
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// TestGrantRefused: bounds, and what is never granted.
func TestGrantRefused(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		for text, a := range map[string]Allow{
			"a grant is for 1 to 1000 calls":                                             {Uses: 0, For: time.Hour},
			"uses: a grant is for 1 to 1000 calls":                                       {Uses: 1001, For: time.Hour},
			"for: a grant lasts from a second to 7 days":                                 {Uses: 1, For: 0},
			"a grant lasts from a second to 7 days":                                      {Uses: 1, For: 8 * 24 * time.Hour},
			`"nothing" is not an argument of this call`:                                  {Uses: 1, For: time.Hour, Match: map[string]string{"nothing": "x"}},
			"the pattern of command: it would match anything":                            {Uses: 1, For: time.Hour, Match: map[string]string{"command": " * "}},
			"the pattern of command: ** is for paths":                                    {Uses: 1, For: time.Hour, Match: map[string]string{"command": "ls **"}},
			"the pattern of command: it has more than 8 *; write out what does not vary": {Uses: 1, For: time.Hour, Match: map[string]string{"command": "ls" + strings.Repeat(" *", 9)}},
		} {
			says(t, o.grants(r, a), writ.Invalid, text)
		}
		if o.only().ID != r.ID {
			t.Error("a grant that was refused did something")
		}
		o.must(o.answer(r, false))
		o.decide = func(_ writ.Call, d *writ.Decision) { d.Dangerous = true }
		says(t, o.grants(o.ask(call("rm", 0)), Allow{Uses: 1, For: time.Hour}), writ.Denied, "is never granted")
	})
}

// TestGrantRace: as many as it says, however many come at once.
func TestGrantRace(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.granted("ls", Allow{Uses: 7, For: time.Hour})
		var all []<-chan error
		for n := range 40 {
			c := call("ls", 0)
			c.Task = fmt.Sprint(n)
			all = append(all, o.do(t.Context(), c))
		}
		good := 0
		for _, done := range all {
			switch err := <-done; {
			case err == nil:
				good++
			case writ.KindOf(err) != writ.Pending && writ.KindOf(err) != writ.Conflict:
				t.Error(err)
			}
		}
		if good != 7 || o.ran() != 8 {
			t.Errorf("%d calls were served, %d runs", good, o.ran())
		}
	})
}

// TestMatchText: K, "always allow" that creeps.
func TestMatchText(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"git log *", "git log main", true},
		{"git log *", "git log feature/x-1.2", true},
		{"git log *", "git log", false},
		{"git log *", "git log ", false},
		{"git log *", "git log a b", false},
		{"git log *", "git log --output=/etc/passwd", false},
		{"git log *", "git log -p", false},
		{"git log *", "git log main; rm -rf /", false},
		{"git log *", "git log $(id)", false},
		{"git log *", "git log `id`", false},
		{"git log *", "git log main\nrm x", false},
		{"git log *", "git log main>x", false},
		{"git log *", "git log main|sh", false},
		{"git log *", "git log ~", false},
		{"git log *", "git log 'a b'", false},
		{"git log *", "git log *", false},
		{"git log *", "git -c core.sshCommand=x log main", false},
		{"gcc *", "gcc @options", false},
		{"gcc *", "gcc +x", false},
		{"gcc *", "gcc %1", false},
		{"gcc *", "gcc ./a.c", true},
		{"git *", "git -c", false},
		{"git * *", "git log main", true},
		{"git * *", "git -c x", false},
		{"* build", "make build", true},
		{"* build", "PATH=. build", false},
		{"* build", "A=b build", false},
		{"echo v*", "echo v1.2", true},
		{"echo v*", "echo v", false},
		{"echo v*", "echo v-1", true},
		{"a*c", "abc", true},
		{"a*c", "ac", false},
		{"a*c", "a c", false},
		{"ls", "ls", true},
		{"ls", "ls ", false},
	} {
		if got := matchText(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.text, got)
		}
	}
}

// tried is matchText by trying one way after the other: plain to read, and endless for
// texts that are made for it.
func tried(pattern, text string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, before)
	if !ok {
		return false
	}
	for n := 0; n <= len(rest); n++ {
		if n > 0 && !plain(rest[n-1]) {
			return false
		}
		if n > 0 && triedWord(before, rest[:n]) && tried(after, rest[n:]) {
			return true
		}
	}
	return false
}

func triedWord(before, word string) bool {
	begins := before == "" || !plain(before[len(before)-1])
	return !begins || (strings.IndexByte("._/", word[0]) >= 0 || plain(word[0]) && strings.IndexByte(":@%+=,-", word[0]) < 0) && !strings.Contains(word, "=")
}

// TestMatchTextTried: every short pattern of a few signs covers what it covers when all
// ways are tried.
func TestMatchTextTried(t *testing.T) {
	matched, texts := 0, strung("a. =", 5)
	for _, pattern := range strung("a.* =", 5) {
		for _, text := range texts {
			want := tried(pattern, text)
			if got := matchText(pattern, text); got != want {
				t.Fatalf("%q matches %q: %v", pattern, text, got)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 10_000 {
		t.Errorf("only %d matched", matched)
	}
}

// strung is every text of so many of the signs, or fewer.
func strung(signs string, most int) []string {
	out, last := []string{""}, []string{""}
	for range most {
		var longer []string
		for _, s := range last {
			for _, c := range signs {
				longer = append(longer, s+string(c))
			}
		}
		out, last = append(out, longer...), longer
	}
	return out
}

func FuzzMatchText(f *testing.F) {
	for _, s := range [][2]string{{"git log *", "git log main"}, {"echo v*.*.*", "echo v1.2.3"}, {"a*aab*b", "aaaaabaabbb"}, {"* *=*", "a b=c"}, {"**", "ab"}, {"*", ""}, {"é*", "éa"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.Count(pattern, "*") > 4 || len(text) > 60 {
			return
		}
		if got, want := matchText(pattern, text), tried(pattern, text); got != want {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}

// TestMatchTextEnds: a text that is made to be tried in every way is matched like any.
func TestMatchTextEnds(t *testing.T) {
	dots, as := strings.Repeat(".", 1<<20), strings.Repeat("a", 1<<20)
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"echo v*.*.*", "echo v" + dots + ";", false},
		{"echo v*.*.*", "echo v" + dots, true},
		{"echo v*.*.*.*.*.*.*.*", "echo v" + dots + ";", false},
		{"echo *" + as[:1000] + "b*", "echo " + as, false},
		{"echo *" + as[:1000] + "*b*a", "echo " + as + "ba", false},
		{"echo *" + as[:1000] + "*b*a", "echo " + as + "b1a", true},
	} {
		if got := matchText(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%.30q… matches %.10q… of %d bytes: %v", tt.pattern, tt.text, len(tt.text), got)
		}
	}
}

// TestGrantPaths: a path is held against its pattern as it resolves.
func TestGrantPaths(t *testing.T) {
	p := Pattern{Match: map[string]string{"path": "build/**"}}
	for path, want := range map[string]bool{"/ws/build/a": true, "/ws/build/x/y": true, "/ws/src/a": false, "/etc/passwd": false, "/ws/buildx": false} {
		c := writ.Call{Args: `{"path":"build/a"}`, Dir: "/ws", Targets: []writ.Target{{Pointer: "/path", Value: "build/a", Path: path}}}
		if got := p.matches(c); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if p.matches(writ.Call{Args: `{"path":"build/a"}`, Dir: "/ws", Targets: []writ.Target{{Pointer: "/path", Path: "/ws/build/a", Problem: "a NUL"}}}) {
		t.Error("a path that does not resolve")
	}
	if p.matches(writ.Call{Args: `{"path":"build/a","more":1}`, Dir: "/ws", Targets: []writ.Target{{Pointer: "/path", Path: "/ws/build/a"}}}) {
		t.Error("another argument")
	}
}

// TestGrantTakesOverWhoWaits: a call that waits for a person runs under a grant that is
// made meanwhile and covers it, and another goes on waiting.
func TestGrantTakesOverWhoWaits(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("git log b", 0))
		waits, other := o.do(t.Context(), call("git log a", time.Hour)), o.do(t.Context(), call("rm", time.Hour))
		synctest.Wait()
		o.must(o.grants(r, Allow{Uses: 5, For: time.Hour, Match: map[string]string{"command": "git log *"}}))
		o.must(<-waits)
		synctest.Wait()
		left := o.list("pending")
		if len(left) != 1 || o.ran() != 1 {
			t.Errorf("%d wait, %d ran", len(left), o.ran())
		}
		time.Sleep(time.Hour) // its patience began when it came
		synctest.Wait()
		wants(t, <-other, writ.Pending)
	})
}
