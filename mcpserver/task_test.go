package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

func newTask(id, agent string, caps members) *task {
	return &task{id: id, who: engine.Caller{Agent: agent}, can: abilitiesOf(caps), created: time.Now(), updated: time.Now(), done: make(chan struct{}), handing: make(chan struct{})}
}

// Calls under way are bounded by agent; those that ended make room, the oldest first.
func TestTasksKept(t *testing.T) {
	var all tasks
	var made []*task
	for i := range tasksOfAgent {
		one := newTask(fmt.Sprint("t", i), "a", nil)
		if err := all.add(one); err != nil {
			t.Fatal(err)
		}
		made = append(made, one)
	}
	if err := all.add(newTask("more", "a", nil)); writ.KindOf(err) != writ.Conflict {
		t.Errorf("one too many: %v", err)
	}
	if err := all.add(newTask("other", "b", nil)); err != nil {
		t.Errorf("another agent's: %v", err)
	}
	for _, one := range made {
		one.end("completed", nil, nil)
	}
	if err := all.add(newTask("next", "a", nil)); err != nil {
		t.Errorf("when the others have ended: %v", err)
	}
	who := engine.Caller{Agent: "a"}
	for id, want := range map[string]bool{"t0": false, "t1": true, "next": true, "other": false} {
		if got := all.find(id, who) != nil; got != want {
			t.Errorf("%s is kept: %v, want %v", id, got, want)
		}
	}
}

// A client is asked what it can answer, and as long as somebody waits for it.
func TestTaskAsks(t *testing.T) {
	one := newTask("t", "a", members{"elicitation": json.RawMessage(`{}`)})
	if _, err := one.ask(t.Context(), "", "sampling/createMessage", nil); !errors.Is(err, errNoClient) {
		t.Errorf("what it cannot do: %v", err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := one.ask(ctx, "q", "elicitation/create", json.RawMessage(`{}`))
		got <- err
	}()
	<-one.handing
	for one.shown("complete")["status"] != "input_required" {
		time.Sleep(time.Millisecond)
	}
	giveUp()
	if err := <-got; !errors.Is(err, context.Canceled) || one.shown("complete")["status"] != "working" {
		t.Errorf("given up: %v, %v", err, one.shown("complete")["status"])
	}
	answer := make(chan json.RawMessage)
	go func() {
		v, _ := one.ask(t.Context(), "q", "elicitation/create", json.RawMessage(`{}`))
		answer <- v
	}()
	for one.shown("complete")["status"] != "input_required" {
		time.Sleep(time.Millisecond)
	}
	one.update(members{"else": json.RawMessage(`1`), "q": json.RawMessage(`{"action":"accept"}`)})
	if v := <-answer; string(v) != `{"action":"accept"}` {
		t.Errorf("answered: %s", v)
	}
}

// A call that panics after its client was given a task ends the task.
func TestTaskPanics(t *testing.T) {
	x := &exchange{Door: &Door{log: slog.New(slog.DiscardHandler)}, who: engine.Caller{Agent: "a"}}
	out, fail := x.asTask(t.Context(), newTask("t", "a", nil), func(context.Context) (json.RawMessage, *rpcError) {
		x.task.handOut()
		panic("broken")
	})
	m, _ := object(out)
	if fail != nil || text(m["resultType"]) != "task" {
		t.Fatalf("%s, %v", out, fail)
	}
	<-x.task.done
	if got := x.task.shown("complete"); got["status"] != "failed" || got["error"].(*rpcError).Code != codeInternal {
		t.Errorf("it is %v", got)
	}
}

// Results that are in memory are bounded by bytes for an agent with all below it; the
// oldest are left to the store, and small ones stay.
func TestResultsKept(t *testing.T) {
	var all tasks
	const each = 3 << 20
	for i := range 30 {
		one := newTask(fmt.Sprint("t", i), fmt.Sprint("a/", i), nil)
		if one.root = "a"; i >= 28 {
			one.root = "b"
		}
		if err := all.add(one); err != nil {
			t.Fatal(err)
		}
		size := each
		if i == 1 {
			size = 10
		}
		one.end("completed", make(json.RawMessage, size), nil)
		one.updated = one.created.Add(time.Duration(i))
		all.trim(one.root)
	}
	total := map[string]int{}
	var left []int
	for i := range 30 {
		one := all.by[fmt.Sprint("t", i)]
		if total[one.root] += one.held(); one.inStore() {
			left = append(left, i)
		}
	}
	if want := []int{0, 2, 3, 4, 5, 6}; !slices.Equal(left, want) || total["a"] > resultsOfOne || total["b"] != 2*each {
		t.Errorf("left to the store: %v, want %v; in memory: %v", left, want, total)
	}
}

// A task's id leads to the key of its call, and so to what came of it.
func TestTaskKeys(t *testing.T) {
	x := &exchange{who: engine.Caller{Agent: "a", Token: "tok_a"}}
	if got := x.onceKey(); got != "" {
		t.Errorf("without a key: %q", got)
	}
	x.msg.meta = members{metaKey: json.RawMessage(`"k"`)}
	key := x.onceKey()
	y := &exchange{who: engine.Caller{Agent: "a", Token: "tok_b"}, msg: x.msg}
	z := &exchange{who: x.who, msg: message{meta: x.msg.meta, params: members{"requestState": json.RawMessage(`"s"`)}}}
	if key != x.onceKey() || key == y.onceKey() || key == z.onceKey() {
		t.Errorf("%q; another token's %q, another round's %q", key, y.onceKey(), z.onceKey())
	}
	for id, want := range map[string]string{"task_abc": "task_abc", "task_abc_" + strings.TrimPrefix(key, keyPrefix): key} {
		if got := keyOf(id); got != want {
			t.Errorf("the key of %s is %q, want %q", id, got, want)
		}
	}
	for n, want := range []string{"k", "k.1", "k.2"} {
		if got := roundKey("k", n); got != want || roundKey("", n) != "" {
			t.Errorf("round %d has %q", n, got)
		}
	}
}

// A result that was got is left to the store after a minute; one that was not stays.
func TestResultGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken, left := newTask("t", "a", nil), newTask("u", "a", nil)
		taken.got() // it goes on, and there is nothing to forget yet
		for _, one := range []*task{taken, left} {
			one.end("completed", make(json.RawMessage, 2*smallResult), nil)
		}
		time.Sleep(gotFor)
		synctest.Wait()
		if taken.inStore() {
			t.Error("a result that nobody got is forgotten")
		}
		taken.got()
		time.Sleep(gotFor)
		synctest.Wait()
		if !taken.inStore() || left.inStore() {
			t.Errorf("left to the store: %v, want true; the other: %v, want false", taken.inStore(), left.inStore())
		}
	})
}

// Of what a client says that it can do, what it can be asked is kept, and nothing else.
func TestAbilities(t *testing.T) {
	caps := members{"elicitation": json.RawMessage(`{"form":{}}`), "sampling": json.RawMessage("null"), "experimental": json.RawMessage(`{}`)}
	can := abilitiesOf(caps)
	if len(can) != 1 || !can.be("elicitation/create") || can.be("sampling/createMessage") || can.be("experimental/x") {
		t.Errorf("%v", can)
	}
}
