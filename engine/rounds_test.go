package engine

import (
	"encoding/json"
	"fmt"
	"strings"
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

// TestMayAskReads: what is asked is read as clients read it, and what cannot be asked is
// refused. Members of other names, which a reader that folds case would take, say nothing.
func TestMayAskReads(t *testing.T) {
	s := &server{name: "srv", cfg: config.Upstream{Relay: []config.Relay{"elicitation"}}}
	const sample = `"a":{"method":"sampling/createMessage"}`
	many := ""
	for i := range mostQuestions + 1 {
		many += fmt.Sprintf(`,"%d":{"method":"elicitation/create"}`, i)
	}
	for raw, want := range map[string]writ.Kind{
		`{"inputRequests":{"a":{"method":"elicitation/create","Method":"sampling/createMessage"}}}`: "",
		`{"inputRequests":{"a":{"method":"sampling/createMessage","Method":"elicitation/create"}}}`: writ.Denied,
		`{"inputRequests":{` + sample + `},"InputRequests":null}`:                                   writ.Denied,
		`{"inputRequests":{` + sample + `},"INPUTREQUESTS":{"a":{"method":"elicitation/create"}}}`:  writ.Denied,
		`{"inputRequests":{"a":{"Method":"elicitation/create"}}}`:                                   writ.Invalid,
		`{"inputRequests":{"a":{"method":["elicitation/create"]}}}`:                                 writ.Invalid,
		`{"inputRequests":[]}`:                 writ.Invalid,
		`{"inputRequests":{` + many[1:] + `}}`: writ.Invalid,
		`{"inputRequests":{` + strings.Replace(many[1:], `"0":{"method":"elicitation/create"},`, "", 1) + `}}`: "",
		`{"requestState":"again"}`: "",
	} {
		if err := s.mayAsk(json.RawMessage(raw)); (err == nil) != (want == "") || err != nil && writ.KindOf(err) != want {
			t.Errorf("%.100s: %v, want %q", raw, err, want)
		}
	}
}
