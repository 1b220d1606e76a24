package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// tasksExtension is what a client declares that takes a task for a long call.
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	taskAfter    = 500 * time.Millisecond // a call that takes longer becomes a task
	taskFor      = time.Hour              // how long one is kept after it ended
	pollEvery    = 500 * time.Millisecond
	tasksOfAgent = 128
	resultsOfOne = 64 << 20    // bytes of results in memory, of an agent with all below it
	smallResult  = 4 << 10     // one that is kept as long as its task
	gotFor       = time.Minute // how long a result that was got stays in memory
)

// task is a call that goes on after its request was answered.
type task struct {
	id      string
	key     string // of its call: what came of it is in the store by that, also after a restart
	who     engine.Caller
	root    string // the agent at the top of its caller's chain
	created time.Time
	can     abilities // what the client can be asked
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended
	handing chan struct{} // closed when it is to be handed out before its time

	mu      sync.Mutex
	handed  bool // the client has it
	updated time.Time
	message string
	over    string // completed, failed, cancelled; empty: it goes on
	result  json.RawMessage
	stored  bool // its result is in the store alone
	fail    *rpcError
	asks    map[string]json.RawMessage
	answers map[string]chan json.RawMessage
	n       int
}

// tasks are those that clients have been given. Safe for concurrent use.
type tasks struct {
	mu sync.Mutex
	by map[string]*task
}

// add keeps a task. Of those that ended, the oldest make room for new ones; those that
// go on are counted.
func (t *tasks) add(one *task) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*task{}
	}
	going, kept := 0, 0
	var oldest *task
	var since time.Time
	for id, o := range t.by {
		ended, at := o.ended()
		switch {
		case ended && time.Since(at) > taskFor:
			delete(t.by, id)
		case o.who.Agent != one.who.Agent:
		case !ended:
			going++
		default:
			if kept++; oldest == nil || at.Before(since) {
				oldest, since = o, at
			}
		}
	}
	if going >= tasksOfAgent {
		return writ.Fail(writ.Conflict, fmt.Sprintf("this agent has %d calls under way; wait for some to end", going), nil)
	}
	if kept >= tasksOfAgent {
		delete(t.by, oldest.id)
	}
	t.by[one.id] = one
	return nil
}

// trim leaves the oldest results of an agent to the store, where all of them are too many
// for memory.
func (t *tasks) trim(root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*task
	total := 0
	for _, o := range t.by {
		if n := o.held(); o.root == root && n > 0 {
			all, total = append(all, o), total+n
		}
	}
	slices.SortFunc(all, func(a, b *task) int {
		_, at := a.ended()
		_, bt := b.ended()
		return at.Compare(bt)
	})
	for _, o := range all {
		if total <= resultsOfOne {
			return
		}
		total -= o.held()
		o.forget()
	}
}

// held is how many bytes of its result are in memory.
func (t *task) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.result)
}

// forget leaves the result to the store.
func (t *task) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.result) > smallResult {
		t.result, t.stored = nil, true
	}
}

// got notes that a client has the result, where there is one: soon nobody will ask again.
func (t *task) got() {
	if over, _ := t.ended(); over {
		time.AfterFunc(gotFor, t.forget)
	}
}

// inStore reports whether the result has to be read from the store.
func (t *task) inStore() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stored
}

func (t *tasks) find(id string, who engine.Caller) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.by[id]; v != nil && owner(v.who) == owner(who) {
		return v
	}
	return nil
}

// ended reports whether it is over, and since when.
func (t *task) ended() (bool, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over != "", t.updated
}

// end writes down how it ended, once.
func (t *task) end(over string, result json.RawMessage, fail *rpcError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == "" {
		t.over, t.result, t.fail, t.updated, t.asks = over, result, fail, time.Now(), nil
	}
}

func (t *task) say(message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.message, t.updated = message, time.Now()
}

// handOut has the client given the task now, where it still waits for the call.
func (t *task) handOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.handed {
		t.handed = true
		close(t.handing)
	}
}

func (t *task) isHanded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handed
}

// ask has the client answer a question by tasks/update. It is asked only what it said
// that it can answer.
func (t *task) ask(ctx context.Context, key, method string, params json.RawMessage) (json.RawMessage, error) {
	if !t.can.be(method) {
		return nil, errNoClient
	}
	q, err := wire.Plain(map[string]any{"method": method, "params": params})
	if err != nil {
		return nil, err
	}
	t.handOut()
	t.mu.Lock()
	if t.asks == nil {
		t.asks, t.answers = map[string]json.RawMessage{}, map[string]chan json.RawMessage{}
	}
	if t.n++; key == "" {
		key = fmt.Sprintf("input-%d", t.n)
	}
	answer := make(chan json.RawMessage, 1)
	t.asks[key], t.answers[key], t.updated = q, answer, time.Now()
	t.mu.Unlock()
	select {
	case got := <-answer:
		return got, nil
	case <-ctx.Done():
		t.mu.Lock()
		delete(t.asks, key) // nobody waits for it any more
		delete(t.answers, key)
		t.mu.Unlock()
		return nil, ctx.Err()
	}
}

// update takes answers; what nobody asked for is passed over.
func (t *task) update(answers members) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, value := range answers {
		if to, ok := t.answers[key]; ok {
			to <- value
			delete(t.answers, key)
			delete(t.asks, key)
			t.updated = time.Now()
		}
	}
}

// shown is the task as the protocol has it; kind is the type of the result it stands in.
func (t *task) shown(kind string) map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]any{
		"resultType": kind, "taskId": t.id, "status": "working", "createdAt": stamp(t.created), "lastUpdatedAt": stamp(t.updated),
		"ttlMs": nil, "pollIntervalMs": pollEvery.Milliseconds(), "_meta": map[string]any{metaServer: serverInfo()},
	}
	if t.message != "" {
		out["statusMessage"] = t.message
	}
	if kind == "task" {
		return out
	}
	switch {
	case t.over != "":
		out["status"], out["ttlMs"] = t.over, (t.updated.Sub(t.created) + taskFor).Milliseconds() // it counts from the beginning
		if t.fail != nil {
			out["error"] = t.fail
		} else if t.result != nil {
			out["result"] = t.result
		}
	case len(t.asks) > 0:
		out["status"], out["inputRequests"] = "input_required", copied(t.asks)
	}
	return out
}

func copied(m map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
