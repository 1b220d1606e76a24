package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/tool"
)

// CallRequest is the body of POST /v1/calls.
type CallRequest struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Session string          `json:"session"`
	Task    string          `json:"task"`
}

// CallReply is the answer when the tool ran.
type CallReply struct {
	CallID   string         `json:"call_id"`
	Content  string         `json:"content"`
	IsError  bool           `json:"is_error"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// ToolView is a tool as it is listed and shown.
type ToolView struct {
	*tool.Definition
	Digest writ.Digest `json:"digest"`
}

// Health is the answer of GET /v1/health.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Policy  string `json:"policy"`
}

func (s *Server) agentRoutes(mux *http.ServeMux) *http.ServeMux {
	mux.HandleFunc("POST /v1/calls", s.call)
	mux.HandleFunc("GET /v1/tools", s.tools)
	mux.HandleFunc("GET /v1/tools/{name}", s.tool)
	mux.HandleFunc("GET /v1/health", s.health)
	return mux
}

func readAll(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, writ.Fail(writ.TooLarge, "the request is larger than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes", nil)
	}
	if err != nil {
		return nil, writ.Fail(writ.Invalid, "the request did not arrive whole", err)
	}
	return body, nil
}

// caller authenticates an agent by its bearer token.
func (s *Server) caller(r *http.Request) (engine.Caller, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "send the agent's token as Authorization: Bearer …; with the CLI, set WRIT_TOKEN", nil)
	}
	who, err := s.engine.Authenticate(strings.TrimSpace(token))
	return who, err
}

// maxPatience is how long a request waits for a person; the caller comes back.
const maxPatience = 5 * time.Minute

func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	who, err := s.caller(r)
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	done, err := s.begin(who.Token)
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	defer done()
	var req CallRequest
	if err := read(r, &req); err != nil {
		s.problem(w, r, err, "")
		return
	}
	wait, err := patience(r.URL.Query().Get("wait"))
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	out, err := s.engine.Do(r.Context(), engine.Call{
		Agent: who.Agent, Token: who.Token, Session: cmp.Or(who.Session, req.Session), Task: req.Task,
		Tool: req.Tool, Args: req.Args, Door: "http", Patience: wait,
	})
	if err != nil {
		s.problem(w, r, err, out.CallID)
		return
	}
	s.reply(w, http.StatusOK, CallReply{out.CallID, out.Content, out.IsError, out.Metadata})
}

func patience(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || time.Duration(n)*time.Second > maxPatience {
		return 0, writ.Fail(writ.Invalid, "wait must be a number of seconds from 0 to 300", nil)
	}
	return time.Duration(n) * time.Second, nil
}

// viewer is the agent of the token, or, on the operator's socket without a token,
// nobody in particular, who sees all.
func (s *Server) viewer(r *http.Request) (string, error) {
	if r.Header.Get("Authorization") == "" && isOperator(r) {
		return "", nil
	}
	who, err := s.caller(r)
	return who.Agent, err
}

func isOperator(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ Network() string })
	return ok && addr.Network() == "unix"
}

func (s *Server) tools(w http.ResponseWriter, r *http.Request) {
	agent, err := s.viewer(r)
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	views := []ToolView{}
	for _, t := range s.engine.Tools(agent) {
		views = append(views, ToolView{&t.Definition, t.Digest})
	}
	s.reply(w, http.StatusOK, views)
}

func (s *Server) tool(w http.ResponseWriter, r *http.Request) {
	agent, err := s.viewer(r)
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	t, err := s.engine.Tool(agent, r.PathValue("name"))
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	s.reply(w, http.StatusOK, ToolView{&t.Definition, t.Digest})
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	s.reply(w, http.StatusOK, Health{"ok", engine.Version(), s.engine.Config().Digest.String()})
}
