package catalog

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

// Validators of built-in tools are made when one is called. Here all of them are, as
// they are of a tool that comes from elsewhere.
func TestSchemasOfBuiltins(t *testing.T) {
	all, err := Builtins(Sources{})
	if err != nil || len(all) < 50 {
		t.Fatal(len(all), err)
	}
	nothing := func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }
	outputs := 0
	for _, b := range all {
		if b.Runner.Kind != tool.Builtin {
			t.Errorf("%s is of kind %s", b.Name, b.Runner.Kind)
		}
		schemas := map[string]json.RawMessage{"parameters": b.Schema}
		if b.Output != nil {
			schemas["output"] = b.Output
			outputs++
		}
		for of, text := range schemas {
			if _, err := tool.New(tool.Definition{Name: b.Name, Schema: text, Asks: b.Asks, Runner: tool.Runner{Kind: tool.MCP}}, nothing); err != nil {
				t.Errorf("%s: %v", of, err)
			}
		}
	}
	if outputs == 0 {
		t.Error("no tool has an output schema")
	}
}
