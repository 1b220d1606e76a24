package api

import (
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

func openSession(x *exchange) (any, error) {
	s, err := x.engine.OpenSession(x.r.Context(), x.asCall("", ""), body[client.SessionRequest](x).Name)
	return client.Session(s), err
}

func listSessions(x *exchange) (any, error) {
	at, err := x.before("sessions")
	if err != nil {
		return nil, err
	}
	rows, err := x.engine.Store().SessionsBefore(x.r.Context(), x.who.Token, at[0], at[1], x.limit()+1)
	view := func(s store.Session) client.Session { return client.Session(s) }
	return pageOf(rows, x.limit(), view, func(s store.Session) string { return cursor("sessions", s.Opened, s.ID) }), err
}

// before is a cursor of time and id, empty at the beginning.
func (x *exchange) before(list string) ([]string, error) {
	at, err := x.at(list, 2)
	if at == nil {
		at = []string{"", ""}
	}
	return at, err
}

func showSession(x *exchange) (any, error) {
	s, err := x.session(x.r.PathValue("id"))
	return client.Session(s), err
}

// session finds one that the caller may see: its token's own, and the one that a
// delegated agent works in. Another's is as if it were not there.
func (x *exchange) session(id string) (store.Session, error) {
	s, ok, err := x.engine.Store().Session(x.r.Context(), id)
	if err != nil {
		return store.Session{}, err
	}
	if !ok || !x.operator && s.Token != x.who.Token && s.ID != x.who.Session {
		return store.Session{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no session %s; 'writ session list' shows them", quoted(id)), nil)
	}
	return s, nil
}

func endSession(x *exchange) (any, error) {
	return client.Status{Status: "ended"}, x.engine.EndSession(x.r.Context(), x.who.Token, x.r.PathValue("id"), "ended")
}

func startTask(x *exchange) (any, error) {
	in := body[client.TaskRequest](x)
	t, err := x.engine.StartTask(x.r.Context(), x.asCall(in.Session, in.Name))
	return client.Task(t), err
}

func listTasks(x *exchange) (any, error) {
	at, err := x.before("tasks")
	if err != nil {
		return nil, err
	}
	rows, err := x.engine.Store().TasksBefore(x.r.Context(), x.who.Token, at[0], at[1], x.limit()+1)
	view := func(t store.Task) client.Task { return client.Task(t) }
	return pageOf(rows, x.limit(), view, func(t store.Task) string { return cursor("tasks", t.Opened, t.ID) }), err
}

func showTask(x *exchange) (any, error) {
	id := x.r.PathValue("id")
	t, ok, err := x.engine.Store().Task(x.r.Context(), id)
	if err != nil {
		return nil, err
	}
	if ok {
		_, err = x.session(t.Session)
	}
	if !ok || err != nil {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no task %s; 'writ task list' shows them", quoted(id)), err)
	}
	return client.Task(t), nil
}

func endTask(x *exchange) (any, error) {
	return client.Status{Status: "ended"}, x.engine.EndTask(x.r.Context(), x.who.Token, "", x.r.PathValue("id"), "ended")
}

func rateTask(x *exchange) (any, error) {
	in := body[client.RatingRequest](x)
	return client.Status{Status: "rated"}, x.engine.RateTask(x.r.Context(), x.r.PathValue("id"), in.Rating, engine.Credentials(in.By))
}
