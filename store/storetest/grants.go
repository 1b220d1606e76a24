package storetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// granted is a call of deploy that a grant covers.
func granted(name, grant string) store.Invocation {
	i := begun(name)
	i.Tool, i.Class, i.Reads, i.Approval, i.Grant, i.By, i.Decided, i.Expires = "deploy", "write", false, "approved", grant, "alice", now, late
	return i
}

// grantOf is a grant of two calls like the request it comes from.
func grantOf(id string, from store.Invocation) store.Grant {
	return store.Grant{ID: id, Invocation: from.ID, Agent: from.Agent, Tool: from.Tool, Definition: from.Definition, Policy: "policy", Reach: "reach", Class: from.Class,
		Max: 2, Made: now, By: "alice", Expires: late, Sealed: []byte("pattern")}
}

// grants makes one from a request that alice approves.
func grants(t *testing.T, db *store.DB, from store.Invocation, alter func(*store.Grant)) {
	t.Helper()
	add(t, db, from)
	walk(t, db, approves(from.ID))
	g := grantOf("g-"+from.ID, from)
	if alter != nil {
		alter(&g)
	}
	change(t, db, func(tx *store.Tx) error { return tx.AddGrant(g) })
}

// granting adds grants: g-live, used once by the call granted; g-spent; g-revoked;
// g-short, over before now; g-peek, of class read_only; g-moved, of a definition that
// was replaced. And alone, a request that alice approved and no grant came from.
func granting(t *testing.T, db *store.DB) {
	t.Helper()
	moved := request("moved")
	moved.Tool = "moved"
	grants(t, db, request("live"), nil)
	grants(t, db, request("spent"), func(g *store.Grant) { g.Max = 1 })
	grants(t, db, request("revoked"), nil)
	grants(t, db, request("short"), func(g *store.Grant) { g.Made, g.Expires = early, now })
	grants(t, db, reading("peek"), nil)
	grants(t, db, moved, nil)
	add(t, db, request("alone"))
	add(t, db, granted("granted", "g-live"))
	add(t, db, granted("granted-last", "g-spent"))
	walk(t, db, approves("alone"), func(tx *store.Tx) (bool, error) { return tx.RevokeGrant("g-revoked", "alice", now) })
	change(t, db, func(tx *store.Tx) error {
		return tx.Register(store.Registered{Key: "moved", Definition: defBefore, Class: "write", Unwaived: "write", Updated: now})
	})
}

func (e Engine) testGrants(t *testing.T) {
	db := e.open(t, t.TempDir())
	cast(t, db)
	granting(t, db)
	names := func(list []store.Grant, err error) (out []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			out = append(out, g.ID)
		}
		return out
	}
	for _, tt := range []struct {
		agent, tool, at string
		want            []string
	}{
		{"coder", "deploy", now, []string{"g-live"}},
		{"coder", "peek", now, []string{"g-peek"}},
		{"coder", "deploy", early, []string{"g-short", "g-live"}},
		{"coder", "deploy", late, nil},
		{"gone", "deploy", now, nil},
		{"coder", "other", now, nil},
		{"coder", "%", now, nil},
	} {
		if got := names(db.LiveGrants(t.Context(), tt.agent, tt.tool, tt.at)); !slices.Equal(got, tt.want) {
			t.Errorf("live grants of %s for %s at %s: %v, want %v", tt.agent, tt.tool, tt.at, got, tt.want)
		}
	}
	if got, want := names(db.Grants(t.Context())), []string{"g-live", "g-moved", "g-peek", "g-revoked", "g-spent", "g-short"}; !slices.Equal(got, want) {
		t.Errorf("all grants: %v, want %v", got, want)
	}
	want := grantOf("g-revoked", request("revoked"))
	want.Revoked, want.RevokedBy = now, "alice"
	if all, err := db.Grants(t.Context()); err != nil || !cmp.Equal(all[3], want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, all[3]))
	}
	change(t, db, func(tx *store.Tx) error {
		for id, want := range map[string]bool{"g-live": true, "g-spent": false, "g-revoked": false, "g-short": false, "nothing": false} {
			if live, err := tx.GrantLive(id, now); err != nil || live != want {
				t.Errorf("%s is live: %v %v", id, live, err)
			}
		}
		return nil
	})
	for id, want := range map[string]bool{"g-revoked": false, "nothing": false, "g-live": true} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.RevokeGrant(id, "bob", now) }) != want {
			t.Errorf("revoking %s: not %v", id, want)
		}
	}
	change(t, db, func(tx *store.Tx) error { return tx.RevokeGrants("gone", "", now) })
	if got := names(db.LiveGrants(t.Context(), "coder", "peek", now)); len(got) != 1 {
		t.Error("control: somebody else's grants were revoked")
	}
	change(t, db, func(tx *store.Tx) error { return tx.RevokeGrants("*", "", now) })
	if got := names(db.LiveGrants(t.Context(), "coder", "peek", now)); got != nil {
		t.Errorf("everybody's grants were revoked, but %v", got)
	}
}
