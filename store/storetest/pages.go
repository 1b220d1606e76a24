package storetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/writ-run/writ/store"
)

// Pages come in one order, without gap or repeat, and say of a request that is over
// that it expired.
func (e Engine) testPages(t *testing.T) {
	db := e.open(t, t.TempDir())
	scene(t, db)
	entries, err := db.EntriesBefore(t.Context(), 0, 2)
	if err != nil || len(entries) != 2 || entries[0].Seq != 3 || entries[1].Seq != 2 {
		t.Errorf("the newest entries: %+v %v", entries, err)
	}
	if entries, err = db.EntriesBefore(t.Context(), 2, 2); err != nil || len(entries) != 1 || entries[0].Seq != 1 {
		t.Errorf("the entries before: %+v %v", entries, err)
	}
}

// At now, what each word of store.States chooses where there is one of every life.
var chosen = map[string][]string{
	"pending":   {"two", "voted", "pending"},
	"running":   {"running", "released", "held", "claimed", "approved"},
	"completed": {"done", "completed"},
	"failed":    {"failed"},
	"rejected":  {"rejected"},
	"expired":   {"lapsed", "expired"},
	"cancelled": {"lapsed", "withdrawn", "void", "stopped"},
	"unknown":   {"unknown"},
	"denied":    {"denied"},
	"asked":     {"released", "held", "two", "lapsed", "withdrawn", "void", "expired", "rejected", "unknown", "stopped", "failed", "completed", "claimed", "approved", "voted", "pending"},
	"approved":  {"approved"},
	"used":      {"released", "held", "unknown", "stopped", "failed", "completed", "claimed"},
	"void":      {"withdrawn", "void"},
}

// testStates lists invocations by every word, in pages of every size.
func (e Engine) testStates(t *testing.T) {
	db := e.open(t, t.TempDir())
	life(t, db)
	if have, want := slices.Sorted(maps.Keys(store.States)), slices.Sorted(maps.Keys(chosen)); !slices.Equal(have, want) {
		t.Errorf("states %v, want %v", have, want)
	}
	all := []string{"denied", "done", "running", "released", "held", "two", "lapsed", "withdrawn", "void", "expired", "rejected", "unknown", "stopped", "failed", "completed",
		"claimed", "approved", "voted", "pending"}
	lists := func(of store.InvocationsOf, want []string) {
		t.Helper()
		for _, size := range []int{1, 2, 3, 100} {
			if got := turn(t, db, of, size); !slices.Equal(got, want) {
				t.Errorf("%+v, %d to a page: %v, want %v", of, size, got, want)
			}
		}
	}
	lists(store.InvocationsOf{Now: now}, all)
	for state, want := range chosen {
		lists(store.InvocationsOf{Now: now, State: state}, want)
	}
	lists(store.InvocationsOf{Now: now, Agent: "gone"}, []string{"void"})
	lists(store.InvocationsOf{Now: now, Agent: "gone", State: "void"}, []string{"void"})
	lists(store.InvocationsOf{Now: now, Agent: "gone", State: "pending"}, nil)
	lists(store.InvocationsOf{Now: now, Agent: "%"}, nil)
	lists(store.InvocationsOf{Now: now, Agent: "x' OR '1'='1"}, nil)
	for state, want := range map[string][]string{ // after their time, before anybody swept
		"pending":  nil,
		"approved": nil,
		"expired":  {"released", "two", "lapsed", "expired", "approved", "voted", "pending"},
		"running":  chosen["running"],
		"void":     chosen["void"],
	} {
		lists(store.InvocationsOf{Now: late, State: state}, want)
	}
}

// turn turns all pages of a list.
func turn(t *testing.T, db *store.DB, of store.InvocationsOf, size int) (ids []string) {
	t.Helper()
	before := int64(0)
	for {
		page, err := db.InvocationsBefore(t.Context(), of, before, size)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page {
			if i.Sealed != nil {
				t.Errorf("%s shows what it sealed", i.ID)
			}
			ids = append(ids, i.ID)
			before = i.N
		}
		if len(page) < size {
			return ids
		}
	}
}
