package storetest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// testSecrets sets, replaces and removes sealed values; what is too short to be sealed
// is none.
func (e Engine) testSecrets(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	sealed := bytes.Repeat([]byte{0, 1, 255}, 12)
	set := func(name string, value []byte) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return tx.SetSecret(store.Secret{Name: name, Set: early, By: "alice"}, value)
		}
	}
	change(t, db, set("b", []byte("another value that was sealed before")))
	change(t, db, set("b", sealed))
	change(t, db, set("a", bytes.Clone(sealed)))
	all, err := db.Secrets(t.Context())
	if diff := cmp.Diff([]store.Secret{{Name: "a", Set: early, By: "alice"}, {Name: "b", Set: early, By: "alice"}}, all); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, found, err := db.Secret(t.Context(), "b"); err != nil || !found || !bytes.Equal(got, sealed) {
		t.Errorf("%x %v %v", got, found, err)
	}
	for _, name := range []string{"", "c", "A", "b' OR '1'='1"} {
		if _, found, err := db.Secret(t.Context(), name); err != nil || found {
			t.Errorf("%q: %v %v", name, found, err)
		}
	}
	change(t, db, func(tx *store.Tx) error {
		for name, want := range map[string]bool{"b": true, "c": false} {
			if ok, err := tx.RemoveSecret(name); err != nil || ok != want {
				t.Errorf("remove %s: %v %v", name, ok, err)
			}
		}
		return nil
	})
	if _, found, _ := db.Secret(t.Context(), "b"); found {
		t.Error("it is still there")
	}
	raw := e.Raw(t, dir)
	const insert = `INSERT INTO secrets (name, sealed, set_at, set_by) VALUES `
	for _, values := range []string{`('x', x'00', 'now', 'me')`, `('x', 'a plain text that is long enough', 'now', 'me')`, `('', zeroblob(40), 'now', 'me')`, `('x', zeroblob(40), '', 'me')`, `('x', zeroblob(40), 'now', '')`, `('x', NULL, 'now', 'me')`} {
		if _, err := raw.Exec(insert + values); err == nil {
			t.Errorf("%s is taken", values)
		}
	}
	if _, err := raw.Exec(insert + `('x', zeroblob(40), 'now', 'me')`); err != nil {
		t.Errorf("the control: %v", err)
	}
}
