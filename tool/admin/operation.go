package admin

import (
	"context"
	"fmt"

	"github.com/writ-run/writ"
)

// kind is which of the builders made an operation.
type kind string

const (
	readOp  kind = "read"
	writeOp kind = "write"
	adminOp kind = "admin"
)

// operation is one entry of the surface.
type operation struct {
	kind        kind
	name, title string
	about       string
	params      []param
	list        bool   // its data is a page of a list
	person      string // the command by which a person does it; empty: it is no person's
	gap         string // why it cannot be done here at all, and what to do instead

	do   Handler
	tell func(Event)
}

// read is an operation that changes nothing.
func read(domain, action, title, about string, params ...param) operation {
	return operation{kind: readOp, name: "writ_" + domain + "_" + action, title: title, about: about, params: params}
}

// listing is a read whose data is a page of a list.
func listing(domain, action, title, about string, params ...param) operation {
	o := read(domain, action, title, about, append(params,
		param{name: "offset", kind: number, most: maxOffset, about: "How many to leave out at the beginning; 0 when left out."},
		param{name: "limit", kind: number, least: 1, most: maxLimit, about: "How many to show; 50 when left out."})...)
	o.list = true
	return o
}

// write is an operation that an agent may do at the other front doors too.
func write(domain, action, title, about string, params ...param) operation {
	o := read(domain, action, title, about, params...)
	o.kind = writeOp
	return o
}

// admin is an operation that is not done by the way: it takes confirm and a reason.
// They are asked for before anything else, here and by the schema.
func admin(domain, action, title, about string, params ...param) operation {
	o := read(domain, action, title, about, append([]param{
		{name: "confirm", kind: truth, required: true, about: "True says that you mean it."},
		{name: "reason", kind: text, most: 500, free: true, required: true, about: "Why you do it. It is written down."},
	}, params...)...)
	o.kind = adminOp
	return o
}

// byPerson is an admin operation that only a person does, elsewhere. It requires no
// argument: a caller is not led to confirm, or to give reasons for, what no agent can do.
func byPerson(domain, action, title, command string, params ...param) operation {
	o := admin(domain, action, title, "Only a person does this: "+command+".", params...)
	o.person = command
	for i := range o.params {
		o.params[i].required = false
	}
	return o
}

func (o operation) describe() string {
	if o.person != "" || o.gap != "" {
		return o.about + " A call is answered so, and changes nothing."
	}
	return o.about
}

// answer carries a call out and wraps what came of it.
func (o operation) answer(ctx context.Context, c writ.Call) writ.Result {
	data, a, err := o.carryOut(ctx, c)
	if err == nil {
		var res writ.Result
		if res, err = o.ok(data, a); err == nil {
			return res
		}
	}
	f := faultOf(err)
	if o.tell != nil {
		o.tell(Event{Name: f.event, Operation: o.name, Actor: Actor(c), Code: f.guardrail})
	}
	return f.result()
}

// carryOut checks in this order: who calls, whether an agent can do this at all, what
// an admin operation needs, the arguments; then whether this can be done here.
func (o operation) carryOut(ctx context.Context, c writ.Call) (any, Args, error) {
	members, err := membersOf(c.Args)
	if err != nil {
		return nil, Args{}, err
	}
	if err := o.guard(c, members); err != nil {
		return nil, Args{}, err
	}
	a, err := o.parse(members)
	switch {
	case err != nil:
	case o.gap != "":
		err = unsupported(o.gap)
	case o.do == nil:
		err = errNotWired
	default:
		var data any
		data, err = o.do(ctx, c, a)
		return data, a, err
	}
	return nil, a, err
}

// Actor is who calls, for the record: an agent, and whom it acts for.
func Actor(c writ.Call) string {
	if c.Person == "" || c.Agent == "" {
		return c.Agent
	}
	return fmt.Sprintf("%s for %s", c.Agent, c.Person)
}
