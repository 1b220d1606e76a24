package api

import (
	"errors"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/wire"
)

var statuses = map[writ.Kind]int{
	writ.Invalid: 400, writ.Unauthenticated: 401, writ.NotFound: 404, writ.Denied: 403, writ.Pending: 202, writ.Rejected: 403,
	writ.Expired: 403, writ.Stopped: 403, writ.Cancelled: 409, writ.Changed: 409, writ.Conflict: 409, writ.TooLarge: 413,
	writ.SandboxUnavailable: 503, writ.StoreUnavailable: 503, writ.Unknown: 500, writ.Internal: 500,
}

// refused is a refusal of HTTP itself, whose status says more than its kind.
type refused struct {
	status int
	kind   writ.Kind
	detail string
}

func (e refused) Error() string { return e.detail }

// problem answers with what may be said of err (I15); the rest goes to the log.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error, call string) {
	kind, msg := writ.Public(err)
	status, known := statuses[kind]
	if !known {
		status = http.StatusInternalServerError
	}
	var http1 refused
	if errors.As(err, &http1) {
		status, kind, msg = http1.status, http1.kind, http1.detail
	}
	id := w.Header().Get("X-Request-ID")
	if status >= 500 {
		level := slog.LevelError
		if r.Context().Err() != nil {
			level = slog.LevelInfo // the caller went away, or never sent it all
		}
		s.log.Log(r.Context(), level, "request failed", "request", id, "path", r.URL.Path, "call", call, "kind", kind, "err", err)
	}
	p := client.Problem{
		Type: "urn:writ:problem:" + string(kind), Title: http.StatusText(status), Status: status, Detail: msg, Instance: id, Kind: kind, CallID: call,
	}
	var e *writ.Error
	if errors.As(err, &e) {
		p.Approval = e.Ref
	}
	if kind == writ.Pending && p.Approval != "" {
		p.Resume = "/v1/invocations/" + p.Approval
		w.Header().Set("Location", p.Resume)
	}
	b, _ := wire.Plain(p) // strings and a number
	s.write(w, status, "application/problem+json", b)
}

// reply answers with v. A list in it is never null.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, v any) {
	whole := reflect.New(reflect.TypeOf(v)).Elem()
	whole.Set(reflect.ValueOf(v))
	fillLists(whole)
	b, err := wire.Plain(whole.Interface())
	if err != nil {
		s.problem(w, r, err, "")
		return
	}
	s.write(w, http.StatusOK, "application/json", b)
}

func (s *Server) write(w http.ResponseWriter, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		s.log.Debug("the answer was not taken", "err", err)
	}
}

// fillLists replaces nil slices below v by empty ones.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillLists(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // JSON as it is
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillLists(v.Index(i))
		}
	}
}
