package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// knowsTasks reports whether the client of this request takes tasks.
func (x *exchange) knowsTasks() bool {
	ext, _ := object(x.clientCan()["extensions"])
	_, ok := ext[tasksExtension]
	return x.modern && ok
}

// clientCan is what the client of this request says that it can do.
func (x *exchange) clientCan() members {
	caps, _ := object(x.msg.meta[metaCapabilities])
	return caps
}

// newTask is what a call of this client may become. What came of it is found by its id
// after a restart too: the id leads to the key that the call is made with.
func (x *exchange) newTask() *task {
	id := taskPrefix + strings.ToLower(rand.Text())
	if key := x.onceKey(); key != "" {
		id += "_" + strings.TrimPrefix(key, keyPrefix)
	}
	now := time.Now()
	return &task{id: id, key: keyOf(id), who: x.who, root: x.engine.Root(x.who.Agent), can: abilitiesOf(x.clientCan()), created: now, updated: now, done: make(chan struct{}), handing: make(chan struct{})}
}

// asTask makes a call that becomes a task if it takes long. It then goes on when its
// client has gone.
func (x *exchange) asTask(ctx context.Context, t *task, call func(context.Context) (json.RawMessage, *rpcError)) (json.RawMessage, *rpcError) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	x.task = t
	if err := x.tasks.add(t); err != nil {
		cancel()
		return x.said("", writ.KindOf(err), publicly(err))
	}
	go func() {
		defer close(t.done)
		defer cancel()
		defer x.broken(t)
		result, fail := call(life)
		switch {
		case life.Err() != nil:
			t.end("cancelled", nil, nil)
		case fail != nil:
			t.end("failed", nil, fail)
		default:
			t.end("completed", result, nil)
			x.tasks.trim(t.root)
		}
	}()
	wait := time.NewTimer(taskAfter)
	defer wait.Stop()
	select {
	case <-t.done:
	case <-wait.C:
	case <-t.handing:
	case <-ctx.Done():
		if !t.isHanded() { // its client went away before it was given anything to come back for
			cancel()
		}
	}
	select {
	case <-t.done:
		if !t.isHanded() {
			x.tasks.drop(t)
			return x.taskResult(t)
		}
	default:
	}
	t.handOut()
	b, err := wire.Plain(t.shown("task"))
	if err != nil {
		return nil, fault(codeInternal, "the task could not be written")
	}
	return b, nil
}

// broken ends a task whose call panicked: its request may be answered long since, and
// its client would ask for ever.
func (x *exchange) broken(t *task) {
	if p := recover(); p != nil {
		x.log.Error("an MCP task panicked", "task", t.id, "panic", p, "stack", string(debug.Stack()))
		t.end("failed", nil, fault(codeInternal, "internal error; the operator's log has the cause"))
	}
}

func (t *tasks) drop(one *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, one.id)
}

// ofTask finds the task of a request, or refuses it.
func (x *exchange) ofTask() (*task, bool) {
	id := text(x.msg.params["taskId"])
	t := x.tasks.find(id, x.who)
	var fail *rpcError
	if x.modern && x.knowsTasks() && (t == nil || t.inStore()) {
		t, fail = x.recalled(id)
	}
	switch {
	case !x.modern:
		x.refuse(&rpcError{Code: codeMethod, Message: "method " + x.msg.method + " is not served in a session", status: http.StatusOK})
	case !x.knowsTasks():
		data, _ := wire.Plain(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})
		x.refuse(&rpcError{Code: codeCapability, Message: "declare the extension " + tasksExtension, Data: data})
	case fail != nil:
		x.refuse(fail)
	case t == nil:
		x.refuse(fault(codeParams, "there is no such task, or what came of it is not kept any more; make the call again"))
	default:
		return t, true
	}
	return nil, false
}

func (x *exchange) getTask() {
	t, ok := x.ofTask()
	if !ok {
		return
	}
	x.giveTask(t.shown("complete"))
	t.got()
}

func (x *exchange) updateTask() {
	t, ok := x.ofTask()
	if !ok {
		return
	}
	answers, _ := object(x.msg.params["inputResponses"])
	t.update(answers)
	x.giveTask(acknowledged())
}

// cancelTask kills what runs; a request that waits for a person is taken back.
func (x *exchange) cancelTask() {
	t, ok := x.ofTask()
	if !ok {
		return
	}
	t.end("cancelled", nil, nil)
	t.cancel()
	x.giveTask(acknowledged())
}

func acknowledged() map[string]any {
	return map[string]any{"resultType": "complete", "_meta": map[string]any{metaServer: serverInfo()}}
}

func (x *exchange) giveTask(v map[string]any) {
	b, err := wire.Plain(v)
	if err != nil {
		x.refuse(fault(codeInternal, "the task could not be written"))
		return
	}
	x.reply.end(answer(x.msg.id, b), http.StatusOK)
}

// taskInput has the client of a task answer what a server behind us asks, for the next
// round of the call.
func (x *exchange) taskInput(ctx context.Context, asked any) *rpcError {
	raw, err := rawOf(asked)
	m, _ := object(raw)
	questions, ok := object(m["inputRequests"])
	if err != nil || !ok || len(questions) == 0 {
		return fault(codeInternal, "the server asked for input that cannot be given here")
	}
	if fail := x.unable(questions); fail != nil {
		return fail
	}
	type reply struct {
		key   string
		value json.RawMessage
		err   error
	}
	got := make(chan reply, len(questions))
	for key, q := range questions {
		q, _ := object(q)
		go func() {
			v, err := x.task.ask(ctx, key, text(q["method"]), q["params"])
			got <- reply{key, v, err}
		}()
	}
	answers := members{}
	for range questions {
		r := <-got
		if r.err != nil {
			return fault(codeInternal, "the task was ended")
		}
		answers[r.key] = r.value
	}
	b, err := wire.Plain(answers)
	if err != nil {
		return fault(codeInternal, "the answers could not be written")
	}
	x.inputs, x.inner = b, m["requestState"]
	return nil
}
