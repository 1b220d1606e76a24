package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/store"
)

// cred are a person's credentials in these tests: each has their own passphrase.
func cred(name string) Credentials {
	if name == "alice" {
		return Credentials{Name: name, Passphrase: passphrase}
	}
	return Credentials{Name: name, Passphrase: "the passphrase of " + name}
}

// people opens an engine with alice, and whoever else is named with a role.
func people(t *testing.T, roles map[string]string) *fixture {
	t.Helper()
	f := newFixture(t, agentsText, Options{})
	f.alice()
	for name, role := range roles {
		f.must(f.AddPerson(t.Context(), NewPerson{Name: name, Role: role, Passphrase: cred(name).Passphrase}, cred("alice")))
	}
	return f
}

func (f *fixture) roles() string {
	f.t.Helper()
	all, err := f.People(f.t.Context())
	f.must(err)
	var out []string
	for _, p := range all {
		out = append(out, p.Name+" "+p.Role)
	}
	return strings.Join(out, ", ")
}

// recorded lists the entries about people: kind, who did it, and the data.
func (f *fixture) recorded() []string {
	f.t.Helper()
	var out []string
	for e, err := range f.store.Entries(f.t.Context()) {
		f.must(err)
		var body struct {
			Person string
			Data   json.RawMessage
		}
		f.must(json.Unmarshal([]byte(e.Body), &body))
		if strings.HasPrefix(e.Kind, "person.") {
			out = append(out, fmt.Sprintf("%s by %q %s", e.Kind, body.Person, body.Data))
		}
		for _, secret := range []string{passphrase, "the passphrase of", "brand new one", "argon2id"} {
			if strings.Contains(e.Body, secret) {
				f.t.Errorf("a passphrase is in the ledger: %s", e.Body)
			}
		}
	}
	return out
}

// Which role may do what: every pair.
func TestRoles(t *testing.T) {
	f := people(t, map[string]string{"vera": "viewer", "abe": "approver", "olga": "operator", "anna": "admin"})
	allowed := map[string]string{"approve": "abe anna", "operate": "olga anna", "rate": "abe olga anna", "admin": "anna", "self": "vera abe olga anna", "nonsense": ""}
	for act, who := range allowed {
		for _, name := range []string{"vera", "abe", "olga", "anna"} {
			got, err := f.person(t.Context(), cred(name), act)
			if want := strings.Contains(who, name); (err == nil) != want || want && got != name {
				t.Errorf("%s, %s: %q %v", name, act, got, err)
			}
			if err != nil && writ.KindOf(err) != writ.Denied {
				t.Errorf("%s, %s: %v", name, act, err)
			}
		}
	}
	if len(allowed) != len(may)+1 {
		t.Errorf("%d acts, %d tried", len(may), len(allowed)-1)
	}
	_, err := f.person(t.Context(), Credentials{Passphrase: passphrase}, "approve")
	wants(t, err, writ.Unauthenticated, "there are several people; say who you are, with --as NAME")
}

// What changes people, and what of it is refused, with the exact words.
func TestChangingPeople(t *testing.T) {
	f := people(t, map[string]string{"bob": "approver"})
	ctx := t.Context()
	add := func(name, role, pass, by string) error {
		return f.AddPerson(ctx, NewPerson{name, role, pass}, cred(by))
	}
	for _, tt := range []struct {
		name string
		err  error
		kind writ.Kind
		text string
	}{
		{"not by an approver", add("carol", "viewer", "long enough", "bob"), writ.Denied, "bob has the role approver, and this takes admin; an admin changes it with 'writ person role bob ROLE'"},
		{"not by nobody", add("carol", "viewer", "long enough", "mallory"), writ.Unauthenticated, "wrong name or passphrase"},
		{"no role", add("carol", "", "long enough", "alice"), writ.Invalid, `there is no role ""; there are viewer, approver, operator, admin`},
		{"a role that is none", add("carol", "aprover", "long enough", "alice"), writ.Invalid, `there is no role "aprover"; did you mean approver?; there are viewer, approver, operator, admin`},
		{"a bad name", add("ca rol", "viewer", "long enough", "alice"), writ.Invalid, "a person's name has letters, digits, _ . and -, at most 64"},
		{"a short passphrase", add("carol", "viewer", "short", "alice"), writ.Invalid, "the passphrase is too short; use at least 8 characters"},
		{"twice", add("bob", "viewer", "long enough", "alice"), writ.Conflict, "bob is there already, perhaps in other letters ('writ person list' shows who there is); 'writ person role NAME ROLE' changes a role"},
		{"first again", f.AddFirstPerson(ctx, cred("mallory")), writ.Conflict, "the first person is there already; an admin adds others with 'writ person add NAME ROLE'"},
		{"the last admin", f.SetRole(ctx, "alice", "operator", cred("alice")), writ.Conflict, "alice is the last admin, and without one nobody could make another; first: writ person role SOMEBODY admin"},
		{"raising oneself", f.SetRole(ctx, "bob", "admin", cred("bob")), writ.Denied, "bob has the role approver, and this takes admin; an admin changes it with 'writ person role bob ROLE'"},
		{"nobody's role", f.SetRole(ctx, "nobody", "viewer", cred("alice")), writ.NotFound, `there is no person "nobody"; 'writ person list' shows who there is`},
		{"the same role", f.SetRole(ctx, "bob", "approver", cred("alice")), writ.Conflict, "bob has the role approver already; nothing was changed"},
		{"another role that is none", f.SetRole(ctx, "bob", "root", cred("alice")), writ.Invalid, `there is no role "root"; there are viewer, approver, operator, admin`},
		{"an admin's passphrase by an approver", f.SetPassphrase(ctx, "alice", "brand new one", cred("bob")), writ.Denied, "bob has the role approver, and this takes admin; an admin changes it with 'writ person role bob ROLE'"},
		{"nobody's passphrase", f.SetPassphrase(ctx, "nobody", "brand new one", cred("alice")), writ.NotFound, `there is no person "nobody"; 'writ person list' shows who there is`},
		{"the same passphrase", f.SetPassphrase(ctx, "bob", cred("bob").Passphrase, cred("bob")), writ.Invalid, "that is the passphrase you have; choose another"},
		{"a short new one", f.SetPassphrase(ctx, "bob", "short", cred("bob")), writ.Invalid, "the passphrase is too short; use at least 8 characters"},
	} {
		if kind, msg := writ.Public(tt.err); tt.err == nil || kind != tt.kind || msg != tt.text {
			t.Errorf("%s:\n got %s %q\nwant %s %q", tt.name, kind, msg, tt.kind, tt.text)
		}
	}
	if got := f.roles(); got != "alice admin, bob approver" {
		t.Errorf("after refusals: %s", got)
	}
	f.must(f.SetRole(ctx, "bob", "admin", cred("alice")))
	f.must(f.SetRole(ctx, "alice", "viewer", cred("bob")))
	f.must(f.SetPassphrase(ctx, "alice", "brand new one", cred("alice"))) // a viewer's own
	f.must(f.SetPassphrase(ctx, "alice", "brand new one too", cred("bob")))
	if _, err := f.person(ctx, Credentials{"alice", "brand new one too"}, "self"); err != nil {
		t.Errorf("the new passphrase: %v", err)
	}
	for _, old := range []string{passphrase, "brand new one"} {
		_, err := f.person(ctx, Credentials{"alice", old}, "self")
		wants(t, err, writ.Unauthenticated, "wrong name or passphrase")
	}
	want := []string{
		`person.added by "alice" {"factor":"passphrase","first":true,"person":"alice","role":"admin"}`,
		`person.added by "alice" {"factor":"passphrase","person":"bob","role":"approver"}`,
		`person.refused by "" {"act":"admin","early":false,"failed":1,"known":false}`,
		`person.role by "alice" {"factor":"passphrase","from":"approver","person":"bob","role":"admin"}`,
		`person.role by "bob" {"factor":"passphrase","from":"admin","person":"alice","role":"viewer"}`,
		`person.passphrase by "alice" {"factor":"passphrase","own":true,"person":"alice"}`,
		`person.passphrase by "bob" {"factor":"passphrase","own":false,"person":"alice"}`,
		`person.refused by "alice" {"act":"self","early":false,"failed":1,"known":true}`,
		`person.refused by "alice" {"act":"self","early":false,"failed":2,"known":true}`,
	}
	if got := f.recorded(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Two admins demote each other at once: one of them wins, and an admin remains.
func TestAdminsDemoteEachOther(t *testing.T) {
	f := people(t, map[string]string{"bob": "admin"})
	for range 2 {
		errs := make([]error, 2)
		each(2, func(i int) {
			who := []string{"alice", "bob"}
			errs[i] = f.SetRole(t.Context(), who[1-i], "viewer", cred(who[i]))
		})
		winner := map[string]string{"alice admin, bob viewer": "alice", "alice viewer, bob admin": "bob"}[f.roles()]
		if (errs[0] == nil) == (errs[1] == nil) || winner == "" {
			t.Fatalf("%v, %v: %s", errs[0], errs[1], f.roles())
		}
		for i, name := range []string{"alice", "bob"} {
			if (errs[i] == nil) != (winner == name) || errs[i] != nil && writ.KindOf(errs[i]) != writ.Denied {
				t.Errorf("%s: %v, and %s won", name, errs[i], winner)
			}
		}
		loser := map[string]string{"alice": "bob", "bob": "alice"}[winner]
		f.must(f.SetRole(t.Context(), loser, "admin", cred(winner)))
	}
}

// Who was an admin when they were checked, and is not when it commits, changes
// nothing; nor does one whose passphrase was replaced meanwhile.
func TestActOfSomebodyChangedMeanwhile(t *testing.T) {
	f := people(t, map[string]string{"bob": "admin", "carol": "viewer"})
	ctx := t.Context()
	before, err := f.proven(ctx, cred("bob"), "admin")
	f.must(err)
	commits := func() error {
		tx, err := f.store.Begin(ctx)
		f.must(err)
		defer func() { f.must(tx.Rollback()) }()
		return still(tx, before, "admin")
	}
	f.must(commits()) // the control
	f.must(f.SetRole(ctx, "bob", "operator", cred("alice")))
	const changed = "the role or the passphrase of bob was changed meanwhile, so nothing was done; 'writ person list' shows who is what"
	wants(t, commits(), writ.Denied, changed)
	f.must(f.SetRole(ctx, "bob", "admin", cred("alice")))
	f.must(commits())
	f.must(f.SetPassphrase(ctx, "bob", "brand new one", cred("alice")))
	wants(t, commits(), writ.Denied, changed)
}

// Adding one name many times at once adds one.
func TestAddedOnce(t *testing.T) {
	f := people(t, nil)
	errs := make([]error, 4)
	each(len(errs), func(i int) {
		errs[i] = f.AddPerson(t.Context(), NewPerson{"bob", person.Roles[i], cred("bob").Passphrase}, cred("alice"))
	})
	added := ""
	for i, err := range errs {
		switch {
		case err == nil:
			added += person.Roles[i]
		case writ.KindOf(err) != writ.Conflict:
			t.Error(err)
		}
	}
	if got := f.roles(); got != "alice admin, bob "+added || f.kinds()["person.added"] != 2 {
		t.Errorf("%s; added as %q, %d entries", got, added, f.kinds()["person.added"])
	}
}

// guess tries a passphrase of alice's.
func (f *fixture) guess(pass, want string) {
	f.t.Helper()
	_, err := f.person(f.t.Context(), Credentials{"alice", pass}, "approve")
	if _, msg := writ.Public(err); err == nil && want != "" || err != nil && msg != want {
		f.t.Errorf("got %v, want %q", err, want)
	}
}

// Opening the engine again gives a guesser no fresh tries; a right passphrase, or a
// new one, ends what was counted, also for an engine opened after it.
func TestGuessesSurviveARestart(t *testing.T) {
	const wrong, slow = "wrong name or passphrase", "too many wrong passphrases; try again in "
	f := people(t, map[string]string{"bob": "admin"})
	for range 4 {
		f.guess("wrong one", wrong)
	}
	f.reopen(Options{})
	f.guess("wrong one", wrong) // the fifth
	f.guess(passphrase, slow+"1s")
	f.reopen(Options{})
	f.guess(passphrase, slow+"1s")
	f.pass(time.Second)
	f.guess("wrong one", wrong)
	f.reopen(Options{})
	f.guess("wrong one", slow+"2s") // too early, so it does not count
	f.pass(2 * time.Second)
	f.reopen(Options{})
	f.guess(passphrase, "")
	for range 2 { // it is over: four more are free, before and after a restart
		f.guess("wrong one", wrong)
		f.guess("wrong one", wrong)
		f.reopen(Options{})
	}
	f.guess(passphrase, "")
	for range 5 {
		f.guess("wrong one", wrong)
	}
	f.must(f.SetPassphrase(t.Context(), "alice", "brand new one", cred("bob")))
	f.guess("brand new one", "")
	f.reopen(Options{})
	f.guess("brand new one", "")
	for range 5 {
		f.guess("wrong one", wrong)
	}
	f.pass(person.Window + time.Second)
	f.reopen(Options{})
	f.guess("wrong one", wrong) // out of the window
	f.guess("brand new one", "")
	if n := f.kinds()["person.admitted"]; n != 3 {
		t.Errorf("%d times somebody was admitted after wrong passphrases", n)
	}
	f.recorded()
}

// Recovering takes the store: not while an engine has it, and then without the old
// passphrase, written down, in nobody's name.
func TestRecover(t *testing.T) {
	f := people(t, nil)
	for range 6 {
		_, _ = f.person(t.Context(), Credentials{"alice", "wrong one"}, "approve")
	}
	path := filepath.Join(f.dir, "writ.yaml")
	asked := 0
	choose := func(pass string, err error) func() (string, error) {
		return func() (string, error) { asked++; return pass, err }
	}
	if err := Recover(t.Context(), path, "alice", choose("brand new one", nil)); !errors.Is(err, store.ErrLocked) || asked != 0 {
		t.Fatalf("with the engine open, asked %d times: %v", asked, err)
	}
	f.must(f.Engine.Close())
	wants(t, Recover(t.Context(), path, "nobody", choose("brand new one", nil)), writ.NotFound, `there is no person "nobody"; 'writ person list' shows who there is`)
	if asked != 0 {
		t.Error("a passphrase for nobody was asked for")
	}
	wants(t, Recover(t.Context(), path, "alice", choose("short", nil)), writ.Invalid, "the passphrase is too short; use at least 8 characters")
	gone := errors.New("no terminal")
	if err := Recover(t.Context(), path, "alice", choose("", gone)); !errors.Is(err, gone) {
		t.Errorf("nothing chosen: %v", err)
	}
	f.must(Recover(t.Context(), path, "alice", choose("brand new one", nil)))
	f.reopen(Options{})
	f.guess("brand new one", "")
	f.guess(passphrase, "wrong name or passphrase")
	var got []string
	for _, r := range f.recorded() {
		if strings.HasPrefix(r, "person.recovered") {
			got = append(got, r)
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], `person.recovered by "" {"factor":"store access","person":"alice","uid":`) {
		t.Errorf("recorded: %q", got)
	}
	report, err := f.Ledger().Verify(t.Context(), filepath.Join(f.dir, "state/witness.jsonl"), "")
	if err != nil || !report.OK() {
		t.Errorf("the ledger does not verify: %+v %v", report, err)
	}
}

// A store that is not there is not made.
func TestRecoverNothing(t *testing.T) {
	f := newFixture(t, agentsText, Options{})
	f.write("other.yaml", strings.Replace(agentsText, "$DIR/state", "$DIR/none", 1))
	err := Recover(t.Context(), filepath.Join(f.dir, "other.yaml"), "alice", func() (string, error) { return "brand new one", nil })
	if err == nil || err.Error() != "there is nobody yet; 'writ init' makes the first person" {
		t.Error(err)
	}
	if made, _ := filepath.Glob(filepath.Join(f.dir, "none/*")); len(made) > 0 {
		t.Errorf("it made %v", made)
	}
}
