package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// mostRounds is how often a server may ask for more in the middle of one call.
const mostRounds = 10

// asks makes a request of a server for a call. A server speaks to a client of its own
// kind where it can: some do less for the others. What it asks for in the middle goes
// to the client, if that can be answered here; otherwise it is the result, and the
// client makes the call again with its answers.
func (u *upstreams) asks(ctx context.Context, s *server, method string, params map[string]json.RawMessage) (raw json.RawMessage, err error) {
	peer := u.peer(ctx, s)
	p := tool.PeerOf(ctx)
	to := s.Server
	if p != nil {
		r := p.Round()
		if !r.Modern {
			to = u.older(s)
		}
		for key, value := range map[string]json.RawMessage{"inputResponses": r.Inputs, "requestState": r.State, "_meta": r.Meta} {
			if value != nil {
				params[key] = value
			}
		}
	}
	for range mostRounds {
		b, err := wire.Plain(params)
		if err != nil {
			return nil, err
		}
		raw, err := to.Call(ctx, method, b, peer)
		if err != nil || upstream.ResultType(raw) != "input_required" || p == nil {
			return raw, err
		}
		if p.Round().Modern {
			return raw, s.mayAsk(raw)
		}
		if err := answerInput(ctx, peer, raw, params); err != nil {
			return nil, err
		}
	}
	return nil, writ.Fail(writ.Invalid, fmt.Sprintf("the server %s asked for input %d times and does not end the call", s.name, mostRounds), nil)
}

// mostQuestions are asked of a client at once.
const mostQuestions = 16

// question is one that a server asks of a client, found by the exact names of its
// members, as clients read it: a reader that folds case, or takes the last of two, would
// see another question than the client.
type question struct {
	method string
	params json.RawMessage
}

// questionsOf is what an answer asks of the client, and what the server wants back with the
// answers; nil: it is nothing that can be asked.
func questionsOf(raw json.RawMessage) (questions map[string]question, state json.RawMessage, err error) {
	var top, list map[string]json.RawMessage
	if err = json.Unmarshal(raw, &top); err == nil && top["inputRequests"] != nil {
		err = json.Unmarshal(top["inputRequests"], &list)
	}
	if len(list) > mostQuestions {
		err = fmt.Errorf("%d questions at once", len(list))
	}
	questions = map[string]question{}
	for id, q := range list {
		var members map[string]json.RawMessage
		var one question
		if err == nil {
			err = json.Unmarshal(q, &members)
		}
		if err == nil {
			err = json.Unmarshal(members["method"], &one.method)
		}
		one.params = members["params"]
		questions[id] = one
	}
	if err != nil {
		return nil, nil, writ.Fail(writ.Invalid, "the server asked for input that cannot be given here", err)
	}
	return questions, top["requestState"], nil
}

// mayAsk refuses an answer that asks a client for what the operator does not relay: the
// client would take the question for writ's.
func (s *server) mayAsk(raw json.RawMessage) error {
	questions, _, err := questionsOf(raw)
	if err != nil {
		return err
	}
	for _, q := range questions {
		if kind, _, _ := strings.Cut(q.method, "/"); !slices.Contains(s.cfg.Relay, config.Relay(kind)) {
			return writ.Fail(writ.Denied, fmt.Sprintf("denied: the server %s asked the client for something that is not relayed; the operator's upstreams.%s.relay lists what is", s.name, s.name), nil)
		}
	}
	return nil
}

// answerInput has the client answer what a server asks for, into the params of the
// next round.
func answerInput(ctx context.Context, peer upstream.Peer, raw json.RawMessage, params map[string]json.RawMessage) error {
	questions, state, err := questionsOf(raw)
	if err == nil && len(questions) == 0 {
		err = writ.Fail(writ.Invalid, "the server asked for input that cannot be given here", nil)
	}
	if err != nil {
		return err
	}
	answers := map[string]json.RawMessage{}
	for id, q := range questions {
		got, err := peer.Ask(ctx, q.method, q.params)
		if err != nil {
			return writ.Fail(writ.Invalid, "the server asked for input that the client did not give", err)
		}
		answers[id] = got
	}
	b, err := wire.Plain(answers)
	params["inputResponses"] = b
	delete(params, "requestState")
	if state != nil {
		params["requestState"] = state
	}
	return err
}

// older is a server as clients with sessions reach it: over a connection of that kind,
// made when it is first needed.
func (u *upstreams) older(s *server) *upstream.Server {
	if s.State().Version < modern {
		return s.Server
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.old == nil && u.servers[s.name] == s {
		spec := u.spec(s)
		spec.Lazy, spec.OnChange, spec.Options.Older = true, nil, true
		old, err := upstream.Start(spec)
		if err != nil {
			u.e.log.Error("an MCP server cannot be reached as older clients do", "server", s.name, "err", err)
			return s.Server
		}
		s.old = old
	}
	if s.old == nil {
		return s.Server
	}
	return s.old
}

// modern is the first version of the protocol without sessions.
const modern = "2026-07-28"
