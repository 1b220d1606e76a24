package api

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/store"
)

// pagesOf walks a list in pages of n and demands that they fit together.
func pagesOf[T any](t *testing.T, l client.List[T], n int, key func(T) string, between func()) []string {
	t.Helper()
	var keys []string
	between = sync.OnceFunc(between)
	for cursor := ""; ; {
		page, err := l.Page(t.Context(), n, cursor)
		must(t, err)
		if page.Limit != n || len(page.Data) > n || page.HasMore != (page.NextCursor != "") || page.HasMore && len(page.Data) != n {
			t.Errorf("page of %d: limit %d, more %v, cursor %q", len(page.Data), page.Limit, page.HasMore, page.NextCursor)
		}
		for _, v := range page.Data {
			keys = append(keys, key(v))
		}
		if cursor = page.NextCursor; !page.HasMore {
			return keys
		}
		between()
	}
}

// Pages neither repeat nor leave out, also when more is added while they are read.
func TestPages(t *testing.T) {
	w := newWorld(t)
	c := w.agent("coder")
	var sessions, tasks, requests []string
	open := func() {
		s, err := c.OpenSession(t.Context(), client.SessionRequest{})
		must(t, err)
		task, err := c.StartTask(t.Context(), client.TaskRequest{Name: "t", Session: s.ID})
		must(t, err)
		sessions, tasks = append(sessions, s.ID), append(tasks, task.ID)
	}
	for i := range 6 {
		open()
		requests = append(requests, w.pending("coder", fmt.Sprint("f", i)))
	}
	_, err := w.agent("other").OpenSession(t.Context(), client.SessionRequest{})
	must(t, err)
	slices.Reverse(requests)
	for _, n := range []int{1, 2, 3, 4, 1000} {
		before := slices.Clone(sessions)
		slices.Reverse(before)
		daily := w.ids["coder"] + "/coder/"
		got := pagesOf(t, c.Sessions(), n, func(s client.Session) string { return s.ID }, open)
		got = slices.DeleteFunc(got, func(id string) bool { return len(id) > len(daily) && id[:len(daily)] == daily })
		if !slices.Equal(got, before) {
			t.Errorf("sessions by %d: %v, want %v", n, got, before)
		}
		before = slices.Clone(tasks)
		slices.Reverse(before)
		if got := pagesOf(t, c.Tasks(), n, func(s client.Task) string { return s.ID }, open); !slices.Equal(got, before) {
			t.Errorf("tasks by %d: %v, want %v", n, got, before)
		}
		if got := pagesOf(t, c.Approvals("pending"), n, func(a client.Approval) string { return a.ID }, open); !slices.Equal(got, requests) {
			t.Errorf("approvals by %d: %v, want %v", n, got, requests)
		}
	}
	if got := pagesOf(t, w.agent("other").Sessions(), 2, func(s client.Session) string { return s.Agent }, open); !slices.Equal(got, []string{"other"}) {
		t.Errorf("another token sees %v", got)
	}
	for state, want := range map[string]int{"": 6, "pending": 6, "approved": 0, "expired": 0} {
		if got, err := w.operator.Approvals(state).All(t.Context()); err != nil || len(got) != want {
			t.Errorf("%d requests are %q: %v", len(got), state, err)
		}
	}
}

// The ledger reads back from its end and forward from a place, and both are whole.
func TestLedgerPages(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.append1("coder")
	}
	seq := func(e client.Entry) string { return fmt.Sprint(bodyOf(t, e).Seq) }
	all, err := w.operator.LedgerAfter(0).All(t.Context())
	must(t, err)
	var forward []string
	for i, e := range all {
		if forward = append(forward, seq(e)); forward[i] != fmt.Sprint(i+1) {
			t.Fatalf("entry %d is %s", i+1, forward[i])
		}
	}
	for _, n := range []int{1, 7, len(all), len(all) + 1} {
		if got := pagesOf(t, w.operator.LedgerAfter(0), n, seq, func() {}); !slices.Equal(got, forward) {
			t.Errorf("forward by %d: %v", n, got)
		}
		back := slices.Clone(forward)
		slices.Reverse(back)
		if got := pagesOf(t, w.operator.Ledger(), n, seq, func() {}); !slices.Equal(got, back) {
			t.Errorf("back by %d: %v", n, got)
		}
	}
	tail, err := w.operator.LedgerTail(t.Context(), 3)
	must(t, err)
	if len(tail) != 3 || seq(tail[2]) != forward[len(forward)-1] || seq(tail[0]) != forward[len(forward)-3] {
		t.Errorf("tail: %v", tail)
	}
	reply, err := w.agent("coder").Call(t.Context(), client.CallRequest{Tool: "stat", Args: []byte(`{"path":"."}`)}, 0)
	must(t, err)
	if got := pagesOf(t, w.operator.LedgerCall(reply.CallID), 1, func(e client.Entry) string { return bodyOf(t, e).Kind }, func() {}); !slices.Equal(got, []string{"call.started", "call.finished"}) {
		t.Errorf("of a call: %v", got)
	}
}

// Lists that are not in the store page the same way.
func TestListPages(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{1, 3, 1000} {
		names := pagesOf(t, w.operator.Tools(), n, func(x client.Tool) string { return x.Name }, func() {})
		if !slices.IsSorted(names) || !slices.Contains(names, "stat") || !slices.Contains(names, "count_words") || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("tools by %d: %v", n, names)
		}
		if got := pagesOf(t, w.operator.Agents(), n, func(a client.Agent) string { return a.Name }, func() {}); !slices.Equal(got, []string{"coder", "helper", "other"}) {
			t.Errorf("agents by %d: %v", n, got)
		}
		values := pagesOf(t, w.operator.Config(), max(n, 50), func(v client.Value) string { return v.Key }, func() {})
		if len(values) != len(w.engine.Config().Effective()) {
			t.Errorf("config by %d: %d values of %d", n, len(values), len(w.engine.Config().Effective()))
		}
	}
	states := map[string]string{}
	for x, err := range w.operator.Tools().Each(t.Context()) {
		must(t, err)
		states[x.Name] = x.State
	}
	if states["stat"] != "builtin" || states["wait"] != "library" || states["count_words"] != "suspended" {
		t.Errorf("%v", states)
	}
	if got, err := w.agent("coder").Tool(t.Context(), "stat"); err != nil || got.State != "" {
		t.Errorf("an agent sees the state: %+v %v", got, err)
	}
}

// What is open and should have ended by now is expired, also before anybody ended it.
func TestExpiredApprovals(t *testing.T) {
	w := newWorld(t)
	id := w.pending("coder", "x")
	for now, states := range map[string]map[string]int{"2000": {"pending": 1, "expired": 0, "asked": 1}, "2999": {"pending": 0, "expired": 1, "asked": 1}} {
		for state, want := range states {
			got, err := w.engine.Store().InvocationsBefore(t.Context(), store.InvocationsOf{State: state, Now: now}, 0, 10)
			must(t, err)
			if len(got) != want || want == 1 && (got[0].ID != id || got[0].Sealed != nil || state != "asked" && approval.StateOf(got[0], now) != state) {
				t.Errorf("in %s %q: %+v", now, state, got)
			}
		}
	}
}
