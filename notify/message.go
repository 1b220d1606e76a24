package notify

import (
	"encoding/json"
	"fmt"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/store"
)

// Message is one event, as others are told of it.
type Message struct {
	ID         string `json:"id"` // the same however often it is sent
	Event      string `json:"event"`
	At         string `json:"at"`
	Invocation string `json:"invocation"`
	Tool       string `json:"tool"`
	Agent      string `json:"agent"`
	Person     string `json:"person,omitempty"`  // who decided
	Expires    string `json:"expires,omitempty"` // of a request: until when it can be answered
	Answer     string `json:"answer"`            // the command that shows it, where a person can answer
	Link       string `json:"link,omitempty"`    // the same over HTTP, where the operator says at which address
}

const (
	asks = "tool_invocation_approval_required"
	test = "webhook_test"
)

// messages is what an entry of the ledger has to tell, in order; one for each of its events.
func messages(e store.Entry, base string) []Message {
	var out []Message
	for n, ev := range approval.Events(e) {
		var of struct {
			Tool    string `json:"tool"`
			Expires string `json:"expires"`
		}
		_ = json.Unmarshal(ev.Data, &of) // an entry without either has neither
		m := Message{
			ID: fmt.Sprintf("evt_%s_%d_%d", e.Chain, e.Seq, n), Event: ev.Name, At: ev.At,
			Invocation: ev.Invocation, Tool: of.Tool, Agent: ev.Agent, Person: ev.Person, Answer: "writ invocation show " + ev.Invocation,
		}
		kind := "invocations"
		if m.Event == asks {
			kind, m.Expires, m.Answer = "approvals", of.Expires, "writ approval show "+ev.Invocation
		}
		if base != "" {
			m.Link = base + "/v1/" + kind + "/" + ev.Invocation
		}
		out = append(out, m)
	}
	return out
}

// body is the message as it is sent. What others wrote is escaped for whoever reads JSON
// into a page as well.
func (m Message) body() ([]byte, error) { return json.Marshal(m) }
