package approval

import (
	"encoding/json"
	"strings"

	"github.com/writ-run/writ/store"
)

// The ledger is the outbox: an entry is written in the transaction that changes the
// store, has a number, and is never lost or written twice. Events are what it says of
// invocations, in the words that other programs wait for.

// Event is something that happened to an invocation.
type Event struct {
	Name       string          `json:"event"`
	Invocation string          `json:"invocation"`
	Agent      string          `json:"agent"`
	Person     string          `json:"person,omitempty"` // who decided
	At         string          `json:"at"`
	Data       json.RawMessage `json:"data"`
}

// Ends reports whether nothing more happens to the invocation.
func (e Event) Ends() bool {
	switch strings.TrimPrefix(e.Name, eventPrefix) {
	case "requested", "approval_required", "approved", "started":
		return false
	}
	return true
}

const eventPrefix = "tool_invocation_"

// Events is what an entry of the ledger says of an invocation, in order; nothing
// where it is about something else.
func Events(e store.Entry) []Event {
	var body struct {
		Person string          `json:"person"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal([]byte(e.Body), &body) != nil {
		return nil
	}
	var of struct {
		Status   string `json:"status"`
		Approval string `json:"approval"`
		Error    string `json:"error"`
	}
	_ = json.Unmarshal(body.Data, &of) // an entry without either has neither
	var names []string
	switch e.Kind {
	case "approval.requested":
		names = []string{"requested", "approval_required"}
	case "approval.approved", "approval.granted":
		names = []string{"approved"}
	case "approval.rejected":
		names = []string{"rejected"}
	case "approval.expired":
		names = []string{"expired"}
	case "call.started":
		if names = []string{"started"}; of.Approval == "" {
			names = []string{"requested", "started"}
		}
	case "call.refused":
		switch {
		case of.Approval == "":
			names = []string{"requested", "denied"}
		case of.Error == "rejected", of.Error == "expired", of.Error == "cancelled": // which was said of the request already
		default:
			names = []string{"denied"}
		}
	case "call.finished", "call.unknown", "call.interrupted":
		names = []string{of.Status}
	case "call.cancelled":
		names = []string{"cancelled"}
	}
	var out []Event
	for _, n := range names {
		out = append(out, Event{Name: eventPrefix + n, Invocation: e.Call, Agent: e.Agent, Person: body.Person, At: e.At, Data: body.Data})
	}
	return out
}
