package engine

import (
	"encoding/json"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
)

// TestMayAsk: a server asks a client only for what the operator relays, and for nothing
// where one of its questions is something else.
func TestMayAsk(t *testing.T) {
	const form, sample, call = `"a":{"method":"elicitation/create","params":{}}`, `"b":{"method":"sampling/createMessage"}`, `"c":{"method":"tools/call"}`
	for what, c := range map[string]struct {
		relay []config.Relay
		asked string
		may   bool
	}{
		"what is relayed":       {[]config.Relay{"elicitation"}, form, true},
		"both":                  {[]config.Relay{"elicitation", "sampling"}, form + "," + sample, true},
		"nothing is relayed":    {nil, form, false},
		"one of two is not":     {[]config.Relay{"elicitation"}, form + "," + sample, false},
		"no request to clients": {[]config.Relay{"elicitation", "sampling", "roots"}, call, false},
	} {
		s := &server{name: "srv", cfg: config.Upstream{Relay: c.relay}}
		err := s.mayAsk(json.RawMessage(`{"resultType":"input_required","inputRequests":{` + c.asked + `}}`))
		if (err == nil) != c.may || err != nil && writ.KindOf(err) != writ.Denied {
			t.Errorf("%s: %v", what, err)
		}
	}
}
