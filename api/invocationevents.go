package api

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// streamInvocations sends what happens to calls, as streamEvents sends entries.
func streamInvocations(x *exchange) error {
	seq, err := x.from(-1)
	if err != nil {
		return err
	}
	return x.stream(seq, never, func(page []store.Entry) (string, bool, error) {
		var out strings.Builder
		for _, e := range page {
			if !x.operator && !x.engine.Below(e.Agent, x.who.Agent) {
				continue
			}
			if _, err := appendEvents(&out, e); err != nil {
				return "", false, err
			}
		}
		return out.String(), false, nil
	})
}

// streamInvocation sends what happens to one call, from its beginning, and ends with
// it. A call whose arguments a person changed goes on as the one they made of it.
func streamInvocation(x *exchange) error {
	call, err := x.invocation(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	first, err := x.engine.Store().FirstOf(x.r.Context(), call.ID)
	if err != nil {
		return err
	}
	seq, err := x.from(first - 1)
	if err != nil {
		return err
	}
	of := map[string]bool{call.ID: true}
	for call.Replaced != "" {
		if call, err = x.engine.Invocation(x.r.Context(), "", call.Replaced); err != nil {
			return err
		}
		of[call.ID] = true
	}
	end := int64(never)
	if call.Completed != "" { // nothing more comes: whoever has seen its end is not kept waiting for another
		if end, err = x.ledgerEnd(); err != nil {
			return err
		}
	}
	return x.stream(seq, end, func(page []store.Entry) (text string, last bool, err error) {
		var out strings.Builder
		for _, e := range page {
			if !of[e.Call] && !of[editOf(e)] {
				continue
			}
			of[e.Call] = true
			over, err := appendEvents(&out, e)
			if err != nil {
				return "", false, err
			}
			last = last || over
		}
		return out.String(), last, nil
	})
}

// editOf is the call that the one of an entry was made of, by a person.
func editOf(e store.Entry) string {
	var body struct {
		Data struct {
			EditOf string `json:"edit_of"`
		} `json:"data"`
	}
	_ = json.Unmarshal([]byte(e.Body), &body) // an entry without it is no edit
	return body.Data.EditOf
}

// appendEvents writes an entry's events. The last of them carries the entry's number,
// so that a reader who comes back misses none. over says that the call has ended.
func appendEvents(out *strings.Builder, e store.Entry) (over bool, err error) {
	all := approval.Events(e)
	for n, ev := range all {
		data, err := wire.Plain(ev)
		if err != nil {
			return false, err
		}
		if n == len(all)-1 {
			fmt.Fprintf(out, "id: %d\n", e.Seq)
		}
		fmt.Fprintf(out, "event: %s\ndata: %s\n\n", ev.Name, data)
		over = ev.Ends()
	}
	return over, nil
}
