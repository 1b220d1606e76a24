package upstream

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/tool"
)

func TestName(t *testing.T) {
	long := strings.Repeat("long_", 20)
	for _, n := range []struct{ server, tool, want, bare string }{
		{"github", "search", "github__search", "search"},
		{"my_server", "a__b", "my_server__a__b", "a__b"},
		{"s", "files.read", "s__files_read_b42e0134", "files_read_b42e0134"},
		{"t", "files.read", "t__files_read_2df0bcd1", "files_read_2df0bcd1"},
		{"s", "files/read", "s__files_read_3d6f5d4c", "files_read_3d6f5d4c"},
		{"s", "größe", "s__gr__e_82d47a0c", "gr__e_82d47a0c"},
		{"s", long, "s__" + long[:52] + "_" + Name("s", long)[56:], long[:55] + "_" + BareName("s", long)[56:]},
		{"s", long[:61], "s__" + long[:61], long[:61]},
	} {
		got, bare := Name(n.server, n.tool), BareName(n.server, n.tool)
		if got != n.want || bare != n.bare {
			t.Errorf("%s, %s: %s, %s", n.server, n.tool, got, bare)
		}
		if !tool.ValidName(got) || !tool.ValidName(bare) {
			t.Errorf("%s or %s is no name", got, bare)
		}
	}
}

func TestNames(t *testing.T) {
	stolen := Name("s", "x y")
	a, b := Origin{Server: "s", Tool: "x"}, Origin{Server: "u", Tool: "x"}
	n, refused := NewNames([]Origin{
		a, b,
		{Server: "s", Tool: "x y"}, {Server: "s", Tool: strings.TrimPrefix(stolen, "s__")}, // one pretends to be the other
		{Server: "p", Tool: "find", Bare: true}, {Server: "q", Tool: "Find", Bare: true},
		{Server: "p", Tool: "read_file", Bare: true},
		{Server: "p", Tool: "own", Bare: true},
		{Server: "p", Tool: "s__x", Bare: true}, {Server: "p", Tool: "S__new", Bare: true}, {Server: "p", Tool: "p__mine", Bare: true}, {Server: "p", Tool: "far__off", Bare: true},
	}, []string{"s", "u", "p", "q"}, "READ_FILE")
	var who []string
	for _, r := range refused {
		who = append(who, r.Name)
	}
	if d := cmp.Diff([]string{"s: x y", "s: " + strings.TrimPrefix(stolen, "s__"), "p: find", "q: Find", "p: read_file", "p: s__x", "p: S__new"}, who); d != "" {
		t.Error(d)
	}
	if refused[2].With != "q" || refused[2].Why != "its name find is that of a tool of server q too, and neither can be used; disable one, or have their servers' names stand before them (prefix: name)" {
		t.Error(refused[2])
	}
	if refused[4].With != "" || refused[4].Why != "its name read_file is another tool's too; rename or disable one of them" {
		t.Error(refused[4])
	}
	for name, want := range map[string]Origin{"s__x": a, "u__x": b, "own": {Server: "p", Tool: "own", Bare: true}, "p__mine": {Server: "p", Tool: "p__mine", Bare: true}, "far__off": {Server: "p", Tool: "far__off", Bare: true}} {
		if got, ok := n.Origin(name); !ok || got != want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
		if got, ok := n.Of(want); !ok || got != name {
			t.Errorf("%+v: %s, %v", want, got, ok)
		}
	}
	for _, name := range []string{stolen, "find", "Find", "read_file", "S__X", "S__new"} {
		if o, ok := n.Origin(name); ok {
			t.Errorf("%s is %+v", name, o)
		}
	}
}
