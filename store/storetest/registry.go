package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// Digests of definitions, the older one first.
var defBefore, defAfter = strings.Repeat("a", 64), strings.Repeat("b", 64)

// registryScene registers: deploy, of class write, whose definition before was
// waived; bare, of class write; lookup, of class none; wipe, dangerous; eased, of
// class write and waived to read_only; easy, waived to none and not dangerous, not yet
// lowered; hard, whose waiver ended. alice is an admin, olga an operator, bob an
// approver.
func registryScene(t *testing.T, db *store.DB) {
	t.Helper()
	olga, bob := alice, alice
	olga.Name, olga.Role, bob.Name, bob.Role = "olga", "operator", "bob", "approver"
	row := func(key, definition, class string, dangerous bool) store.Registered {
		return store.Registered{Key: key, Definition: definition, Class: class, Dangerous: dangerous, Unwaived: class, UnwaivedDangerous: dangerous, Updated: early}
	}
	waive := func(tx *store.Tx, key, definition, class string) error {
		ok, err := tx.AddWaiver(store.Waiver{ID: "of " + key, Tool: key, Definition: definition, Class: class, Reason: "looked at", By: "olga", At: now})
		if err == nil && !ok {
			err = fmt.Errorf("no waiver of %s", key)
		}
		return err
	}
	change(t, db, func(tx *store.Tx) error {
		for _, p := range []store.Person{alice, olga, bob} {
			if _, err := tx.AddPerson(p); err != nil {
				return err
			}
		}
		for _, r := range []store.Registered{row("deploy", defBefore, "write", false), row("lookup", defAfter, "none", false), row("wipe", defAfter, "none", true),
			row("eased", defAfter, "write", false), row("easy", defAfter, "write", true), row("hard", defAfter, "write", false), row("bare", defAfter, "write", false)} {
			if err := tx.Register(r); err != nil {
				return err
			}
		}
		for key, class := range map[string]string{"eased": "read_only", "easy": "none", "hard": "none"} {
			if err := waive(tx, key, defAfter, class); err != nil {
				return err
			}
		}
		if err := waive(tx, "deploy", defBefore, "none"); err != nil {
			return err
		}
		eased := row("eased", defAfter, "read_only", false)
		eased.Unwaived, eased.Updated = "write", now
		if err := tx.Register(eased); err != nil {
			return err
		}
		if ok, err := tx.EndWaiver("of hard", now); !ok || err != nil {
			return fmt.Errorf("end: %v, %v", ok, err)
		}
		return tx.Register(row("deploy", defAfter, "write", false))
	})
}

// guardedAttack is an attack and the triggers that stop it: without them it goes through,
// or at least nobody says that it did not.
type guardedAttack struct {
	Attack
	by string
}

const (
	regKeep, regSteps, regBegin = "tools_registry_keep", "tools_registry_steps", "tools_registry_begin"
	waiverBegin                 = "class_waivers_begin"
	waiverSteps                 = "class_waivers_steps"
	guardOnInsert               = "trg_tools_registry_egress_guard"
	guardOnUpdate               = "trg_tools_registry_egress_guard_update"
	setNone                     = `egress_class = 'none', requires_approval = 0`
	registryColumns             = `(key, definition, egress_class, dangerous, unwaived_class, unwaived_dangerous, requires_approval, registered_at, updated_at)`
	waiverColumns               = `(id, tool_key, definition, egress_class, dangerous, reason, waived_by, waived_at, ended_at)`
	selectNone                  = ` INTO tools_registry ` + registryColumns + ` SELECT key, definition, 'none', 0, 'none', 0, 0, registered_at, updated_at FROM tools_registry WHERE key = 'deploy'`
	ignoreChecks                = `PRAGMA ignore_check_constraints = 1; `
	selectWaiverAsNothing       = ` INTO class_waivers ` + waiverColumns + ` SELECT id, tool_key, definition, 'none', 0, reason, waived_by, waived_at, '' FROM class_waivers WHERE id = `
)

// onTool is an attempt on the class of a tool.
func onTool(key, set string) string {
	return fmt.Sprintf(`UPDATE tools_registry SET %s WHERE key = '%s'`, set, key)
}

// registerNew is a registration under a new key, with what it would be without a waiver.
func registerNew(verb, key, class string, dangerous, needs int, unwaived string, unwaivedDangerous int) string {
	return fmt.Sprintf(`%s INTO tools_registry %s VALUES ('%s', '%s', '%s', %d, '%s', %d, %d, '%s', '%s')`,
		verb, registryColumns, key, defAfter, class, dangerous, unwaived, unwaivedDangerous, needs, now, now)
}

func insertWaiver(id, key, definition, class string, dangerous int, reason, by, ended string) string {
	return fmt.Sprintf(`INSERT INTO class_waivers %s VALUES ('%s', '%s', '%s', '%s', %d, '%s', '%s', '%s', '%s')`,
		waiverColumns, id, key, definition, class, dangerous, reason, by, now, ended)
}

var registryAttacks = []guardedAttack{
	{Attack{"lower a class without a waiver", onTool("bare", setNone)}, regSteps},
	{Attack{"lower a class to read_only", onTool("deploy", `egress_class = 'read_only'`)}, regSteps},
	{Attack{"set class none, then clear the flag", onTool("deploy", `egress_class = 'none'`) + "; " + onTool("deploy", `requires_approval = 0`)}, regSteps},
	{Attack{"lower what it would be without a waiver", onTool("deploy", setNone+`, unwaived_class = 'none'`)}, regSteps},
	{Attack{"lower with a waiver of another definition", onTool("deploy", setNone)}, regSteps},
	{Attack{"lower with a waiver that ended", onTool("hard", setNone)}, regSteps},
	{Attack{"lower below what was waived", onTool("eased", `egress_class = 'none'`)}, regSteps},
	{Attack{"lower less than was waived", onTool("easy", `egress_class = 'read_only', dangerous = 0`)}, regSteps},
	{Attack{"lower the class and leave the danger that was waived", onTool("easy", `egress_class = 'none'`)}, regSteps},
	{Attack{"take the danger away", onTool("wipe", `dangerous = 0, requires_approval = 0`)}, regSteps},
	{Attack{"take the danger away for good", onTool("wipe", `dangerous = 0, unwaived_dangerous = 0, requires_approval = 0`)}, regSteps},
	{Attack{"bring a waived class to another definition", onTool("eased", `definition = '`+defBefore+`'`)}, regSteps},
	{Attack{"bring a waived class to another definition, as its own", onTool("eased", `definition = '`+defBefore+`', unwaived_class = 'read_only'`)}, regSteps},
	{Attack{"rename a tool", onTool("deploy", `key = 'other'`)}, regSteps},
	{Attack{"rename a tool and clear its flag", onTool("deploy", `key = 'other', requires_approval = 0`)}, regSteps},
	{Attack{"rename a harmless tool over another", `UPDATE OR REPLACE tools_registry SET key = 'deploy' WHERE key = 'lookup'`}, regSteps},
	{Attack{"change since when", onTool("deploy", `registered_at = '2020'`)}, regSteps},
	{Attack{"lower it among others", `UPDATE tools_registry SET egress_class = 'none', requires_approval = 0 WHERE key IN ('deploy', 'lookup')`}, regSteps},

	{Attack{"register again as none", `INSERT OR IGNORE` + selectNone}, regBegin},
	{Attack{"replace with none", `INSERT OR REPLACE` + selectNone}, regBegin},
	{Attack{"replace with none, in a word", `REPLACE` + selectNone}, regBegin},
	{Attack{"replace with write, its flag cleared", strings.ReplaceAll(`REPLACE`+selectNone, `'none'`, `'write'`)}, regBegin},
	{Attack{"upsert to none", `INSERT` + selectNone + ` ON CONFLICT (key) DO UPDATE SET egress_class = 'none', unwaived_class = 'none', requires_approval = 0`}, regBegin + " " + regSteps},
	{Attack{"register as waived from the start", registerNew("INSERT", "new", "none", 0, 0, "write", 0)}, regBegin},
	{Attack{"register as not dangerous from the start", registerNew("INSERT", "new", "none", 0, 0, "none", 1)}, regBegin},
	{Attack{"register in other letters as none", registerNew("INSERT", "Deploy", "none", 0, 0, "none", 0)}, regBegin},
	{Attack{"register in other letters as read_only", registerNew("INSERT", "DEPLOY", "read_only", 0, 0, "read_only", 0)}, regBegin},
	{Attack{"register in other letters as harmless", registerNew("INSERT", "Wipe", "none", 0, 0, "none", 0)}, regBegin},
	{Attack{"register a waived tool in other letters", registerNew("INSERT", "Eased", "read_only", 0, 0, "read_only", 0)}, regBegin},
	{Attack{"forget a tool", `DELETE FROM tools_registry WHERE key = 'deploy'`}, regKeep},
	{Attack{"forget all tools", `DELETE FROM tools_registry`}, regKeep},

	{Attack{"a waiver of nobody", insertWaiver("w", "wipe", defAfter, "none", 0, "x", "mallory", "")}, waiverBegin},
	{Attack{"a waiver of somebody who approves", insertWaiver("w", "wipe", defAfter, "none", 0, "x", "bob", "")}, waiverBegin},
	{Attack{"a waiver of a definition that is not registered", insertWaiver("w", "wipe", defBefore, "none", 0, "x", "olga", "")}, waiverBegin},
	{Attack{"a waiver of a tool that is not there", insertWaiver("w", "nothing", defAfter, "none", 0, "x", "olga", "")}, waiverBegin},
	{Attack{"a waiver that raises", insertWaiver("w", "wipe", defAfter, "write", 0, "x", "olga", "")}, waiverBegin},
	{Attack{"a waiver that makes dangerous", insertWaiver("w", "lookup", defAfter, "none", 1, "x", "olga", "")}, waiverBegin},
	{Attack{"a waiver that has ended", insertWaiver("w", "wipe", defAfter, "none", 0, "x", "olga", now)}, waiverBegin},
	{Attack{"a waiver without a reason", ignoreChecks + insertWaiver("w", "wipe", defAfter, "none", 0, "", "olga", "")}, waiverBegin},
	{Attack{"replace a waiver", `REPLACE` + selectWaiverAsNothing + `'of eased'`}, waiverBegin},
	{Attack{"bring a waiver back by replacing it", `REPLACE` + selectWaiverAsNothing + `'of hard'`}, waiverBegin},
	{Attack{"push a waiver out", `INSERT OR REPLACE` + strings.Replace(selectWaiverAsNothing, "SELECT id", "SELECT 'w'", 1) + `'of eased'`}, waiverBegin},
	{Attack{"bring a waiver back", `UPDATE class_waivers SET ended_at = '' WHERE id = 'of hard'`}, waiverSteps},
	{Attack{"change when a waiver ended", `UPDATE class_waivers SET ended_at = '2027' WHERE id = 'of hard'`}, waiverSteps},
	{Attack{"change what was waived", `UPDATE class_waivers SET egress_class = 'none' WHERE id = 'of eased'`}, waiverSteps},
	{Attack{"change what was waived as it ends", `UPDATE class_waivers SET egress_class = 'none', ended_at = '2026-01-03' WHERE id = 'of eased'`}, waiverSteps},
	{Attack{"change who waived", `UPDATE class_waivers SET waived_by = 'alice' WHERE id = 'of eased'`}, waiverSteps},
	{Attack{"change why", `UPDATE class_waivers SET reason = 'forged' WHERE id = 'of eased'`}, waiverSteps},
	{Attack{"pass a waiver to another tool", `UPDATE class_waivers SET tool_key = 'wipe' WHERE id = 'of easy'`}, waiverSteps},
	{Attack{"pass a waiver to another definition", `UPDATE class_waivers SET definition = '` + defAfter + `' WHERE id = 'of deploy'`}, waiverSteps},
	{Attack{"forget a waiver", `DELETE FROM class_waivers WHERE id = 'of hard'`}, "class_waivers_keep"},
}

// registryRewrites are statements that are carried out otherwise than they say: a false is
// made true. Without the trigger the CHECK refuses them.
var registryRewrites = []struct {
	guardedAttack
	key, want string
}{
	{guardedAttack{Attack{"INSERT write,false", registerNew("INSERT", "new", "write", 0, 0, "write", 0)}, guardOnInsert}, "new", "write 0 1"},
	{guardedAttack{Attack{"INSERT dangerous,false", registerNew("INSERT", "new", "none", 1, 0, "none", 1)}, guardOnInsert}, "new", "none 1 1"},
	{guardedAttack{Attack{"INSERT OR REPLACE write,false", registerNew("INSERT OR REPLACE", "new", "write", 0, 0, "write", 0)}, guardOnInsert}, "new", "write 0 1"},
	{guardedAttack{Attack{"INSERT OR IGNORE write,false", registerNew("INSERT OR IGNORE", "new", "write", 0, 0, "write", 0)}, guardOnInsert}, "new", "write 0 1"},
	{guardedAttack{Attack{"UPDATE write,false", onTool("deploy", `requires_approval = 0`)}, guardOnUpdate}, "deploy", "write 0 1"},
	{guardedAttack{Attack{"UPDATE dangerous,false", onTool("wipe", `requires_approval = 0`)}, guardOnUpdate}, "wipe", "none 1 1"},
	{guardedAttack{Attack{"UPDATE none to write,false", onTool("lookup", `egress_class = 'write', unwaived_class = 'write'`)}, guardOnUpdate}, "lookup", "write 0 1"},
	{guardedAttack{Attack{"UPDATE OR REPLACE write,false", `UPDATE OR REPLACE tools_registry SET requires_approval = 0 WHERE key = 'deploy'`}, guardOnUpdate}, "deploy", "write 0 1"},
	{guardedAttack{Attack{"INSERT none,false", registerNew("INSERT", "new", "none", 0, 0, "none", 0)}, ""}, "new", "none 0 0"},
	{guardedAttack{Attack{"lower with the waiver of this definition", onTool("easy", setNone+`, dangerous = 0`)}, ""}, "easy", "none 0 0"},
	{guardedAttack{Attack{"change a waived tool's flag alone", onTool("eased", `requires_approval = 1`)}, ""}, "eased", "read_only 0 1"},
	{guardedAttack{Attack{"raise", onTool("lookup", `egress_class = 'read_only', unwaived_class = 'read_only'`)}, ""}, "lookup", "read_only 0 0"},
	{guardedAttack{Attack{"raise a waived one", onTool("eased", `egress_class = 'write', requires_approval = 1`)}, ""}, "eased", "write 0 1"},
	{guardedAttack{Attack{"register in other letters as no less", registerNew("INSERT", "Deploy", "write", 0, 1, "write", 0)}, ""}, "Deploy", "write 0 1"},
	{guardedAttack{Attack{"waive", insertWaiver("w", "wipe", defAfter, "none", 0, "x", "olga", "")}, ""}, "wipe", "none 1 1"},
	{guardedAttack{Attack{"waive, and lower", insertWaiver("w", "wipe", defAfter, "none", 0, "x", "alice", "") + "; " + onTool("wipe", `dangerous = 0, requires_approval = 0`)}, ""}, "wipe", "none 0 0"},
	{guardedAttack{Attack{"end a waiver", `UPDATE class_waivers SET ended_at = '2026-01-03' WHERE id = 'of eased'`}, ""}, "eased", "write 0 1"},
}

func (e Engine) testRegistry(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	registryScene(t, db)
	for _, a := range registryAttacks {
		if why := e.try(t, dir, a.SQL, ""); why != "" {
			t.Errorf("%s: %s\n%s", a.Name, why, a.SQL)
		}
		if why := e.try(t, dir, a.SQL, a.by); why == "" {
			t.Errorf("%s: refused without %s too, which therefore guards nothing here\n%s", a.Name, a.by, a.SQL)
		}
	}
	for _, r := range registryRewrites {
		if got := e.becomes(t, dir, r.SQL, r.key); got != r.want {
			t.Errorf("%s: %q, want %q\n%s", r.Name, got, r.want, r.SQL)
		}
		if r.by == "" {
			continue
		}
		if why := e.try(t, dir, r.SQL, r.by); why != "" && !strings.Contains(r.SQL, "OR IGNORE") { // which drops the row and says nothing
			t.Errorf("%s: without the trigger the CHECK does not hold: %s\n%s", r.Name, why, r.SQL)
		}
		if got := e.becomes(t, dir, "DROP TRIGGER "+r.by+"; "+ignoreChecks+r.SQL, r.key); got == r.want {
			t.Errorf("%s: happens without trigger and CHECK too, which therefore guard nothing here", r.Name)
		}
	}
	if got := e.becomes(t, dir, `DROP TRIGGER class_waivers_end; UPDATE class_waivers SET ended_at = '2026-01-03' WHERE id = 'of eased'`, "eased"); got != "read_only 0 0" {
		t.Errorf("without its trigger a waiver that ends leaves %q", got)
	}
	e.registryQueries(t, db)
}

// try runs a statement in a transaction that is rolled back, after dropping triggers.
// It returns "" when the statement was refused and changed nothing.
func (e Engine) try(t *testing.T, dir, text, drop string) (why string) {
	t.Helper()
	e.alone(t, dir, func(c *sql.Conn, exec func(string) error) {
		for _, name := range strings.Fields(drop) {
			if err := exec("DROP TRIGGER " + name); err != nil {
				t.Fatal(err)
			}
		}
		was := registryRows(t, c)
		err := exec(text)
		switch is := registryRows(t, c); {
		case is != was:
			why = fmt.Sprintf("went through (%v)", err)
		case err == nil:
			why = "changed nothing and did not say so"
		}
	})
	return why
}

// becomes is what a tool is after a statement: its class, whether it is dangerous,
// and whether it needs an approval.
func (e Engine) becomes(t *testing.T, dir, text, key string) (got string) {
	t.Helper()
	e.alone(t, dir, func(c *sql.Conn, exec func(string) error) {
		if err := exec(text); err != nil {
			got = err.Error()
			return
		}
		var class string
		var dangerous, needs int
		err := c.QueryRowContext(t.Context(), `SELECT egress_class, dangerous, requires_approval FROM tools_registry WHERE key = $1`, key).Scan(&class, &dangerous, &needs)
		if err != nil {
			t.Fatal(err)
		}
		got = fmt.Sprintf("%s %d %d", class, dangerous, needs)
	})
	return got
}

// alone runs f on a connection of its own, whose changes are undone.
func (e Engine) alone(t *testing.T, dir string, f func(*sql.Conn, func(string) error)) {
	t.Helper()
	raw := e.Raw(t, dir)
	defer raw.Close()
	c, err := raw.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exec := func(text string) error {
		_, err := c.ExecContext(context.Background(), text)
		return err
	}
	if err := exec("BEGIN"); err != nil {
		t.Fatal(err)
	}
	f(c, exec)
	if err := exec("ROLLBACK"); err != nil {
		t.Error(err)
	}
}

func registryRows(t *testing.T, c *sql.Conn) (out string) {
	t.Helper()
	for table, columns := range map[string]int{"tools_registry": 9, "class_waivers": 9} {
		rows, err := c.QueryContext(t.Context(), "SELECT * FROM "+table+" ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for rows.Next() {
			cells, into := make([]any, columns), make([]any, columns)
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			text = append(text, fmt.Sprintf("%s %q", table, cells))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if table == "tools_registry" {
			out = strings.Join(text, "\n") + out
		} else {
			out += strings.Join(text, "\n")
		}
	}
	return out
}

// registryQueries tries the queries on the scene.
func (e Engine) registryQueries(t *testing.T, db *store.DB) {
	t.Helper()
	all, err := db.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row := func(key, class string, dangerous bool, unwaived string, needs bool, updated string) store.Registered {
		return store.Registered{Key: key, Definition: defAfter, Class: class, Dangerous: dangerous, Unwaived: unwaived, UnwaivedDangerous: dangerous,
			RequiresApproval: needs, Registered: early, Updated: updated}
	}
	want := []store.Registered{
		row("bare", "write", false, "write", true, early),
		row("deploy", "write", false, "write", true, early),
		row("eased", "read_only", false, "write", false, now),
		row("easy", "write", true, "write", true, early),
		row("hard", "write", false, "write", true, early),
		row("lookup", "none", false, "none", false, early),
		row("wipe", "none", true, "none", true, early),
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	waivers, err := db.Waivers(t.Context())
	if err != nil || len(waivers) != 4 || waivers[2].ID != "of easy" {
		t.Errorf("%v %+v", err, waivers)
	}
	again := waivers[2]
	again.ID = "again"
	if try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddWaiver(again) }) {
		t.Error("a definition has two live waivers")
	}
	for _, id := range []string{"of hard", "nothing"} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndWaiver(id, late) }) {
			t.Errorf("waiver %q ended", id)
		}
	}
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndWaiver("of easy", late) }) {
		t.Error("a live waiver did not end")
	}
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddWaiver(again) }) {
		t.Error("a definition whose waiver ended takes no other")
	}
}
