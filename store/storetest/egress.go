package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// left is what the suite's boxes did outside, the oldest first.
var left = []store.Egress{
	{At: early, Call: "call-a", Agent: "coder", Kind: "dns", Host: "ok.example", Verdict: "allowed", Rule: "egress[0]"},
	{At: early, Call: "call-a", Agent: "coder", Kind: "connect", Host: "ok.example:443", Address: "192.0.2.1:443", Verdict: "allowed", Rule: "egress[0]", Sent: 512, Received: math.MaxInt64, Micros: 1500},
	{At: now, Call: "call-a", Agent: "coder", Kind: "dns", Host: "bad.example", Verdict: "host_not_allowed", Rule: "bad.example:443"},
	{At: now, Call: "call-b", Agent: "coder", Kind: "connect", Host: "in.example:443", Verdict: "address_not_open", Class: "private", Rule: "egress[1]", Detail: "10.0.0.1"},
	{At: noon, Call: "", Agent: "other", Kind: "connect", Host: "ok.example:443", Address: "[2001:db8::1]:443", Verdict: "allowed", Rule: "egress[0]", Sent: 1, Received: 2, Micros: 3},
	{At: noon, Call: "call-c", Agent: "other", Kind: "http", Host: "ok.example:80\x1b[2J", Verdict: "method_refused", Rule: "egress[2]", Detail: "POST"},
}

// leaving adds them, in two transactions.
func leaving(t *testing.T, db *store.DB) {
	t.Helper()
	change(t, db, func(tx *store.Tx) error { return tx.AddEgress(left[:2]) })
	change(t, db, func(tx *store.Tx) error { return tx.AddEgress(left[2:]) })
}

// testEgress lists what left boxes by every filter, both ways, in pages of every size.
func (e Engine) testEgress(t *testing.T) {
	db := e.open(t, t.TempDir())
	leaving(t, db)
	for _, row := range []struct {
		of   store.EgressOf
		want []int64
	}{
		{store.EgressOf{}, []int64{1, 2, 3, 4, 5, 6}},
		{store.EgressOf{Call: "call-a"}, []int64{1, 2, 3}},
		{store.EgressOf{Agent: "coder"}, []int64{1, 2, 3, 4}},
		{store.EgressOf{Refused: true}, []int64{3, 4, 6}},
		{store.EgressOf{Call: "call-a", Refused: true}, []int64{3}},
		{store.EgressOf{Agent: "other", Refused: true}, []int64{6}},
		{store.EgressOf{Call: "call-b", Agent: "coder"}, []int64{4}},
		{store.EgressOf{Call: "call-b", Agent: "other"}, nil},
		{store.EgressOf{Call: "call-c", Agent: "other", Refused: true}, []int64{6}},
		{store.EgressOf{Call: "call"}, nil},
		{store.EgressOf{Agent: "%"}, nil},
		{store.EgressOf{Call: "x' OR '1'='1"}, nil},
	} {
		for _, size := range []int{1, 2, 3, 100} {
			forward := egressPages(t, size, func(at int64) ([]store.Egress, error) { return db.EgressAfter(t.Context(), row.of, at, size) })
			back := egressPages(t, size, func(at int64) ([]store.Egress, error) { return db.EgressBefore(t.Context(), row.of, at, size) })
			if slices.Reverse(back); !slices.Equal(forward, row.want) || !slices.Equal(back, row.want) {
				t.Errorf("%+v, %d to a page: %v forward, %v back, want %v", row.of, size, forward, back, row.want)
			}
		}
	}
	want := slices.Clone(left)
	for i := range want {
		want[i].N = int64(i + 1)
	}
	got, err := db.EgressAfter(t.Context(), store.EgressOf{}, 0, 100)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("they are not as they were added: %v\n%s", err, diff)
	}
	e.halfEgress(t, db)
}

// egressPages turns all pages of a list.
func egressPages(t *testing.T, size int, turn func(at int64) ([]store.Egress, error)) (ns []int64) {
	t.Helper()
	for at := int64(0); ; {
		page, err := turn(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			ns, at = append(ns, e.N), e.N
		}
		if len(page) < size {
			return ns
		}
	}
}

// halfEgress: where one of several cannot be kept, none is.
func (e Engine) halfEgress(t *testing.T, db *store.DB) {
	t.Helper()
	write := e.Writer(t, db)
	bad := left[0]
	bad.Sent = -1
	if err := write(func(tx *store.Tx) error { return tx.AddEgress([]store.Egress{left[0], bad}) }); err == nil {
		t.Error("bytes below zero were taken")
	}
	if err := write(func(tx *store.Tx) error { return tx.AddEgress(left[:1]) }); err != nil {
		t.Errorf("control: %v", err)
	}
	if got, err := db.EgressAfter(t.Context(), store.EgressOf{}, 6, 100); err != nil || len(got) != 1 || got[0].N != 7 {
		t.Errorf("then there is %+v, %v", got, err)
	}
}

const egressInsert, egressUpdate, egressDelete = "egress_append_only_insert", "egress_append_only_update", "egress_append_only_delete"

// insertEgress is one more, as n; the rest is the values from host on.
func insertEgress(verb, n, at, kind, verdict, counts string) string {
	return fmt.Sprintf(`%s INTO egress_events (n, at, call, agent, kind, host, address, verdict, address_class, rule, detail, sent, received, micros)
		VALUES (%s, '%s', 'forged', 'coder', '%s', 'h', '', '%s', '', '', '', %s)`, verb, n, at, kind, verdict, counts)
}

// egressAttacks must change nothing where left is in the store; without their guard each
// goes through.
var egressAttacks = []guardedAttack{
	{Attack{"let a refusal pass", `UPDATE egress_events SET verdict = 'allowed' WHERE n = 3`}, egressUpdate},
	{Attack{"put it on another call", `UPDATE egress_events SET call = 'other' WHERE n = 2`}, egressUpdate},
	{Attack{"make it less", `UPDATE egress_events SET sent = 0`}, egressUpdate},
	{Attack{"edit or ignore", `UPDATE OR IGNORE egress_events SET host = 'x' WHERE n = 2`}, egressUpdate},
	{Attack{"move one by its row", `UPDATE egress_events SET rowid = 99 WHERE n = 2`}, egressUpdate},
	{Attack{"move one over another", `UPDATE OR REPLACE egress_events SET n = 1 WHERE n = 2`}, egressUpdate},
	{Attack{"past a temporary trigger", `CREATE TEMP TRIGGER mine AFTER UPDATE ON egress_events BEGIN SELECT RAISE(IGNORE); END; UPDATE egress_events SET sent = 0 WHERE n = 2`}, egressUpdate},
	{Attack{"forget one", `DELETE FROM egress_events WHERE n = 3`}, egressDelete},
	{Attack{"forget the last", `DELETE FROM egress_events WHERE n = 6`}, egressDelete},
	{Attack{"forget all", `DELETE FROM egress_events`}, egressDelete},
	{Attack{"replace one", insertEgress("REPLACE", "3", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"replace the last", insertEgress("INSERT OR REPLACE", "6", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"replace without recursion", `PRAGMA recursive_triggers = 0; ` + insertEgress("REPLACE", "1", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"add again or ignore", insertEgress("INSERT OR IGNORE", "3", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"upsert", insertEgress("INSERT", "3", now, "dns", "allowed", "0, 0, 0") + ` ON CONFLICT (n) DO UPDATE SET verdict = 'allowed'`}, egressInsert + " " + egressUpdate},
	{Attack{"leave a gap", insertEgress("INSERT", "9", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"without a number", insertEgress("INSERT", "NULL", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"before the first", ignoreChecks + insertEgress("INSERT", "0", now, "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"at no time", ignoreChecks + insertEgress("INSERT", "7", "", "dns", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"of no kind", ignoreChecks + insertEgress("INSERT", "7", now, "", "allowed", "0, 0, 0")}, egressInsert},
	{Attack{"without a verdict", ignoreChecks + insertEgress("INSERT", "7", now, "dns", "", "0, 0, 0")}, egressInsert},
	{Attack{"sent below zero", ignoreChecks + insertEgress("INSERT", "7", now, "dns", "allowed", "-1, 0, 0")}, egressInsert},
	{Attack{"received below zero", ignoreChecks + insertEgress("INSERT", "7", now, "dns", "allowed", "0, -1, 0")}, egressInsert},
	{Attack{"in less than no time", ignoreChecks + insertEgress("INSERT", "7", now, "dns", "allowed", "0, 0, -1")}, egressInsert},
}

// egressChecked are what constraints alone refuse, with the guard on INSERT gone.
var egressChecked = []string{
	insertEgress("INSERT", "0", now, "dns", "allowed", "0, 0, 0"),
	insertEgress("INSERT", "7", "", "dns", "allowed", "0, 0, 0"),
	insertEgress("INSERT", "7", now, "", "allowed", "0, 0, 0"),
	insertEgress("INSERT", "7", now, "dns", "", "0, 0, 0"),
	insertEgress("INSERT", "7", now, "dns", "allowed", "-1, 0, 0"),
	insertEgress("INSERT", "7", now, "dns", "allowed", "0, -1, 0"),
	insertEgress("INSERT", "7", now, "dns", "allowed", "0, 0, -1"),
	insertEgress("INSERT", "7", now, "dns", "allowed", "'much', 0, 0"),
}

func (e Engine) testEgressGuards(t *testing.T) {
	dir := t.TempDir()
	leaving(t, e.open(t, dir))
	without := map[string][]guardedAttack{}
	e.refusals(t, dir, "", func(refused func(string) string) {
		for _, a := range egressAttacks {
			if why := refused(a.SQL); why != "" {
				t.Errorf("%s: %s\n%s", a.Name, why, a.SQL)
			}
			without[a.by] = append(without[a.by], a)
		}
		if refused(insertEgress("INSERT", "7", now, "dns", "allowed", "0, 0, 0")) == "" {
			t.Error("control: what comes next is refused")
		}
	})
	for guard, all := range without {
		e.refusals(t, dir, guard, func(refused func(string) string) {
			for _, a := range all {
				if why := refused(a.SQL); why == "" {
					t.Errorf("%s: refused without %s too, which therefore guards nothing here\n%s", a.Name, guard, a.SQL)
				}
			}
		})
	}
	e.refusals(t, dir, egressInsert, func(refused func(string) string) {
		for _, text := range egressChecked {
			if why := refused(text); why != "" {
				t.Errorf("%s without triggers\n%s", why, text)
			}
		}
	})
}
