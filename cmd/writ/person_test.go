package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// passphraseOf is the passphrase of somebody in these tests.
func passphraseOf(name string) string {
	if name == "alice" {
		return pass
	}
	return "passphrase of " + name
}

// by runs a command as a person, with more lines of standard input after theirs.
func (w *world) by(name string, more []string, args ...string) outcome {
	w.t.Helper()
	lines := append([]string{passphraseOf(name)}, more...)
	return w.run(strings.Join(lines, "\n")+"\n", append(args, "--as", name, "--passphrase-stdin")...)
}

// add has alice add somebody.
func (w *world) add(name, role string) {
	w.t.Helper()
	if o := w.by("alice", []string{passphraseOf(name)}, "person", "add", name, role); o.code != 0 || o.out != "added "+name+", role "+role+"\n" {
		w.t.Fatalf("add %s: %+v", name, o)
	}
}

// asks makes a call that waits for a person, and returns the request's id.
func (w *world) asks(path string) string {
	w.t.Helper()
	w.write(filepath.Join(w.ws, path), "x")
	if o := w.call("delete_file", map[string]any{"path": path}); o.code != 4 {
		w.t.Fatalf("it does not ask: %+v", o)
	}
	return w.pending()
}

// end ends the daemon and waits for it.
func (w *world) end() {
	w.t.Helper()
	w.must("", "serve", "--stop")
	w.daemonGone()
}

func (w *world) roles() string {
	w.t.Helper()
	var list []struct {
		Name, Role string
		Created    string `json:"created_at"`
	}
	if err := json.Unmarshal([]byte(w.must("", "person", "list", "--json")), &list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, p := range list {
		if !strings.HasSuffix(p.Created, "Z") {
			w.t.Errorf("since when is %q", p.Created)
		}
		out = append(out, p.Name+" "+p.Role)
	}
	return strings.Join(out, ", ")
}

// says demands an exit code and the exact message.
func says(t *testing.T, what string, o outcome, code int, message string) {
	t.Helper()
	if o.code != code || o.err != "writ: "+message+"\n" {
		t.Errorf("%s: exit %d %q\nwant %d %q", what, o.code, o.err, code, message)
	}
}

const wrongPass = "wrong name or passphrase"

// Somebody is added and approves; a viewer does not, nor does one whose role was
// taken away; an admin resets a passphrase, and everybody changes their own.
func TestPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.add("bob", "approver")
	w.add("vera", "viewer")
	if got := w.roles(); got != "alice admin, bob approver, vera viewer" {
		t.Errorf("people: %s", got)
	}
	if out := w.must("", "person", "list"); !regexp.MustCompile(`^NAME +ROLE +SINCE\nalice +admin +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\nbob +approver +20`).MatchString(out) {
		t.Errorf("list:\n%s", out)
	}
	id := w.asks("x")
	says(t, "nobody in particular", w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"), 1, "there are several people; say who you are, with --as NAME")
	viewer := func(name, takes string) string {
		return name + " has the role viewer, and this takes " + takes + "; an admin changes it with 'writ person role " + name + " ROLE'"
	}
	says(t, "a viewer approves", w.by("vera", nil, "approval", "approve", id), 3, viewer("vera", "approver or admin"))
	says(t, "a viewer rejects", w.by("vera", nil, "approval", "reject", id), 3, viewer("vera", "approver or admin"))
	says(t, "a viewer makes a token", w.by("vera", nil, "agent", "token", "coder"), 3, viewer("vera", "operator or admin"))
	says(t, "a viewer makes an admin", w.by("vera", nil, "person", "role", "vera", "admin"), 3, viewer("vera", "admin"))
	says(t, "an approver adds somebody", w.by("bob", []string{"long enough"}, "person", "add", "mallory", "admin"), 3,
		"bob has the role approver, and this takes admin; an admin changes it with 'writ person role bob ROLE'")
	if o := w.by("bob", nil, "approval", "approve", id); o.code != 0 || !strings.Contains(o.out, " approved by bob;") {
		t.Errorf("an approver approves: %+v", o)
	}
	if o := w.call("delete_file", map[string]any{"path": "x"}); o.code != 0 {
		t.Errorf("approved by bob: %+v", o)
	}
	id = w.asks("y")
	if o := w.by("alice", nil, "person", "role", "bob", "viewer"); o.code != 0 || o.out != "bob has the role viewer now\n" {
		t.Errorf("role: %+v", o)
	}
	says(t, "one who was an approver", w.by("bob", nil, "approval", "approve", id), 3, viewer("bob", "approver or admin"))
	if o := w.by("alice", nil, "person", "role", "bob", "approver", "--json"); o.code != 0 || o.out != "{\n  \"name\": \"bob\",\n  \"role\": \"approver\",\n  \"status\": \"changed\"\n}\n" {
		t.Errorf("role as JSON: %+v", o)
	}

	if o := w.by("alice", []string{"reset by alice"}, "person", "passphrase", "bob"); o.code != 0 || o.out != "changed the passphrase of bob\n" {
		t.Errorf("reset: %+v", o)
	}
	says(t, "the passphrase before the reset", w.by("bob", nil, "approval", "approve", id), 1, wrongPass)
	if o := w.run("reset by alice\nchosen by bob\n", "person", "passphrase", "bob", "--passphrase-stdin"); o.code != 0 {
		t.Errorf("one's own: %+v", o)
	}
	says(t, "one's own with the wrong one", w.run("reset by alice\nguessed that\n", "person", "passphrase", "bob", "--passphrase-stdin"), 1, wrongPass)
	says(t, "another's by an approver", w.run("chosen by bob\nnew for alice\n", "person", "passphrase", "alice", "--as", "bob", "--passphrase-stdin"), 3,
		"bob has the role approver, and this takes admin; an admin changes it with 'writ person role bob ROLE'")
	if o := w.run("chosen by bob\n", "approval", "approve", id, "--as", "bob", "--passphrase-stdin"); o.code != 0 {
		t.Errorf("with the new passphrase: %+v", o)
	}
	w.verifies()
	kinds := w.ledgerKinds()
	for kind, n := range map[string]int{"person.added": 3, "person.role": 2, "person.passphrase": 2, "person.refused": 2, "person.admitted": 2} {
		if got := len(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != kind })); got != n {
			t.Errorf("%d entries %s, want %d", got, kind, n)
		}
	}
	w.end()
	w.holdsNone("passphrase of", "reset by alice", "chosen by bob", pass, "long enough", "guessed that")
}

// holdsNone demands that nothing below the state has any of the texts in it.
func (w *world) holdsNone(texts ...string) {
	w.t.Helper()
	err := filepath.WalkDir(w.state(), func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		for _, text := range texts {
			if strings.Contains(string(b), text) {
				w.t.Errorf("%s holds %q", p, text)
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// The last admin stays one, until there is another.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.add("bob", "operator")
	says(t, "the last admin", w.by("alice", nil, "person", "role", "alice", "operator"), 1,
		"alice is the last admin, and without one nobody could make another; first: writ person role SOMEBODY admin")
	if o := w.by("alice", nil, "person", "role", "bob", "admin"); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	if o := w.by("bob", nil, "person", "role", "alice", "viewer"); o.code != 0 {
		t.Errorf("one of two admins: %+v", o)
	}
	says(t, "one who was an admin", w.by("alice", nil, "person", "role", "bob", "viewer"), 3,
		"alice has the role viewer, and this takes admin; an admin changes it with 'writ person role alice ROLE'")
	if got := w.roles(); got != "alice viewer, bob admin" {
		t.Errorf("people: %s", got)
	}
	w.verifies()
}

// A lost passphrase is recovered while no daemon runs, and only then.
func TestPersonRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.must("", "person", "list") // a daemon runs
	o := w.run("found again\n", "person", "recover", "alice", "--passphrase-stdin")
	says(t, "with the daemon running", o, 1, "another writ process has the store open: a passphrase is recovered while no daemon runs; '"+program+" serve --stop' ends it")
	if o := w.by("alice", nil, "agent", "token", "coder"); o.code != 0 {
		t.Errorf("a refused recovery changed the passphrase: %+v", o)
	}
	w.end()
	says(t, "nobody", w.run("found again\n", "person", "recover", "nobody", "--passphrase-stdin"), 1, `there is no person "nobody"; 'writ person list' shows who there is`)
	says(t, "too short", w.run("short\n", "person", "recover", "alice", "--passphrase-stdin"), 1, "the passphrase is too short; use at least 8 characters")
	if o := w.run("found again\n", "person", "recover", "alice", "--passphrase-stdin"); o.code != 0 ||
		o.out != "set a new passphrase for alice; the old one is good no more\nthe ledger has it as person.recovered\n" {
		t.Errorf("recover: %+v", o)
	}
	says(t, "the old passphrase", w.by("alice", nil, "agent", "token", "coder"), 1, wrongPass)
	if o := w.run("found again\n", "agent", "token", "coder", "--passphrase-stdin"); o.code != 0 {
		t.Errorf("the new passphrase: %+v", o)
	}
	if !slices.Contains(w.ledgerKinds(), "person.recovered") {
		t.Errorf("it is not recorded: %v", w.ledgerKinds())
	}
	w.verifies()
	w.end()
	w.holdsNone("found again")
}

// Restarting the daemon gives a guesser no fresh tries. Fresh, four more guesses
// would all be looked at; as it is, one of them comes too early.
func TestGuessesSlowedAcrossARestart(t *testing.T) {
	w := newWorld(t, standard, "").init()
	w.add("bob", "operator")
	guess := func() outcome {
		return w.run("guess number one\n", "agent", "token", "coder", "--as", "alice", "--passphrase-stdin")
	}
	for range 5 {
		guess()
	}
	w.end()
	slowed := false
	for range 4 {
		o := guess()
		early := strings.Contains(o.err, "too many wrong passphrases; try again in ")
		if o.code != 1 || !early && !strings.Contains(o.err, wrongPass) {
			t.Errorf("a guess: %+v", o)
		}
		slowed = slowed || early
	}
	if !slowed {
		t.Error("after a restart guessing is free")
	}
	if o := w.by("bob", nil, "agent", "token", "coder"); o.code != 0 { // the control: only alice is guarded
		t.Errorf("another is held back: %+v", o)
	}
}

// People are changed by people: an agent's token gets nowhere near, at either door.
func TestAgentsChangeNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	addr, _ := w.serve()
	outside, err := client.New("http://"+addr, w.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	inside, operator := client.Dial(w.state()), client.Dial(w.state())
	inside.Token = w.token
	alice := client.Credentials{Name: "alice", Passphrase: pass}
	acts := map[string]func(*client.Client) error{
		"list": func(c *client.Client) error { _, err := c.People().All(t.Context()); return err },
		"add first": func(c *client.Client) error {
			return c.AddFirstPerson(t.Context(), client.Credentials{Name: "eve", Passphrase: "long enough"})
		},
		"add": func(c *client.Client) error {
			return c.AddPerson(t.Context(), client.NewPerson{Name: "bob", Role: "viewer", Passphrase: "long enough"}, alice)
		},
		"role":       func(c *client.Client) error { return c.SetRole(t.Context(), "bob", "operator", alice) },
		"passphrase": func(c *client.Client) error { return c.SetPassphrase(t.Context(), "bob", "another one", alice) },
	}
	for name, act := range acts {
		for where, want := range map[*client.Client]writ.Kind{outside: writ.NotFound, inside: writ.Denied} {
			var p *client.Problem
			if err := act(where); !errors.As(err, &p) || p.Kind != want {
				t.Errorf("%s, want %s: %v", name, want, err)
			}
		}
	}
	if got := w.roles(); got != "alice admin" {
		t.Errorf("people: %s", got)
	}
	for _, name := range []string{"list", "add", "role", "passphrase"} { // the control: the operator, with the same passphrase
		if err := acts[name](operator); err != nil {
			t.Errorf("%s by the operator: %v", name, err)
		}
	}
	var p *client.Problem
	if err := acts["add first"](operator); !errors.As(err, &p) || p.Kind != writ.Conflict {
		t.Errorf("a second first person: %v", err)
	}
}

// On a terminal the admin is asked first and the new person after, twice; names and
// roles are checked before anybody types, and Tab offers both.
func TestPersonOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "person.txtar"), []byte(personScript), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			home, ws := filepath.Join(e.WorkDir, "home"), filepath.Join(e.WorkDir, "ws")
			e.Setenv("HOME", home)
			e.Setenv("PATH", filepath.Dir(program)+":"+e.Getenv("PATH"))
			e.Defer(func() { // also when the script failed before it ended its daemon
				end := exec.Command(program, "serve", "--stop")
				end.Env = []string{"HOME=" + home}
				_ = end.Run()
			})
			config := filepath.Join(home, ".config/writ/writ.yaml")
			if err := errors.Join(os.MkdirAll(ws, 0o755), os.MkdirAll(filepath.Dir(config), 0o755)); err != nil {
				return err
			}
			return os.WriteFile(config, fmt.Appendf(nil, configText, ws, ws, ""), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

const personScript = `
exits 1 person recover alice
stderr 'there is nobody yet; ''writ init'' makes the first person'

ttyin -stdin alice
exec writ init --as alice

exits 2 person add bob
stderr 'expected a person''s name and a role: viewer, approver, operator, admin'
exits 2 person add bob aprover
stderr 'there is no role "aprover"; did you mean approver\?; there are viewer, approver, operator, admin'
exits 2 person add 'b ob' approver
stderr 'a person''s name has letters'
exits 2 person ad bob approver
stderr 'unknown verb "ad"; did you mean add\?'
exits 1 person add bob approver
stderr 'typed on a terminal'

ttyin -stdin add
exec writ person add bob approver
ttyout 'Your passphrase, as an admin: '
ttyout 'Choose a passphrase, at least 8 characters: '
ttyout 'Again: '
stderr '^bob chooses a passphrase now, which nobody else should see.$'
stdout '^added bob, role approver$'

ttyin -stdin differ
! exec writ person passphrase bob --as alice
ttyout 'Passphrase of alice, as an admin: '
stderr 'the two passphrases differ; nothing was changed'

exits 2 person passphrase
stderr 'there are 2 people; name one: writ person passphrase NAME'

ttyin -stdin own
exec writ person passphrase bob
ttyout 'Old passphrase of bob: '
stdout '^changed the passphrase of bob$'

exec writ __complete person role ''
stdout '^alice\tadmin$'
stdout '^bob\tapprover$'
exec writ __complete person role bob ''
stdout '^viewer$'
stdout '^admin$'
exec writ __complete person add ''
! stdout 'alice'
exec writ __complete person add carol op
stdout '^operator$'
exec writ __complete person passphrase --as ''
stdout '^bob\tapprover$'

exec writ serve --stop

-- alice --
correct horse
correct horse
-- add --
correct horse
bobs own horse
bobs own horse
-- differ --
correct horse
another horse
another mule
-- own --
bobs own horse
a newer horse
a newer horse
`
