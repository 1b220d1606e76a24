package approval

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
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
			"a grant is for 1 to 1000 calls":                  {Uses: 0, For: time.Hour},
			"uses: a grant is for 1 to 1000 calls":            {Uses: 1001, For: time.Hour},
			"for: a grant lasts from a second to 7 days":      {Uses: 1, For: 0},
			"a grant lasts from a second to 7 days":           {Uses: 1, For: 8 * 24 * time.Hour},
			`"nothing" is not an argument of this call`:       {Uses: 1, For: time.Hour, Match: map[string]string{"nothing": "x"}},
			"the pattern of command: it would match anything": {Uses: 1, For: time.Hour, Match: map[string]string{"command": " * "}},
			"the pattern of command: ** is for paths":         {Uses: 1, For: time.Hour, Match: map[string]string{"command": "ls **"}},
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
