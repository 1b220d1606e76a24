package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

// exchange is one request on its way through its route.
type exchange struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	rt    *router
	route *route

	who      engine.Caller // the agent that asks; none: the zero Caller
	operator bool          // nothing that makes it an agent, on the operator's door
	query    map[string]string
	body     any    // a pointer to what route.body is
	call     string // the id of the call it made, once known
}

// body is what arrived, as the route declares it.
func body[T any](x *exchange) T { return *x.body.(*T) }

// answer takes the request through: who asks, what for, then the route's own work.
func (x *exchange) answer() {
	defer x.survive()
	done, err := x.admit()
	defer done()
	if err == nil {
		err = x.readQuery()
	}
	if err == nil && !x.route.raw {
		err = x.readBody()
	}
	if err == nil && x.who.Token != "" {
		// The body may have taken its time, and the token may be gone by now.
		x.who, err = x.caller(x.r.Header.Values("Authorization"))
	}
	if err == nil && x.route.stream != nil {
		err = x.route.stream(x)
	}
	var v any
	if err == nil && x.route.run != nil {
		v, err = x.route.run(x)
	}
	switch {
	case err != nil:
		x.challenge(err)
		x.problem(x.w, x.r, err, x.call)
	case x.route.run != nil:
		x.reply(x.w, x.r, v)
	}
}

// survive answers for a route that panicked: the caller is told, and so is the log.
func (x *exchange) survive() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		x.problem(x.w, x.r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), x.call)
	}
}

// admit finds out who asks, and holds them to whom the route is for.
func (x *exchange) admit() (done func(), err error) {
	done = func() {}
	header := x.r.Header.Values("Authorization")
	named := len(x.r.Header.Values(agentHeader)) > 0
	x.operator = len(header) == 0 && !named && x.rt.door == operatorDoor
	free := x.route.who == anyone || x.route.who == local && (x.operator || fromLoopback(x.r))
	if free || x.operator && (x.route.who == operator || x.route.who == either) {
		return done, nil
	}
	if x.who, err = x.caller(header); err != nil {
		return done, err
	}
	if x.route.who == operator && named {
		return done, writ.Fail(writ.Denied, "this is for the operator, and "+agentHeader+" makes you that agent; leave it out", nil)
	}
	if x.route.who == operator {
		return done, writ.Fail(writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out", nil)
	}
	return x.begin(x.engine.Root(x.who.Agent))
}
