package access

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/action"
)

var update = flag.Bool("update", false, "write what came out into testdata, to be read before it is kept")

func registry(t *testing.T) *action.Registry {
	t.Helper()
	r, err := action.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOpens is the table of §5.1: five levels, seventeen categories.
func TestOpens(t *testing.T) {
	open := map[Level]string{
		Custom:     "",
		Sandboxed:  "file_system code_execution version_control memory",
		Restricted: "file_system code_execution version_control memory web",
		Standard:   "file_system code_execution version_control memory web terminal analytics browser",
		Elevated: `file_system code_execution version_control web database terminal design communication analytics deployment
			memory browser external_data desktop mcp ontology other`,
	}
	if len(open) != len(Levels()) {
		t.Fatal("a level is missing")
	}
	for l, list := range open {
		for _, c := range action.Categories() {
			if got, want := l.Opens(c), slices.Contains(strings.Fields(list), string(c)); got != want {
				t.Errorf("%s opens %s: %t", l, c, got)
			}
		}
		for _, c := range []action.Category{"", "git", "bogus", "File_System"} {
			if l.Opens(c) {
				t.Errorf("%s opens %q, which there is not (I2)", l, c)
			}
		}
	}
	if Level(0) != Custom || Level(99).Opens(action.FileSystem) {
		t.Error("the zero level, or one that there is not, opens something")
	}
}

// TestDefaults is the table of §5.2.
func TestDefaults(t *testing.T) {
	types := registry(t)
	for l, want := range map[Level]string{
		Sandboxed:  "workspace_only none local_only containerized none [] false",
		Restricted: "project_directory allowlist_only read_and_branch containerized none [deploy:* db:mutate] false",
		Standard:   "project_directory open full containerized restricted_commands [] false",
		Elevated:   "full open full containerized full [] true",
		Custom:     "workspace_only none local_only containerized none [] false",
	} {
		c := Defaults(l, types)
		asks := []string{}
		for _, p := range c.RequiresApproval.V {
			asks = append(asks, p.Text)
		}
		got := fmt.Sprint(c.FileSystem.V, " ", c.Network.V, " ", c.Git.V, " ", c.CodeExecution.V, " ", c.Terminal.V, " ", asks, " ", c.Deployment.V)
		if got != want {
			t.Errorf("%s: %s, want %s", l, got, want)
		}
		if len(c.Allowlist.V) > 0 {
			t.Errorf("%s: allowlist %v", l, c.Allowlist.V)
		}
		for _, at := range []string{c.FileSystem.At, c.Network.At, c.Allowlist.At, c.Git.At, c.CodeExecution.At, c.Terminal.At, c.RequiresApproval.At, c.Deployment.At} {
			if at != BuiltIn {
				t.Errorf("%s: from %q", l, at)
			}
		}
	}
	var zero Constraints
	strictest := Defaults(Custom, types)
	if zero.FileSystem.V != strictest.FileSystem.V || zero.Network.V != strictest.Network.V || zero.Git.V != strictest.Git.V ||
		zero.CodeExecution.V != strictest.CodeExecution.V || zero.Terminal.V != strictest.Terminal.V || zero.Deployment.V {
		t.Error("the zero constraints are not the strictest")
	}
}

// TestWordsOfEnums: each reads back as itself and nothing else is read.
func TestWordsOfEnums(t *testing.T) {
	for what, c := range map[string]struct {
		words string
		parse func(string) (string, error)
	}{
		"level":          {"custom sandboxed restricted standard elevated", parseAs[Level]},
		"autonomy":       {"locked supervised semi full", parseAs[Autonomy]},
		"file_system":    {"workspace_only project_directory full", parseAs[FileScope]},
		"network":        {"none allowlist_only open", parseAs[NetworkMode]},
		"git":            {"local_only read_and_branch full", parseAs[GitMode]},
		"code_execution": {"containerized process", parseAs[CodeMode]},
		"terminal":       {"none restricted_commands full", parseAs[TerminalMode]},
	} {
		for _, w := range strings.Fields(c.words) {
			if got, err := c.parse(w); err != nil || got != w {
				t.Errorf("%s %s: %s, %v", what, w, got, err)
			}
		}
		for _, w := range []string{"", "0", "Full", "none ", "bogus"} {
			if got, err := c.parse(w); err == nil || !strings.HasPrefix(err.Error(), "unknown "+what) {
				t.Errorf("%s %q: %s, %v", what, w, got, err)
			}
		}
	}
}

func parseAs[T fmt.Stringer, P interface {
	*T
	UnmarshalText([]byte) error
}](s string) (string, error) {
	var v T
	err := P(&v).UnmarshalText([]byte(s))
	return v.String(), err
}

// TestPresets is §5.4: what each autonomy does with each of the 45 types.
func TestPresets(t *testing.T) {
	const golden = "testdata/presets.txt"
	types := registry(t)
	presets := Presets(types)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%-28s", "# ? asks because no list names it")
	out.WriteString("\n")
	fmt.Fprintf(&out, "%-28s%-8s%-8s%-12s%s\n", "", "full", "semi", "supervised", "locked")
	for _, ty := range types.Types() {
		say := func(a Autonomy) string {
			switch v := presets[a].Of(ty); {
			case !v.Named:
				return "ask ?"
			case v.Human:
				return "ask"
			}
			return "run"
		}
		fmt.Fprintf(&out, "%-28s%-8s%-8s%-12s%s\n", ty, say(FullAutonomy), say(Semi), say(Supervised), say(Locked))
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
