package storetest

import (
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
	walk := func(of store.ApprovalsOf) (ids []string) {
		t.Helper()
		requested, id := "", ""
		for {
			page, err := db.ApprovalsBefore(t.Context(), of, requested, id, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page {
				if a.Sealed != nil {
					t.Errorf("%s shows what it sealed", a.ID)
				}
				ids = append(ids, a.ID)
				requested, id = a.Requested, a.ID
			}
			if len(page) < 2 {
				return ids
			}
		}
	}
	for name, tt := range map[string]struct {
		of   store.ApprovalsOf
		want []string
	}{
		"all":                   {store.ApprovalsOf{Now: now}, []string{"void", "used", "rejected", "pending", "expired", "approved"}},
		"of an agent":           {store.ApprovalsOf{Now: now, Agent: "gone"}, []string{"void"}},
		"of nobody":             {store.ApprovalsOf{Now: now, Agent: "%"}, nil},
		"pending":               {store.ApprovalsOf{Now: now, State: "pending"}, []string{"pending"}},
		"pending, after a time": {store.ApprovalsOf{Now: over, State: "pending"}, nil},
		"expired, after a time": {store.ApprovalsOf{Now: over, State: "expired"}, []string{"pending", "expired", "approved"}},
	} {
		if got := walk(tt.of); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
