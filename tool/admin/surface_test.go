package admin

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

var update = flag.Bool("update", false, "write what came out into testdata, to be read before it is kept")

// The surface is a contract: names, what builds them, and what they take.
func TestSurface(t *testing.T) {
	const path = "testdata/surface.txt"
	var out strings.Builder
	for _, o := range surface() {
		schema, err := o.schema()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s%s %s\n", o.name, o.kind, elsewhere(o), wire.Digest(string(schema)).Short())
		fmt.Fprintf(&out, "  %s\n  %s\n  %s\n", o.title, o.describe(), schema)
	}
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("-update writes this down once it is meant: %s", diff)
	}
}

func elsewhere(o operation) string {
	switch {
	case o.person != "":
		return " (a person)"
	case o.gap != "":
		return " (not here)"
	}
	return ""
}

// Every operation is built by its kind, has a name of the form, and is a tool that has
// to be named, reaches nothing and says the same of itself to everybody.
func TestDefinitions(t *testing.T) {
	tools, err := Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	ops := surface()
	if len(tools) != len(ops) || len(ops) < 40 {
		t.Fatalf("%d tools of %d operations", len(tools), len(ops))
	}
	form := regexp.MustCompile(`^writ_(agents|approvals|audit|config|connections|egress|health|invocations|policy|sandbox|tools|upstreams)_[a-z]+(_[a-z]+)*$`)
	for i, d := range tools {
		o := ops[i]
		if !form.MatchString(d.Name) || d.Name != o.name || d.Title == "" || !strings.HasSuffix(d.Description, ".") {
			t.Errorf("%s: %q %q", d.Name, d.Title, d.Description)
		}
		class, dangerous := d.Declared()
		if !d.Named || class != writ.ClassNone || dangerous || d.Output == nil || d.Category != "other" {
			t.Errorf("%s: %+v", d.Name, d.Definition)
		}
		action, risk := map[kind]string{readOp: "code:read", writeOp: "code:write", adminOp: "code:write"}[o.kind], map[kind]string{readOp: "low", writeOp: "medium", adminOp: "high"}[o.kind]
		if o.person != "" || o.gap != "" {
			action, risk = "code:read", "low"
		}
		if string(d.Action) != action || d.Policy.Risk.String() != risk || *d.Hints.ReadOnly != (o.kind == readOp) {
			t.Errorf("%s is %s of %s, risk %s", d.Name, o.kind, d.Action, d.Policy.Risk)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(o.params, func(p param) bool { return p.name == name })
		}
		if has("confirm") != (o.kind == adminOp) || has("reason") != (o.kind == adminOp) || has("limit") != o.list || has("offset") != o.list || has("actor") || has("person") {
			t.Errorf("%s takes %v", d.Name, o.params)
		}
		if (o.person != "" && o.kind != adminOp) || o.list && o.kind != readOp {
			t.Errorf("%s is %s", d.Name, o.kind)
		}
		var schema struct{ Required []string }
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		switch first := schema.Required; {
		case o.person != "" && len(first) > 0:
			t.Errorf("%s is a person's and requires %v", d.Name, first)
		case o.person == "" && o.kind == adminOp && (len(first) < 2 || first[0] != "confirm" || first[1] != "reason"):
			t.Errorf("%s requires %v", d.Name, first)
		}
	}
}
