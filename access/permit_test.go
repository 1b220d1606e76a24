package access

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
)

// TestPermit reads testdata/permit.txt: one agent and one tool a row, what is
// answered and which rule says so.
func TestPermit(t *testing.T) {
	raw, err := os.ReadFile("testdata/permit.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(raw) {
		f := strings.Split(strings.TrimSpace(string(line)), "|")
		if len(f) == 1 {
			continue // a comment or an empty line
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if len(f) != 7 {
			t.Fatalf("%s has %d columns", line, len(f))
		}
		n++
		a := agentOf(t, f[0], f[1], f[2], f[3])
		category := action.Category(f[5])
		r := a.Permit(f[4], category)
		if got := fmt.Sprint(r.Effect, " ", r.Source); got != f[6] {
			t.Errorf("%s: %s (%s)", strings.TrimSpace(string(line)), got, r.Text)
		}
		if r.Text == "" || r.Where == "" {
			t.Errorf("%s: the reason says %q at %q", line, r.Text, r.Where)
		}
	}
	if n < 80 {
		t.Errorf("the table has %d rows, not 80", n)
	}
}

// agentOf reads the columns level, role, allowed and denied. A role is a built-in
// one, or "+words -words" for one of the operator's own; "+" alone is its empty
// allowed list. A hyphen is none.
func agentOf(t *testing.T, level, role, allowed, denied string) *Agent {
	t.Helper()
	a := &Agent{Name: "bot", Level: Set[Level]{At: "level"}}
	level, shut := strings.CutSuffix(level, "!") // deployment: false
	if err := a.Level.V.UnmarshalText([]byte(level)); err != nil {
		t.Fatal(err)
	}
	a.Constraints = Defaults(a.Level.V, registry(t))
	if shut {
		a.Constraints.Deployment = Set[bool]{false, "deployment"}
	}
	a.Allowed, a.Denied = listOf(t, allowed), listOf(t, denied)
	if r, ok := Roles()[role]; ok {
		a.Role = &r
	} else if role != "-" {
		r := Role{Name: "mine", At: "role"}
		for _, w := range strings.Fields(role) {
			if rest, ok := strings.CutPrefix(w, "-"); ok {
				r.Denied = append(r.Denied, listOf(t, rest)...)
			} else if rest := strings.TrimPrefix(w, "+"); rest == "" {
				r.Allowed = List{}
			} else {
				r.Allowed = append(r.Allowed, listOf(t, rest)...)
			}
		}
		a.Role = &r
	}
	return a
}

func listOf(t *testing.T, words string) List {
	t.Helper()
	if words == "-" {
		return nil
	}
	l := List{}
	for _, w := range strings.Fields(words) {
		e, err := ParseEntry(w)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, Set[Entry]{e, "list"})
	}
	return l
}

// TestDiscovery is permitted to every agent, whatever its lists say.
func TestDiscovery(t *testing.T) {
	for _, l := range Levels() {
		for _, role := range append(roleNames(), "-", "+", "+stat -stat") {
			for _, lists := range [][2]string{{"-", "-"}, {"stat", "*"}, {"-", "discovery"}} {
				a := agentOf(t, l.String(), role, lists[0], lists[1])
				for _, tool := range Discovery {
					if r := a.Permit(tool, action.Other); r.Effect != writ.Allow || r.Source != "discovery" {
						t.Errorf("%s %s %v: %s: %+v", l, role, lists, tool, r)
					}
				}
				if r := a.Permit("List_Tools", "bogus"); r.Source == "discovery" {
					t.Error("another tool passes for discovery")
				}
			}
		}
	}
}

func roleNames() []string {
	var names []string
	for n := range Roles() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// TestRoles is §14.1: what each built-in role names, and nothing else at any level.
func TestRoles(t *testing.T) {
	want := map[string]string{
		"supervisor": "read_file search_files stat list_directory list_tools load_tool load_tool_resource writ_stop writ_agents",
		"developer": `read_file search_files stat list_directory write_file edit_file delete_file move_file shell_command shell_job
			code_runner web_fetch http_request html_extract list_tools load_tool load_tool_resource writ_stop writ_agents`,
		"reviewer": "read_file search_files stat list_directory list_tools load_tool load_tool_resource writ_stop writ_agents",
	}
	if len(Roles()) != len(want) {
		t.Errorf("roles %v", roleNames())
	}
	for name, tools := range want {
		for _, l := range Levels() {
			a := agentOf(t, l.String(), name, "-", "-")
			for _, tool := range every {
				if got, want := a.Permit(tool, action.Other).Effect == writ.Allow, slices.Contains(strings.Fields(tools), tool); got != want {
					t.Errorf("%s at %s: %s %t", name, l, tool, got)
				}
			}
		}
		if r := Roles()[name]; r.Name != name || r.At != BuiltIn || r.Denied != nil || r.Level != nil || r.Autonomy != nil {
			t.Errorf("%+v", r)
		}
	}
}

// TestZeroAgent: an agent that nobody filled in may use nothing but discovery.
func TestZeroAgent(t *testing.T) {
	for _, tool := range every {
		for _, c := range action.Categories() {
			if r := new(Agent).Permit(tool, c); (r.Effect == writ.Allow) != slices.Contains(Discovery, tool) {
				t.Errorf("%s in %s: %+v", tool, c, r)
			}
		}
	}
}
