package define

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// good loads the definitions that have to load.
func good(t testing.TB) map[string]*Loaded {
	t.Helper()
	out := map[string]*Loaded{}
	_, cases := table(t, "testdata/good.txt")
	for _, c := range cases {
		path := c.files(t, t.TempDir(), c.title)
		l, err := Load(path, registry(t))
		if err != nil {
			t.Fatal(err)
		}
		if l.File != path {
			t.Errorf("%s was read from %s", path, l.File)
		}
		out[strings.TrimSuffix(c.title, filepath.Ext(c.title))] = l
	}
	return out
}

func ready(t testing.TB, l *Loaded) *tool.Tool {
	t.Helper()
	x, err := l.Tool(nil)
	must(t, err)
	return x
}

// Every key arrives where it belongs.
func TestWholeDefinition(t *testing.T) {
	yes, no := true, false
	want := tool.Definition{
		Name: "count_lines", Title: "Count lines", Description: "Count the lines of files.", Category: "file_system", Action: "code:read",
		Class: writ.ClassNone, Dangerous: true, Tier: "cheap",
		Policy: policy.Policy{
			Risk: action.Low, Files: policy.Files{Read: policy.Paths("/srv/data/**", "/etc/hosts"), Write: policy.Globs{Stance: policy.None}},
			Network: policy.Network{Stance: policy.None}, Env: policy.Env{Stance: policy.None}, Exec: policy.None,
		},
		Constraints: tool.Constraints{
			Quotas:    []writ.Quota{{Max: 5, Per: writ.PerTask}, {Max: 100, Per: writ.PerWindow, Window: 24 * time.Hour}, {Max: 10, Per: writ.PerWindow, Window: time.Minute}},
			OnlyAfter: []string{"read_file"}, RequiresApproval: true,
		},
		Schema:    json.RawMessage(`{"additionalProperties":false,"properties":{"bytes":{"type":"boolean"},"paths":{"items":{"type":"string","x-writ-path":"read"},"minItems":1,"type":"array"}},"required":["paths"],"type":"object"}`),
		Output:    json.RawMessage(`{"properties":{"lines":{"type":"integer"}},"type":"object"}`),
		Examples:  []tool.Example{{What: "one file", Args: json.RawMessage(`{"paths":["README.md"]}`)}},
		Failures:  []string{"a file is not there"},
		Hints:     tool.Hints{ReadOnly: &yes, Idempotent: &yes, OpenWorld: &no},
		Limits:    writ.Limits{Wall: 30 * time.Second, Memory: 512 << 20, Output: 256 << 10},
		Untrusted: true, Runs: tool.InBox,
		Runner: tool.Runner{Kind: tool.Process, Spec: json.RawMessage(`{"argv":["wc",{"arg":"bytes","flag":"-c"},"--",{"arg":"paths"}]}`)},
	}
	if diff := cmp.Diff(want, good(t)["count_lines"].Definition); diff != "" {
		t.Error(diff)
	}
}

// What is not said is the strictest that there is.
func TestLeastDefinition(t *testing.T) {
	want := tool.Definition{
		Name: "least", Title: "least", Description: "Say hello.", Category: "other", Action: "code:read", Class: writ.ClassWrite, Tier: "medium",
		Schema: json.RawMessage(noParameters), Runs: tool.InBox,
		Runner: tool.Runner{Kind: tool.Process, Spec: json.RawMessage(`{"argv":["echo","hello"]}`)},
	}
	all := good(t)
	if diff := cmp.Diff(want, all["least"].Definition); diff != "" {
		t.Error(diff)
	}
	if _, _, err := ready(t, all["least"]).Args([]byte(`{"x":1}`)); writ.KindOf(err) != writ.Invalid {
		t.Errorf("takes an argument that it does not name: %v", err)
	}
}

func TestSections(t *testing.T) {
	d := good(t)["lint"].Definition
	want := tool.Docs{
		Capability: "Looks at one file.\n\n```\n# not a heading\n```\n\n### Details\nMore.\n#### Inputs\nEven more.",
		Inputs:     "- file: what to look at", Outputs: "Text.",
	}
	if diff := cmp.Diff(want, d.Docs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"the file is not there", "it is not text, or too long"}, d.Failures); diff != "" {
		t.Error(diff)
	}
	if d.Class != writ.ClassReadOnly {
		t.Errorf("class %s", d.Class)
	}
}

// The words of permission_level, and that what acts in any way is of class write.
func TestPermissionLevels(t *testing.T) {
	for word, want := range map[string]writ.Class{
		"none": writ.ClassNone, "read": writ.ClassReadOnly, "read_only": writ.ClassReadOnly, "write": writ.ClassWrite, "admin": writ.ClassWrite,
		"modify": writ.ClassWrite, "publish": writ.ClassWrite, "external_action": writ.ClassWrite, "execute": writ.ClassWrite,
	} {
		c := document{text: "---\n<< head\npermission_level: " + word + "\n<< run\n---\n<< sections\n"}
		l, err := Load(c.files(t, t.TempDir(), "t/TOOL.md"), registry(t))
		if err != nil || l.Definition.Class != want {
			t.Errorf("%s: %v, %v", word, l, err)
		}
	}
}

func TestActionBy(t *testing.T) {
	x := ready(t, good(t)["greet"])
	for mode, want := range map[string]action.Type{"look": "code:read", "change": "code:write", "other": "code:delete"} {
		if got := x.ActionOf(map[string]any{"mode": mode}); got != want {
			t.Errorf("%s: %s", mode, got)
		}
	}
	if x.Category != action.VersionControl {
		t.Errorf("git is %s", x.Category)
	}
}

// The digest covers the text of a script in a file of its own, and not where the
// definition lies or how its YAML is laid out.
func TestDigest(t *testing.T) {
	load := func(text string) writ.Digest {
		l, err := Load(document{text: text}.files(t, t.TempDir(), "t.yaml"), registry(t))
		must(t, err)
		return ready(t, l).Digest
	}
	inFile := load("<< head\nrunner: {script: {language: bash, file: t.sh}}\n<< file t.sh 600\necho a\n")
	for text, same := range map[string]bool{
		"<< head\nrunner: {script: {language: bash, file: x.sh}}\n<< file x.sh 600\necho a\n":        true,
		"# laid out\n<< head\nrunner:\n  script:\n    code: |\n      echo a\n    language: bash\n":   true,
		"<< head\nrunner: {script: {language: bash, file: t.sh}}\n<< file t.sh 600\necho b\n":        false,
		"<< head\nrunner: {script: {language: python, file: t.sh}}\n<< file t.sh 600\necho a\n":      false,
		"<< head\negress_class: none\nrunner: {script: {language: bash, code: \"echo a\\n\"}}\n":     false,
		"<< head\negress_class: write\nrunner: {script: {language: bash, code: \"echo a\\n\"}}\n":    true,
		"<< head\nlimits: {timeout: 30s}\nrunner: {script: {language: bash, code: \"echo a\\n\"}}\n": false,
	} {
		if got := load(text); (got == inFile) != same {
			t.Errorf("same digest is %v:\n%s", !same, text)
		}
	}
}

// A link inside the directory is followed; TestMalformed refuses one that leads out.
func TestLinkInside(t *testing.T) {
	dir := t.TempDir()
	document{text: "<< head\n<< run\n"}.files(t, dir, "real")
	must(t, os.Symlink("real", filepath.Join(dir, "t.yaml")))
	if _, err := Load(filepath.Join(dir, "t.yaml"), registry(t)); err != nil {
		t.Error(err)
	}
}
