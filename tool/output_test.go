package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
)

// A result is what the definition promised, or an error that says so.
func TestOutputSchema(t *testing.T) {
	for _, tt := range []struct{ content, isError string }{
		{`{"passed": 3}`, ""},
		{`{"passed": "3"}`, `output: argument "passed": want an integer, not a string`},
		{`{}`, `output: argument "passed" is missing`},
		{`three passed`, "it is not a JSON object"},
		{`{"passed":1,"passed":2}`, "it is not a JSON object"},
	} {
		x, err := New(Definition{
			Name: "count", Category: action.Other, Action: "code:read", Schema: json.RawMessage(`{"type":"object"}`),
			Output: json.RawMessage(`{"type":"object","required":["passed"],"properties":{"passed":{"type":"integer"}}}`),
		}, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{Content: tt.content}, nil })
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.Run(t.Context(), writ.Writ{})
		if err != nil || res.IsError != (tt.isError != "") || !strings.Contains(res.Content, tt.isError) {
			t.Errorf("%s: %+v %v", tt.content, res, err)
		}
		if v, _ := res.Metadata["structured"].(map[string]any); (v["passed"] == 3.0) != (tt.isError == "") {
			t.Errorf("%s: structured %v", tt.content, res.Metadata)
		}
		if !strings.Contains(res.Content, tt.content) {
			t.Errorf("%s: the output is lost: %s", tt.content, res.Content)
		}
	}
}
