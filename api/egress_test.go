package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// leaves puts rows into the log, as the engine does.
func (w *world) leaves(rows ...store.Egress) {
	w.t.Helper()
	must(w.t, w.engine.Ledger().Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		return ledger.Entry{Kind: "egress"}, tx.AddEgress(rows)
	}))
}

// What left boxes is listed both ways by every filter, in pages that fit together while
// more is added, with all that is logged and nothing of it changed.
func TestEgress(t *testing.T) {
	w := newWorld(t)
	const at = "2026-01-02T03:04:05.000000006Z"
	hostile := store.Egress{At: at, Call: "call_b", Agent: "other", Kind: "http", Host: "x\x1b[2J\u202e:80", Address: "192.0.2.1:80", Verdict: "method_refused", Class: "public",
		Rule: "egress[0]", Detail: "POST", Sent: 7, Received: 8, Micros: 9}
	for range 3 {
		w.leaves(store.Egress{At: at, Call: "call_a", Agent: "coder", Kind: "dns", Host: "ok.example", Verdict: "allowed"},
			store.Egress{At: at, Call: "call_a", Agent: "coder", Kind: "dns", Host: "no.example", Verdict: "host_not_allowed", Rule: "no.example:443"}, hostile)
	}
	more := func() {
		w.leaves(store.Egress{At: at, Call: "call_later", Agent: "late", Kind: "dns", Host: "late.example", Verdict: "allowed"})
	}
	place := func(e client.Egress) string { return fmt.Sprint(e.N) }
	for _, row := range []struct {
		of   client.EgressOf
		want []string
	}{
		{client.EgressOf{Call: "call_a"}, []string{"1", "2", "4", "5", "7", "8"}},
		{client.EgressOf{Agent: "other"}, []string{"3", "6", "9"}},
		{client.EgressOf{Refused: true}, []string{"2", "3", "5", "6", "8", "9"}},
		{client.EgressOf{Agent: "coder", Call: "call_a", Refused: true}, []string{"2", "5", "8"}},
		{client.EgressOf{Agent: "coder", Call: "call_b"}, nil},
	} {
		for _, n := range []int{1, 2, 1000} {
			forward := pagesOf(t, w.operator.EgressAfter(row.of, 0), n, place, more)
			back := pagesOf(t, w.operator.Egress(row.of), n, place, more)
			if slices.Reverse(back); !slices.Equal(forward, row.want) || !slices.Equal(back, row.want) {
				t.Errorf("%+v by %d: %v forward, %v back, want %v", row.of, n, forward, back, row.want)
			}
		}
	}
	refused, err := w.operator.EgressAfter(client.EgressOf{}, 1).Newest(t.Context(), 1)
	if must(t, err); refused[0].Rule != "" || refused[0].Needs != "no.example:443" {
		t.Errorf("the rule that is missing is not what it needs: %+v", refused[0])
	}
	got, err := w.operator.EgressAfter(client.EgressOf{}, 8).Newest(t.Context(), 1)
	must(t, err)
	hostile.N = 9
	if diff := cmp.Diff([]client.Egress{egressView(hostile)}, got); diff != "" {
		t.Errorf("it is not as it was added:\n%s", diff)
	}
}

// What is wrong with a request for the log is refused by name, and nobody with an agent's
// token gets at it.
func TestEgressRefusals(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/egress"
	of := cursor("ledger", "back", "3")
	for _, row := range []struct{ query, says string }{
		{"?call=", "call is empty; name one, or leave it out to list all"},
		{"?agent=", "agent is empty; name one, or leave it out to list all"},
		{"?verdict=allowed", `verdict: "allowed" is none of refused`},
		{"?verdict=", `verdict: "" is none of refused`},
		{"?after=-1", "after is a whole number from 0 to 9007199254740992"},
		{"?limit=1001", "limit is a whole number from 1 to 1000"},
		{"?host=x", `unknown query parameter "host"; this path takes limit, cursor, call, agent, verdict, after`},
		{"?cursor=" + of, "the cursor is not one that this list gave; leave it out to begin again"},
		{"?cursor=" + cursor("egress", "up", "3"), "the cursor is not one that this list gave; leave it out to begin again"},
		{"?after=1&cursor=" + cursor("egress", "back", "3"), "after and cursor are both given; the cursor holds the place, leave after out"},
	} {
		w.refused(ask{door: operatorDoor, method: "GET", target: path + row.query}, 400, writ.Invalid, row.says)
	}
	w.ok(ask{door: operatorDoor, method: "GET", target: path + "?cursor=" + cursor("egress", "back", "3")})
	w.refused(ask{door: operatorDoor, token: "coder", method: "GET", target: path}, 403, writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out")
	if got := w.ask(ask{door: agentDoor, token: "coder", method: "GET", target: path}); got.status != 404 {
		t.Errorf("the agents' door answers %d: %s", got.status, got.body)
	}
}
