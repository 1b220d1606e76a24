package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/wire"
)

// Credentials are what a person proves themselves with.
type Credentials struct {
	Name       string `json:"name"`
	Passphrase string `json:"passphrase"`
}

// may says which roles may decide what.
var may = map[string][]string{
	"approve": {"approver", "admin"},
	"operate": {"operator", "admin"},
	"rate":    {"approver", "operator", "admin"},
	"admin":   {"admin"},
	"self":    person.Roles, // one's own passphrase
}

// person authenticates somebody for an act, and returns their name. Failures are
// written down: guessing leaves traces.
func (e *Engine) person(ctx context.Context, cred Credentials, act string) (string, error) {
	p, err := e.proven(ctx, cred, act)
	return p.Name, err
}

// proven is person, with all that was known of them when they were checked: what
// changes people is checked once more when it commits, see still.
func (e *Engine) proven(ctx context.Context, cred Credentials, act string) (store.Person, error) {
	if err := e.people.Resume(func() (map[string]person.Failure, error) { return e.failures(ctx) }); err != nil {
		return store.Person{}, err
	}
	all, err := e.store.People(ctx)
	if err != nil {
		return store.Person{}, err
	}
	if len(all) == 0 {
		return store.Person{}, writ.Fail(writ.Unauthenticated, "nobody can decide yet; 'writ init' makes the first person", nil)
	}
	if cred.Name == "" && len(all) > 1 {
		return store.Person{}, writ.Fail(writ.Unauthenticated, "there are several people; say who you are, with --as NAME", nil)
	}
	if cred.Name == "" {
		cred.Name = all[0].Name
	}
	var found store.Person
	for _, p := range all {
		if p.Name == cred.Name {
			found = p
		}
	}
	failed, err := e.people.Check(cred.Name, found.Passphrase, cred.Passphrase)
	if err != nil {
		data := []wire.Field{wire.Str("act", act), wire.Bool("known", found.Name != ""), wire.Int("failed", int64(failed)), wire.Bool("early", errors.Is(err, person.ErrEarly))}
		if err := e.ledger.Append(ctx, ledger.Entry{Kind: "person.refused", Person: found.Name, Data: data}); err != nil {
			return store.Person{}, err
		}
		return store.Person{}, err
	}
	if failed > 0 { // so that a restart does not take up what is over
		if err := e.ledger.Append(ctx, ledger.Entry{Kind: "person.admitted", Person: found.Name, Data: []wire.Field{wire.Str("act", act), wire.Int("failed", int64(failed))}}); err != nil {
			return store.Person{}, err
		}
	}
	if !slices.Contains(may[act], found.Role) {
		return store.Person{}, writ.Fail(writ.Denied, fmt.Sprintf("%s has the role %s, and this takes %s; an admin changes it with 'writ person role %s ROLE'",
			found.Name, found.Role, strings.Join(may[act], " or "), found.Name), nil)
	}
	return found, nil
}

// still refuses an act that commits after whoever does it lost the role, or the
// passphrase they proved themselves with. It changes nothing.
func still(tx *store.Tx, p store.Person, act string) error {
	now, found, err := tx.Person(p.Name)
	if err != nil {
		return err
	}
	if !found || now.Passphrase != p.Passphrase || !slices.Contains(may[act], now.Role) {
		return writ.Fail(writ.Denied, fmt.Sprintf("the role or the passphrase of %s was changed meanwhile, so nothing was done; 'writ person list' shows who is what", p.Name), nil)
	}
	return nil
}

// failures are the wrong passphrases that the ledger knows of and no right one, nor
// a new one, came after.
func (e *Engine) failures(ctx context.Context) (map[string]person.Failure, error) {
	entries, err := e.store.AboutPeople(ctx, e.now().Add(-person.Window).UTC().Format(ledger.TimeFormat))
	if err != nil {
		return nil, err
	}
	out := map[string]person.Failure{}
	for _, entry := range entries {
		var body struct {
			Person string
			Data   struct {
				Person string
				Failed int
				Early  bool
			}
		}
		if err := json.Unmarshal([]byte(entry.Body), &body); err != nil {
			return nil, fmt.Errorf("entry %d of the ledger does not read: %w", entry.Seq, err)
		}
		at, err := time.Parse(ledger.TimeFormat, entry.At)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the ledger has no time: %w", entry.Seq, err)
		}
		switch d := body.Data; entry.Kind {
		case "person.refused":
			// Guesses made at once may be written down out of order.
			if body.Person != "" && !d.Early && d.Failed > out[body.Person].InARow {
				out[body.Person] = person.Failure{InARow: d.Failed, Last: at}
			}
		case "person.admitted":
			delete(out, body.Person)
		case "person.passphrase", "person.recovered":
			delete(out, d.Person)
		}
	}
	return out, nil
}

// People lists who can decide: names and roles.
func (e *Engine) People(ctx context.Context) ([]store.Person, error) { return e.store.People(ctx) }

// AddFirstPerson makes the first person, an admin. Later ones are made by people.
func (e *Engine) AddFirstPerson(ctx context.Context, cred Credentials) error {
	p, err := e.newPerson(NewPerson{Name: cred.Name, Role: "admin", Passphrase: cred.Passphrase})
	if err != nil {
		return err
	}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.AddFirstPerson(p)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, "the first person is there already; an admin adds others with 'writ person add NAME ROLE'", nil)
		}
		return about("person.added", p.Name, p.Name, wire.Str("role", p.Role), wire.Bool("first", true)), err
	})
}

// NewPerson is somebody to add. The passphrase is the one they chose themselves.
type NewPerson struct{ Name, Role, Passphrase string }

// newPerson is somebody as they will be kept.
func (e *Engine) newPerson(n NewPerson) (store.Person, error) {
	if !config.ValidName(n.Name) {
		return store.Person{}, writ.Fail(writ.Invalid, "a person's name has letters, digits, _ . and -, at most 64", nil)
	}
	if err := knownRole(n.Role); err != nil {
		return store.Person{}, err
	}
	hash, err := person.Hash(n.Passphrase)
	return store.Person{Name: n.Name, Role: n.Role, Passphrase: hash, Created: e.ledger.Now()}, err
}

func knownRole(role string) error {
	if slices.Contains(person.Roles, role) {
		return nil
	}
	return writ.Fail(writ.Invalid, fmt.Sprintf("there is no role %q%s; there are %s", role, spell.Hint(role, person.Roles), strings.Join(person.Roles, ", ")), nil)
}

// about is the entry of a change that a person made, with their passphrase, to
// somebody.
func about(kind, by, whom string, more ...wire.Field) ledger.Entry {
	return ledger.Entry{Kind: kind, Person: by, Data: append(more, wire.Str("person", whom), wire.Str("factor", "passphrase"))}
}

func noPerson(name string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no person %q; 'writ person list' shows who there is", name), nil)
}

// AddPerson adds somebody. It takes an admin.
func (e *Engine) AddPerson(ctx context.Context, n NewPerson, cred Credentials) error {
	by, err := e.proven(ctx, cred, "admin")
	if err != nil {
		return err
	}
	p, err := e.newPerson(n)
	if err != nil {
		return err
	}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, "admin"); err != nil {
			return ledger.Entry{}, err
		}
		ok, err := tx.AddPerson(p)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, fmt.Sprintf("%s is there already, perhaps in other letters ('writ person list' shows who there is); 'writ person role NAME ROLE' changes a role", p.Name), nil)
		}
		return about("person.added", by.Name, p.Name, wire.Str("role", p.Role)), err
	})
}

// SetRole gives somebody another role. It takes an admin, and the last admin stays
// one: nobody could make another.
func (e *Engine) SetRole(ctx context.Context, name, role string, cred Credentials) error {
	if err := knownRole(role); err != nil {
		return err
	}
	by, err := e.proven(ctx, cred, "admin")
	if err != nil {
		return err
	}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, "admin"); err != nil {
			return ledger.Entry{}, err
		}
		before, found, err := tx.Person(name)
		if err == nil && !found {
			err = noPerson(name)
		}
		if err == nil && before.Role == role {
			err = writ.Fail(writ.Conflict, fmt.Sprintf("%s has the role %s already; nothing was changed", name, role), nil)
		}
		if err != nil {
			return ledger.Entry{}, err
		}
		ok, err := tx.SetRole(name, role)
		if err == nil && !ok {
			err = writ.Fail(writ.Conflict, fmt.Sprintf("%s is the last admin, and without one nobody could make another; first: writ person role SOMEBODY admin", name), nil)
		}
		return about("person.role", by.Name, name, wire.Str("from", before.Role), wire.Str("role", role)), err
	})
}

// SetPassphrase replaces a passphrase: one's own, proven with the old one, or as an
// admin somebody else's.
func (e *Engine) SetPassphrase(ctx context.Context, name, passphrase string, cred Credentials) error {
	act := "admin"
	if cred.Name == name {
		act = "self"
	}
	by, err := e.proven(ctx, cred, act)
	if err != nil {
		return err
	}
	if by.Name == name && passphrase == cred.Passphrase {
		return writ.Fail(writ.Invalid, "that is the passphrase you have; choose another", nil)
	}
	hash, err := person.Hash(passphrase)
	if err != nil {
		return err
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, act); err != nil {
			return ledger.Entry{}, err
		}
		ok, err := tx.SetPassphrase(name, hash)
		if err == nil && !ok {
			err = noPerson(name)
		}
		return about("person.passphrase", by.Name, name, wire.Bool("own", by.Name == name)), err
	})
	if err == nil {
		e.people.Forget(name)
	}
	return err
}

// Recover sets a lost passphrase anew without the old one. What stands for it is
// access to the store's files, and to the store alone: it takes the store's lock, so
// that no daemon runs, and nobody gets here through one. choose is asked once it is
// clear that name is there. The error is store.ErrLocked while a daemon runs.
func Recover(ctx context.Context, path, name string, choose func() (string, error)) (err error) {
	cfg, err := catalog.Config(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.StatePath, sqlite.Name)); errors.Is(err, os.ErrNotExist) {
		return errors.New("there is nobody yet; 'writ init' makes the first person")
	}
	db, err := sqlite.Open(ctx, cfg.StatePath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	people, err := db.People(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(people, func(p store.Person) bool { return p.Name == name }) {
		return noPerson(name)
	}
	passphrase, err := choose()
	if err != nil {
		return err
	}
	hash, err := person.Hash(passphrase)
	if err != nil {
		return err
	}
	keys, err := loadKeys(filepath.Join(cfg.StatePath, "keys"))
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, db, ledger.Options{Key: keys.sign, Witness: cfg.Witness})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.SetPassphrase(name, hash)
		if err == nil && !ok {
			err = noPerson(name)
		}
		// Nobody proved to be a person, so none is named as the one who did it.
		return ledger.Entry{Kind: "person.recovered", Data: []wire.Field{
			wire.Str("person", name), wire.Str("factor", "store access"), wire.Int("uid", int64(os.Getuid())),
		}}, err
	})
}
