package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

// Explanation is a decision as it is explained.
type Explanation struct {
	Effect  string           `json:"effect"`
	Action  string           `json:"action"`
	Risk    string           `json:"risk"`
	Class   string           `json:"class"`
	Reasons []writ.Reason    `json:"reasons"`
	Confine writ.Confinement `json:"confinement"`
}

// ExplainRequest is the body of POST /v1/explain.
type ExplainRequest struct {
	Agent string          `json:"agent"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
}

// DecisionRequest is the body of POST /v1/approvals/{id}/decision.
type DecisionRequest struct {
	Digest  string             `json:"digest"`
	Approve bool               `json:"approve"`
	Reason  string             `json:"reason"`
	By      engine.Credentials `json:"by"`
}

// PersonRequest names who decides an operator's act.
type PersonRequest struct {
	By engine.Credentials `json:"by"`
}

// StopRequest is the body of POST /v1/stops.
type StopRequest struct {
	Agent  string `json:"agent"` // "*" is everybody
	Reason string `json:"reason"`
}

// NewToken is a token; it is shown this once.
type NewToken struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Token string `json:"token"`
}

// PersonView is somebody who can decide.
type PersonView struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Created string `json:"created_at"`
}

// Doctor is what 'writ doctor' prints.
type Doctor struct {
	Version  string                `json:"version"`
	Mode     string                `json:"mode"`
	Config   string                `json:"config"`
	State    string                `json:"state"`
	People   int                   `json:"people"`
	Warnings []string              `json:"warnings"`
	Drivers  []engine.DriverReport `json:"drivers"`
}

// EntryView is a ledger entry as it is listed.
type EntryView struct {
	Hash string          `json:"hash"`
	Body json.RawMessage `json:"body"`
}

type ok struct {
	Status string `json:"status"`
}

func (s *Server) operatorRoutes(mux *http.ServeMux) *http.ServeMux {
	mux.HandleFunc("GET /v1/agents", s.answer(func(r *http.Request) (any, error) { return s.engine.Agents(r.Context()) }))
	mux.HandleFunc("POST /v1/agents/{name}/tokens", s.answer(s.newToken))
	mux.HandleFunc("DELETE /v1/tokens/{id}", s.answer(func(r *http.Request) (any, error) {
		return ok{"revoked"}, s.engine.RevokeToken(r.Context(), r.PathValue("id"))
	}))
	mux.HandleFunc("POST /v1/explain", s.answer(s.explain))
	mux.HandleFunc("GET /v1/approvals", s.answer(func(r *http.Request) (any, error) {
		return s.engine.Desk().List(r.Context(), r.URL.Query().Get("state"))
	}))
	mux.HandleFunc("GET /v1/approvals/{id}", s.answer(func(r *http.Request) (any, error) {
		return s.engine.Desk().Show(r.Context(), r.PathValue("id"))
	}))
	mux.HandleFunc("POST /v1/approvals/{id}/decision", s.answer(s.decide))
	mux.HandleFunc("GET /v1/people", s.answer(s.people))
	mux.HandleFunc("POST /v1/people", s.answer(s.firstPerson))
	mux.HandleFunc("GET /v1/ledger", s.answer(s.ledgerEntries))
	mux.HandleFunc("GET /v1/ledger/calls/{id}", s.answer(s.ledgerCall))
	mux.HandleFunc("GET /v1/ledger/verify", s.answer(func(r *http.Request) (any, error) {
		return s.engine.Ledger().Verify(r.Context(), s.engine.Config().Witness, r.URL.Query().Get("head"))
	}))
	mux.HandleFunc("GET /v1/ledger/export", s.export)
	mux.HandleFunc("GET /v1/stops", s.answer(func(r *http.Request) (any, error) { return s.engine.Store().Stops(r.Context()) }))
	mux.HandleFunc("POST /v1/stops", s.answer(s.stopAgent))
	mux.HandleFunc("POST /v1/stops/{agent}/lift", s.answer(s.lift))
	mux.HandleFunc("GET /v1/doctor", s.answer(s.doctor))
	mux.HandleFunc("GET /v1/config", s.answer(func(*http.Request) (any, error) { return s.engine.Config().Effective(), nil }))
	mux.HandleFunc("POST /v1/shutdown", s.answer(func(*http.Request) (any, error) { s.stop(); return ok{"ending"}, nil }))
	return mux
}

// answer turns a function into a handler.
func (s *Server) answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			s.problem(w, r, err, "")
			return
		}
		s.reply(w, http.StatusOK, v)
	}
}

func (s *Server) newToken(r *http.Request) (any, error) {
	var req PersonRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	agent := r.PathValue("name")
	token, id, err := s.engine.NewToken(r.Context(), agent, req.By)
	return NewToken{id, agent, token}, err
}

func (s *Server) explain(r *http.Request) (any, error) {
	var req ExplainRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	d, err := s.engine.Explain(r.Context(), engine.Call{Agent: req.Agent, Tool: req.Tool, Args: req.Args})
	return Explanation{d.Effect.String(), d.Action, d.Risk, d.Class.String(), d.Reasons, d.Confine}, err
}

func (s *Server) decide(r *http.Request) (any, error) {
	var req DecisionRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	ans := approval.Answer{ID: r.PathValue("id"), Digest: req.Digest, Approve: req.Approve, Reason: req.Reason}
	if err := s.engine.Decide(r.Context(), ans, req.By); err != nil {
		return nil, err
	}
	return s.engine.Desk().Show(r.Context(), ans.ID)
}

func (s *Server) people(r *http.Request) (any, error) {
	all, err := s.engine.People(r.Context())
	views := []PersonView{}
	for _, p := range all {
		views = append(views, PersonView{p.Name, p.Role, p.Created})
	}
	return views, err
}

func (s *Server) firstPerson(r *http.Request) (any, error) {
	var req PersonRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	return ok{"added"}, s.engine.AddFirstPerson(r.Context(), req.By)
}

func (s *Server) ledgerEntries(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := number(q.Get("limit"), 100, 1000)
	if err != nil {
		return nil, err
	}
	if after := q.Get("after"); after != "" {
		seq, err := number(after, 0, 1<<53)
		if err != nil {
			return nil, err
		}
		return views(s.engine.Store().After(r.Context(), int64(seq), limit))
	}
	return views(s.engine.Store().Tail(r.Context(), limit))
}

func number(text string, missing, most int) (int, error) {
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, writ.Fail(writ.Invalid, "limit and after are whole numbers; limit is at most 1000", nil)
	}
	return n, nil
}

func (s *Server) ledgerCall(r *http.Request) (any, error) {
	found, err := s.engine.Store().OfCall(r.Context(), r.PathValue("id"))
	if err == nil && len(found) == 0 {
		err = writ.Fail(writ.NotFound, "the ledger has nothing about such a call; 'writ ledger tail' shows ids", nil)
	}
	return views(found, err)
}

func views(entries []store.Entry, err error) ([]EntryView, error) {
	out := []EntryView{}
	for _, e := range entries {
		out = append(out, EntryView{e.Hash.String(), json.RawMessage(e.Body)})
	}
	return out, err
}

// export streams: a ledger can be larger than memory.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl")
	if err := s.engine.Ledger().Export(r.Context(), w); err != nil {
		s.log.Error("export broke off", "err", err)
		panic(http.ErrAbortHandler) // the reader must see that it is not whole
	}
}

func (s *Server) stopAgent(r *http.Request) (any, error) {
	var req StopRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	return ok{"stopped"}, s.engine.Stop(r.Context(), req.Agent, req.Reason)
}

func (s *Server) lift(r *http.Request) (any, error) {
	var req PersonRequest
	if err := read(r, &req); err != nil {
		return nil, err
	}
	return ok{"lifted"}, s.engine.Lift(r.Context(), r.PathValue("agent"), req.By)
}

func (s *Server) doctor(r *http.Request) (any, error) {
	people, err := s.engine.People(r.Context())
	c := s.engine.Config()
	return Doctor{
		Version: engine.Version(), Mode: Mode, Config: c.Path, State: c.StatePath, People: len(people),
		Warnings: c.Warnings, Drivers: s.engine.Drivers(r.Context()),
	}, err
}

// Mode says what the set-up does and does not guarantee.
const Mode = "personal: what runs inside boxes is confined; a process of your own user outside a box is not held back by writ"
