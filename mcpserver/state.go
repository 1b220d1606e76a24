package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// state is what a client keeps of a call that waits, and gives back to go on: sealed,
// so that it says nothing to the client and cannot be made up; of one caller, one
// call and one request; and good until the request is over.
type state struct {
	Agent   string   `json:"agent"`
	Token   string   `json:"token"`
	Call    string   `json:"call"` // digest of the tool's name and the arguments
	Request string   `json:"request,omitempty"`
	Server  string   `json:"server,omitempty"` // what a server behind us gave the client to keep
	Asked   []string `json:"asked,omitempty"`  // the questions that it put, by their keys
	Once    string   `json:"once,omitempty"`   // of a server's round: good for one use, by this daemon
	Until   int64    `json:"until"`
}

const statePurpose = "mcp request state"

// stateFor is how long a state is good: as long as any request can wait.
const stateFor = 7 * 24 * time.Hour

// states are the rounds of servers that clients may still answer, each once: a server
// that gets one question answered twice would act twice on one call. They are in memory
// alone, so that after a restart none is good. Safe for concurrent use.
type states struct {
	mu   sync.Mutex
	open map[string]openState
}

type openState struct {
	owner string
	until time.Time
}

// How long a server's question may lie unanswered, and how many of a caller may.
const (
	answerFor    = time.Hour
	statesOfUser = 256
)

// add opens a round, and forgets those that nobody answered, and a caller's oldest where
// it has too many.
func (s *states) add(who engine.Caller) (once string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]openState{}
	}
	mine, oldest := 0, ""
	for id, o := range s.open {
		switch {
		case time.Now().After(o.until):
			delete(s.open, id)
		case o.owner == owner(who):
			if mine++; oldest == "" || o.until.Before(s.open[oldest].until) {
				oldest = id
			}
		}
	}
	if mine >= statesOfUser {
		delete(s.open, oldest)
	}
	once = rand.Text()
	s.open[once] = openState{owner(who), time.Now().Add(answerFor)}
	return once
}

// use takes a round, once.
func (s *states) use(once string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.open[once]
	delete(s.open, once)
	return ok && time.Now().Before(o.until)
}

// howTo is what a person does about a request.
func howTo(id string) string { return "a person runs: writ approval approve " + id }

// waiting is what is said while a person is asked.
func waiting(id string) string {
	return "waiting for a person to approve the call (request " + id + "); " + howTo(id)
}

// round holds the request for a while, and then has the client ask again.
func (x *exchange) round(ctx context.Context, name string, args json.RawMessage, id string, ask bool) (json.RawMessage, *rpcError) {
	until := time.Now().Add(min(round, x.patience()))
	if x.task != nil { // the client asks how it is going by itself
		return x.waitInTask(ctx, id)
	}
	for n := 1; ; n++ {
		x.progress(n, waiting(id))
		wait := min(tell, time.Until(until))
		if ask && x.takesQuestions() {
			wait = 0 // its user is told at once, and says when to go on
		}
		out, err := x.engine.Resume(ctx, x.who, id, wait)
		if writ.KindOf(err) != writ.Pending {
			return x.finished(out, err)
		}
		if ctx.Err() != nil || wait == 0 || !time.Now().Before(until) {
			return x.inputRequired(name, args, out.CallID)
		}
	}
}

// waitInTask waits for a person as long as it takes.
func (x *exchange) waitInTask(ctx context.Context, id string) (json.RawMessage, *rpcError) {
	x.task.handOut()
	x.task.say(waiting(id))
	for {
		out, err := x.engine.Resume(ctx, x.who, id, time.Minute)
		if writ.KindOf(err) != writ.Pending {
			return x.finished(out, err)
		}
		if ctx.Err() != nil {
			x.withdraw(id)
			return x.finished(out, err)
		}
	}
}

// seal makes a state of this caller and this call.
func (x *exchange) seal(name string, args json.RawMessage, s state) (string, *rpcError) {
	call, fail := callDigest(name, args)
	if fail != nil {
		return "", fail
	}
	s.Agent, s.Token, s.Call, s.Until = x.who.Agent, x.who.Token, call, time.Now().Add(stateFor).Unix()
	plain, err := json.Marshal(s)
	if err != nil {
		return "", fault(codeInternal, "the state could not be written")
	}
	sealed, err := x.engine.Seal(statePurpose, plain)
	if err != nil {
		return "", fault(codeInternal, "the state could not be sealed")
	}
	return sealed, nil
}

func (x *exchange) inputRequired(name string, args json.RawMessage, id string) (json.RawMessage, *rpcError) {
	sealed, fail := x.seal(name, args, state{Request: id})
	if fail != nil {
		return nil, fail
	}
	r := map[string]any{
		"resultType": "input_required", "requestState": sealed,
		"_meta": map[string]any{metaCall: id, metaError: writ.Pending, metaServer: serverInfo()},
	}
	if x.takesQuestions() {
		r["inputRequests"] = map[string]any{"approval": map[string]any{"method": "elicitation/create", "params": question(id)}}
	}
	b, err := wire.Plain(r)
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	return b, nil
}

// takesQuestions reports whether the client of this request asks its user.
func (x *exchange) takesQuestions() bool {
	caps, _ := object(x.msg.meta[metaCapabilities])
	e, ok := object(caps["elicitation"])
	if !ok {
		return false
	}
	_, form := e["form"]
	_, url := e["url"]
	return form || !url // without either it is forms
}

// resumed opens the state that came with a request; nil: none did.
func (x *exchange) resumed(name string, args json.RawMessage) (*state, *rpcError) {
	sealed, given := x.msg.params["requestState"]
	if !given || !x.modern {
		return nil, nil
	}
	call, fail := callDigest(name, args)
	if fail != nil {
		return nil, fail
	}
	var s state
	plain, ok := x.engine.Unseal(statePurpose, text(sealed))
	if !ok || json.Unmarshal(plain, &s) != nil || s.Agent != x.who.Agent || s.Token != x.who.Token || s.Call != call || time.Now().Unix() > s.Until {
		return nil, fault(codeParams, "requestState is not one of this caller and this call, or its time is over; make the call again without it")
	}
	if s.Request == "" && !x.states.use(s.Once) {
		return nil, fault(codeParams, "requestState was used already, is older than %s, or is from before the daemon was restarted; make the call again without it", answerFor)
	}
	if s.Server != "" {
		x.inner = json.RawMessage(s.Server)
	}
	return &s, x.answers(s.Asked)
}

// answers takes what the client says to the questions that were put to it. Anything else
// would reach a server beside the arguments that were decided about.
func (x *exchange) answers(asked []string) *rpcError {
	given, _ := object(x.msg.params["inputResponses"])
	said := members{}
	for _, key := range asked {
		if v, ok := given[key]; ok {
			said[key] = v
		}
	}
	if len(asked) == 0 {
		return nil
	}
	b, err := wire.Plain(said)
	if err != nil {
		return fault(codeInternal, "the answers could not be written")
	}
	x.inputs = b
	return nil
}

// relayInput passes on what a server behind us asks of the client. What the client is to
// keep for it goes in a state of ours.
func (x *exchange) relayInput(name string, args json.RawMessage, asked any) (json.RawMessage, *rpcError) {
	raw, err := rawOf(asked)
	m, ok := object(raw)
	if err != nil || !ok || !x.modern {
		return nil, fault(codeInternal, "the server asked for input that cannot be given here")
	}
	questions, _ := object(m["inputRequests"])
	if fail := x.unable(questions); fail != nil {
		return nil, fail
	}
	x.disown(m)
	sealed, fail := x.seal(name, args, state{Server: string(m["requestState"]), Asked: slices.Sorted(maps.Keys(questions)), Once: x.states.add(x.who)})
	if fail != nil {
		return nil, fail
	}
	m["requestState"], _ = json.Marshal(sealed) // a string
	b, err := wire.Plain(m)
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	return b, nil
}

// resumeState goes on with a call that waits. It does not make the call: what was
// asked about is what runs, whatever comes with the state now.
func (x *exchange) resumeState(ctx context.Context, name string, args json.RawMessage, s *state) (json.RawMessage, *rpcError) {
	answers, _ := object(x.msg.params["inputResponses"])
	said, _ := object(answers["approval"])
	if action := text(said["action"]); action == "decline" || action == "cancel" {
		return x.said(s.Request, writ.Pending, "approval_pending: a person has to approve this call (request "+s.Request+"); "+howTo(s.Request)+". It stays pending; make the same call again to wait for the answer.")
	}
	return x.round(ctx, name, args, s.Request, false)
}

// callDigest binds a state to what was called.
func callDigest(name string, args json.RawMessage) (string, *rpcError) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	canonical, err := wire.CanonicalObject(args)
	if err != nil {
		_, why := writ.Public(err)
		return "", fault(codeParams, "arguments: %s", why)
	}
	return wire.Digest(name + "\x00" + canonical).String(), nil
}
