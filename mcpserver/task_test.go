package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

func newTask(id, agent string, caps members) *task {
	return &task{id: id, who: engine.Caller{Agent: agent}, caps: caps, created: time.Now(), updated: time.Now(), done: make(chan struct{}), handing: make(chan struct{})}
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
	out, fail := x.asTask(t.Context(), func(context.Context) (json.RawMessage, *rpcError) {
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
