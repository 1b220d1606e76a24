package mcpserver

import (
	"encoding/json"
	"testing"
)

// TestAnswers: what a client sends beside the arguments reaches a server only as the
// answer to a question that the server put.
func TestAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		asked       []string
		given, want string
	}{
		"what was asked":     {[]string{"a"}, `{"a":{"action":"accept"}}`, `{"a":{"action":"accept"}}`},
		"and something else": {[]string{"a"}, `{"a":1,"b":"rm -rf"}`, `{"a":1}`},
		"nothing was asked":  {nil, `{"b":"rm -rf"}`, ``},
		"no answers at all":  {[]string{"a"}, `null`, `{}`},
	} {
		x := &exchange{modern: true, msg: message{params: members{"inputResponses": json.RawMessage(c.given)}}}
		if fail := x.answers(c.asked); fail != nil {
			t.Fatal(fail)
		}
		if got := string(x.Round().Inputs); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
