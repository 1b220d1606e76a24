package storetest

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// peopleAttacks must change nothing where alice and amy are admins and bob is an
// approver. An engine that does not know REPLACE refuses the word.
var peopleAttacks = []Attack{
	{"remove somebody", `DELETE FROM people WHERE name = 'bob'`},
	{"remove everybody", `DELETE FROM people`},
	{"rename somebody", `UPDATE people SET name = 'mallory' WHERE name = 'bob'`},
	{"rename onto an admin", `UPDATE people SET name = 'alice' WHERE name = 'bob'`},
	{"rename over an admin", `UPDATE OR REPLACE people SET name = 'alice' WHERE name = 'bob'`},
	{"change since when", `UPDATE people SET created_at = '2020' WHERE name = 'bob'`},
	{"change since when, with a role", `UPDATE people SET created_at = '2020', role = 'viewer' WHERE name = 'bob'`},
	{"take every admin's role at once", `UPDATE people SET role = 'viewer'`},
	{"take both admins' roles", `UPDATE people SET role = 'approver' WHERE role = 'admin'`},
	{"invent a role", `UPDATE people SET role = 'root' WHERE name = 'bob'`},
	{"no role", `UPDATE people SET role = '' WHERE name = 'bob'`},
	{"a null role", `UPDATE people SET role = NULL WHERE name = 'bob'`},
	{"a passphrase in the clear", `UPDATE people SET passphrase = 'hunter22' WHERE name = 'bob'`},
	{"no passphrase", `UPDATE people SET passphrase = '' WHERE name = 'bob'`},
	{"add without a role", insertPerson("carol", "''", "'$argon2id$x'")},
	{"add with a null role", insertPerson("carol", "NULL", "'$argon2id$x'")},
	{"add with a role that is none", insertPerson("carol", "'root'", "'$argon2id$x'")},
	{"add without a name", insertPerson("", "'viewer'", "'$argon2id$x'")},
	{"add without a passphrase", insertPerson("carol", "'viewer'", "''")},
	{"add again", insertPerson("bob", "'admin'", "'$argon2id$x'")},
	{"upsert a role", insertPerson("bob", "'admin'", "'$argon2id$x'") + ` ON CONFLICT (name) DO UPDATE SET role = excluded.role`},
	{"replace somebody", `REPLACE INTO people SELECT name, 'admin', passphrase, created_at FROM people WHERE name = 'bob'`},
	{"replace an admin", `INSERT OR REPLACE INTO people SELECT name, 'viewer', passphrase, created_at FROM people WHERE name = 'alice'`},
	{"replace everybody", `REPLACE INTO people SELECT name, 'viewer', '$argon2id$x', '2020' FROM people`},
	{"ignore the checks and invent a role", `PRAGMA ignore_check_constraints = 1; UPDATE people SET role = 'root' WHERE name = 'bob'`},
	{"ignore the checks and add without a role", `PRAGMA ignore_check_constraints = 1; ` + insertPerson("carol", "''", "'$argon2id$x'")},
	{"ignore the checks and keep a passphrase in the clear", `PRAGMA ignore_check_constraints = 1; UPDATE people SET passphrase = 'hunter22' WHERE name = 'bob'`},
}

// lastAdminAttacks must change nothing where alice alone is an admin.
var lastAdminAttacks = []Attack{
	{"demote the last admin", `UPDATE people SET role = 'operator' WHERE name = 'alice'`},
	{"demote and reset the last admin", `UPDATE people SET role = 'viewer', passphrase = '$argon2id$x' WHERE name = 'alice'`},
	{"demote everybody", `UPDATE people SET role = 'viewer'`},
	{"remove the last admin", `DELETE FROM people WHERE role = 'admin'`},
	{"replace the last admin", `REPLACE INTO people SELECT name, 'viewer', passphrase, created_at FROM people WHERE name = 'alice'`},
}

var peopleControls = []Attack{
	{"give a role", `UPDATE people SET role = 'operator' WHERE name = 'bob'`},
	{"take a role that decides", `UPDATE people SET role = 'viewer' WHERE name = 'bob'`},
	{"demote one of two admins", `UPDATE people SET role = 'viewer' WHERE name = 'alice'`},
	{"replace a passphrase", `UPDATE people SET passphrase = '$argon2id$new' WHERE name = 'bob'`},
	{"add", insertPerson("carol", "'viewer'", "'$argon2id$x'")},
}

func insertPerson(name, role, passphrase string) string {
	return fmt.Sprintf(`INSERT INTO people (name, role, passphrase, created_at) VALUES ('%s', %s, %s, '2026-01-02')`, name, role, passphrase)
}

func (e Engine) testPeopleGuards(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	e.attackPeople(t, dir, Attack{"a first person who is no admin", insertPerson("bob", "'viewer'", "'$argon2id$x'")})
	bob, amy := alice, alice
	bob.Name, bob.Role, amy.Name = "bob", "approver", "amy"
	for _, p := range []store.Person{alice, amy, bob} {
		if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddPerson(p) }) {
			t.Fatalf("%s was not added", p.Name)
		}
	}
	for _, a := range peopleAttacks {
		e.attackPeople(t, dir, a)
	}
	for _, c := range peopleControls {
		raw := e.Raw(t, dir)
		tx, err := raw.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := tx.ExecContext(t.Context(), c.SQL); err != nil {
			t.Errorf("control %s: %v", c.Name, err)
		} else if n, _ := res.RowsAffected(); n != 1 {
			t.Errorf("control %s changed %d rows", c.Name, n)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	e.changePeople(t, db, amy, bob)
	for _, a := range lastAdminAttacks {
		e.attackPeople(t, dir, a)
	}
}

// changePeople tries the queries, and leaves alice the only admin.
func (e Engine) changePeople(t *testing.T, db *store.DB, amy, bob store.Person) {
	t.Helper()
	for _, step := range []struct {
		name string
		want bool
		f    func(*store.Tx) (bool, error)
	}{
		{"add somebody who is there", false, func(tx *store.Tx) (bool, error) { return tx.AddPerson(bob) }},
		{"add somebody who is there in other letters", false, func(tx *store.Tx) (bool, error) {
			loud := bob
			loud.Name = "Bob"
			return tx.AddPerson(loud)
		}},
		{"give nobody a role", false, func(tx *store.Tx) (bool, error) { return tx.SetRole("nobody", "viewer") }},
		{"give the same role", false, func(tx *store.Tx) (bool, error) { return tx.SetRole("bob", "approver") }},
		{"give nobody a passphrase", false, func(tx *store.Tx) (bool, error) { return tx.SetPassphrase("nobody", "$argon2id$new") }},
		{"give a passphrase", true, func(tx *store.Tx) (bool, error) { return tx.SetPassphrase("bob", "$argon2id$new") }},
		{"demote one of two admins", true, func(tx *store.Tx) (bool, error) { return tx.SetRole("amy", "viewer") }},
		{"demote the last admin", false, func(tx *store.Tx) (bool, error) { return tx.SetRole("alice", "operator") }},
		{"give another role", true, func(tx *store.Tx) (bool, error) { return tx.SetRole("bob", "operator") }},
		{"find somebody as they are", true, func(tx *store.Tx) (bool, error) {
			p, found, err := tx.Person("bob")
			return found && p.Role == "operator" && p.Passphrase == "$argon2id$new" && p.Created == early, err
		}},
		{"find nobody", false, func(tx *store.Tx) (bool, error) { _, found, err := tx.Person("nobody"); return found, err }},
	} {
		if got := try(t, db, step.f); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
	amy.Role, bob.Role, bob.Passphrase = "viewer", "operator", "$argon2id$new"
	want := []store.Person{alice, amy, bob}
	if got, err := db.People(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
}

// attackPeople is attack, for the table of people.
func (e Engine) attackPeople(t *testing.T, dir string, a Attack) {
	t.Helper()
	raw := e.Raw(t, dir)
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	before := peopleRows(t, raw)
	if _, err := raw.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err := raw.ExecContext(t.Context(), a.SQL)
	switch after := peopleRows(t, raw); {
	case after != before:
		t.Errorf("%s: went through (%v)\n%s", a.Name, err, a.SQL)
	case err == nil:
		t.Errorf("%s: changed nothing and did not say so\n%s", a.Name, a.SQL)
	}
	if _, err := raw.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
}

func peopleRows(t *testing.T, raw *sql.DB) (out string) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), `SELECT name, role, passphrase, created_at FROM people ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p store.Person
		if err := rows.Scan(&p.Name, &p.Role, &p.Passphrase, &p.Created); err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintf("%+v\n", p)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
