package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

const (
	taskPrefix = "task_"
	keyPrefix  = "mcp_"
)

// onceKey is the key by which a call is made once: the client's own, within what its
// token calls; else that of the task it may become; else none. A call that goes on with
// answers to a server is another call than the one that was asked.
func (x *exchange) onceKey() string {
	if x.task != nil {
		return x.task.key
	}
	key := text(x.msg.meta[metaKey])
	if key == "" {
		return ""
	}
	sum := wire.Digest(x.who.Token + "\x00" + text(x.msg.params["requestState"]) + "\x00" + key).String()
	return keyPrefix + sum[len(sum)-32:]
}

// roundKey is the key of a round of a call: what came of one is not what comes of the next.
func roundKey(key string, n int) string {
	if key == "" || n == 0 {
		return key
	}
	return fmt.Sprintf("%s.%d", key, n)
}

// keyOf is the key of the call that a task is of.
func keyOf(task string) string {
	if _, key, ok := strings.Cut(strings.TrimPrefix(task, taskPrefix), "_"); ok {
		return keyPrefix + key
	}
	return task
}

// recalled is a task as the store has it: one from before a restart, or whose result was
// too much for memory. Nil: there is none of this caller.
func (x *exchange) recalled(id string) (*task, *rpcError) {
	if !strings.HasPrefix(id, taskPrefix) || len(id) > 128 {
		return nil, nil
	}
	var t *task
	for n := range mostRounds {
		s, ok, err := x.engine.Keyed(x.r.Context(), x.who, roundKey(keyOf(id), n))
		if err != nil {
			return nil, protocolFault(err)
		}
		if !ok {
			break
		}
		t = &task{id: id, who: x.who, created: s.Made, updated: s.At, message: s.Waits, cancel: func() { x.withdraw(s.CallID) }}
		_, asks := s.Metadata["input_required"]
		switch {
		case s.Waits != "":
		case s.Cancelled:
			t.over = "cancelled"
		case asks:
			t.over, t.fail = "failed", fault(codeInternal, "the daemon was restarted while the server's question was open; make the call again")
		default:
			t.over = "completed"
			if t.result, t.fail = x.asCall(s.Tool).finished(s.Outcome, s.Err); t.fail != nil {
				t.over = "failed"
			}
		}
	}
	return t, nil
}

// asCall is the exchange as it was when the task's tool was called: results are written
// for that.
func (x *exchange) asCall(tool string) *exchange {
	as := *x
	name, _ := json.Marshal(tool) // a string
	as.msg = message{id: x.msg.id, method: "tools/call", params: members{"name": name}}
	return &as
}

// taskResult is what came of a task that is over, from wherever it is.
func (x *exchange) taskResult(t *task) (json.RawMessage, *rpcError) {
	t.mu.Lock()
	result, fail, stored := t.result, t.fail, t.stored
	t.mu.Unlock()
	if !stored {
		return result, fail
	}
	again, fail := x.recalled(t.id)
	switch {
	case fail != nil:
		return nil, fail
	case again == nil:
		return x.said("", writ.Conflict, "the result is not kept any more; make the call again")
	}
	return again.result, again.fail
}
