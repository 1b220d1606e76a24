package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/wire"
)

// exchange is one request on its way through its route.
type exchange struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	rt    *router
	route *route

	who      engine.Caller // the token's agent; none: the zero Caller
	operator bool          // no token, on the operator's door
	query    map[string]string
	body     any    // a pointer to what route.body is
	call     string // the id of the call it made, once known
}

// body is what arrived, as the route declares it.
func body[T any](x *exchange) T { return *x.body.(*T) }

// answer takes the request through: who asks, what for, then the route's own work.
func (x *exchange) answer() {
	done, err := x.admit()
	defer done()
	if err == nil {
		err = x.readQuery()
	}
	if err == nil {
		err = x.readBody()
	}
	if err == nil {
		err = x.unhurried()
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
		x.problem(x.w, x.r, err, x.call)
	case x.route.run != nil:
		x.reply(x.w, x.r, v)
	}
}

// unhurried lets a request that has arrived take as long as its route does: the
// deadline for reading it would end its context otherwise.
func (x *exchange) unhurried() error {
	return http.NewResponseController(x.w).SetReadDeadline(time.Time{})
}

// admit finds out who asks, and holds them to whom the route is for.
func (x *exchange) admit() (done func(), err error) {
	done = func() {}
	header := x.r.Header.Values("Authorization")
	x.operator = len(header) == 0 && x.rt.door == operatorDoor
	free := x.route.who == anyone || x.route.who == local && (x.operator || fromLoopback(x.r))
	if free || x.operator && (x.route.who == operator || x.route.who == either) {
		return done, nil
	}
	if x.who, err = x.caller(header); err != nil {
		return done, err
	}
	if x.route.who == operator {
		return done, writ.Fail(writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out", nil)
	}
	return x.begin(x.who.Token)
}

// caller authenticates an agent by its bearer token.
func (x *exchange) caller(header []string) (engine.Caller, error) {
	if len(header) != 1 {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "send the agent's token as Authorization: Bearer …; with the CLI, set WRIT_TOKEN", nil)
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return engine.Caller{}, writ.Fail(writ.Unauthenticated, "send the agent's token as Authorization: Bearer …; with the CLI, set WRIT_TOKEN", nil)
	}
	return x.engine.Authenticate(strings.TrimSpace(token))
}

// readQuery takes the parameters that the route declares, each once, and no others.
func (x *exchange) readQuery() error {
	x.query = map[string]string{}
	given, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return writ.Fail(writ.Invalid, "the query does not read; escape it as a URL demands", err)
	}
	for name, values := range given {
		i := slices.IndexFunc(x.route.query, func(p param) bool { return p.name == name })
		if i < 0 {
			return writ.Fail(writ.Invalid, fmt.Sprintf("unknown query parameter %s; %s", quoted(name), takes(x.route.query)), nil)
		}
		if len(values) != 1 {
			return writ.Fail(writ.Invalid, name+" is given twice in the query; give it once", nil)
		}
		if err := x.route.query[i].check(values[0]); err != nil {
			return err
		}
		x.query[name] = values[0]
	}
	return nil
}

func takes(params []param) string {
	if len(params) == 0 {
		return "this path takes none"
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return "this path takes " + strings.Join(names, ", ")
}

func (p *param) check(v string) error {
	if p.number {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < p.least || n > p.most || strconv.FormatInt(n, 10) != v {
			return writ.Fail(writ.Invalid, fmt.Sprintf("%s is a whole number from %d to %d", p.name, p.least, p.most), nil)
		}
		return nil
	}
	if len(p.among) > 0 && !slices.Contains(p.among, v) {
		return writ.Fail(writ.Invalid, fmt.Sprintf("%s: %s is none of %s", p.name, quoted(v), strings.Join(p.among, ", ")), nil)
	}
	return nil
}

// number is a parameter's value, or what stands for it when it is left out.
func (x *exchange) number(name string, missing int64) int64 {
	n, err := strconv.ParseInt(x.query[name], 10, 64)
	if err != nil { // it was checked, so it is not there
		return missing
	}
	return n
}

// wait is how long the caller waits for a person.
func (x *exchange) wait() time.Duration { return time.Duration(x.number("wait", 0)) * time.Second }

// readBody reads and decodes what the route takes. What takes no body takes an
// empty object as well, from clients that always send one; a GET takes nothing.
func (x *exchange) readBody() error {
	raw, err := readAll(x.r)
	if err != nil {
		return err
	}
	if len(raw) > 0 || x.route.body != nil {
		if x.route.method == http.MethodGet {
			return writ.Fail(writ.Invalid, "a GET has no body; leave it out", nil)
		}
		if media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || media != "application/json" {
			return writ.Fail(writ.Invalid, "send the body as Content-Type: application/json", nil)
		}
	}
	if x.route.body == nil {
		if len(raw) > 0 {
			return wire.Decode(raw, &struct{}{})
		}
		return nil
	}
	into := reflect.New(reflect.TypeOf(x.route.body))
	if err := wire.Decode(raw, into.Interface()); err != nil {
		return err
	}
	x.body = into.Interface()
	return complete(raw, into.Elem())
}

// complete refuses a body without a field that it must have: left out, a false or
// a zero would decide something that nobody said.
func complete(raw []byte, v reflect.Value) error {
	var given map[string]json.RawMessage
	for _, f := range required(v.Type()) {
		if !v.FieldByIndex(f.Index).IsZero() {
			continue
		}
		if given == nil {
			if err := json.Unmarshal(raw, &given); err != nil {
				return err
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if text, ok := given[name]; !ok || string(text) == "null" {
			return writ.Fail(writ.Invalid, fmt.Sprintf("JSON: field %q is missing; send it", name), nil)
		}
	}
	return nil
}

func readAll(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, writ.Fail(writ.TooLarge, fmt.Sprintf("the request is larger than %d bytes; send less", tooLarge.Limit), nil)
	}
	if err != nil {
		return nil, writ.Fail(writ.Invalid, "the request did not arrive whole; send it again", err)
	}
	return b, nil
}

// quoted is what a caller wrote, fit for one line of a message.
func quoted(s string) string {
	if len(s) > 64 {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[:64], "")) + "…"
	}
	return strconv.QuoteToASCII(s)
}
