package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func registry(t *testing.T, custom map[Type]Risk) *Registry {
	t.Helper()
	r, err := NewRegistry(custom)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTypes is §5.3: the 41 leaves of the seeds, the four of ours, and their risks.
func TestTypes(t *testing.T) {
	const seeds = `code:read code:write code:create code:delete code:refactor test:write test:run docs:write
		vcs:read vcs:commit vcs:push vcs:branch deploy:staging deploy:production comms:internal comms:external
		budget:spend budget:exceed org:hire org:fire org:promote db:query db:mutate db:admin arch:decide tool:create
		memory:read knowledge:ingest knowledge:reindex browser:navigate browser:screenshot browser:diff
		browser:accessibility_scan browser:spec external_data:request desktop:launch desktop:click desktop:type
		desktop:key desktop:screenshot desktop:scroll`
	const ours = "web:read vcs:clone memory:write memory:delete"
	if n := len(strings.Fields(seeds)); n != 41 {
		t.Fatalf("%d leaves", n)
	}
	want := map[Type]Risk{}
	for _, s := range strings.Fields(seeds + " " + ours) {
		want[Type(s)] = Low
	}
	for risk, list := range map[Risk]string{
		Critical: "deploy:production db:admin org:fire",
		High:     "deploy:staging db:mutate code:delete vcs:push vcs:clone comms:external external_data:request budget:exceed tool:create",
		Medium:   "code:create code:write code:refactor vcs:commit arch:decide knowledge:ingest org:hire org:promote budget:spend desktop:launch memory:delete",
	} {
		for _, s := range strings.Fields(list) {
			if _, ok := want[Type(s)]; !ok {
				t.Errorf("%s is no leaf", s)
			}
			want[Type(s)] = risk
		}
	}
	r := registry(t, nil)
	got := map[Type]Risk{}
	for _, ty := range r.Types() {
		got[ty] = r.Risk(ty)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 45 {
		t.Errorf("%d types (-want +got)\n%s", len(got), diff)
	}
	if r.Risk("no:such") != Unknown || r.Has("no:such") {
		t.Error("an unknown type is known")
	}
}

// TestCategories is §3.3.
func TestCategories(t *testing.T) {
	want := map[Category]Type{
		"file_system": "code:write", "code_execution": "code:write", "version_control": "vcs:commit", "web": "comms:external",
		"database": "db:query", "terminal": "code:write", "design": "docs:write", "communication": "comms:internal",
		"analytics": "code:read", "deployment": "deploy:staging", "memory": "memory:read", "ontology": "memory:read",
		"mcp": "comms:external", "browser": "browser:navigate", "external_data": "external_data:request",
		"desktop": "desktop:launch", "other": "code:read",
	}
	got := map[Category]Type{}
	for _, c := range Categories() {
		got[c] = c.Default()
		var back Category
		if err := back.UnmarshalText([]byte(c)); err != nil || back != c || !c.Known() {
			t.Errorf("%s reads back as %s, %v", c, back, err)
		}
		if !registry(t, nil).Has(c.Default()) {
			t.Errorf("%s: %s is no type", c, c.Default())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 17 {
		t.Errorf("%d categories (-want +got)\n%s", len(got), diff)
	}
	var c Category
	if err := c.UnmarshalText([]byte("git")); err != nil || c != VersionControl {
		t.Errorf("git is %s, %v", c, err)
	}
	for _, s := range []string{"", "Git", "file system", "file_systems", "all"} {
		c = "before"
		var u *UnknownError
		if err := c.UnmarshalText([]byte(s)); !errors.As(err, &u) || c != "before" {
			t.Errorf("%q: %v, %s", s, err, c)
		}
		if Category(s).Known() || Category(s).Default() != "" {
			t.Errorf("%q is known", s)
		}
	}
}

func TestRisk(t *testing.T) {
	for i, s := range []string{"unknown", "low", "medium", "high", "critical"} {
		r := Risk(99)
		if err := r.UnmarshalText([]byte(s)); err != nil || r != Risk(i) || r.String() != s {
			t.Errorf("%s: %d, %v", s, r, err)
		}
		if text, err := r.MarshalText(); err != nil || string(text) != s {
			t.Errorf("%s: %s, %v", s, text, err)
		}
	}
	for _, s := range []string{"", "Low", "lo", "5", "none"} {
		r := Critical
		if err := r.UnmarshalText([]byte(s)); err == nil || r != Critical {
			t.Errorf("%q: %v, %v", s, r, err)
		}
	}
}

func TestCustomTypes(t *testing.T) {
	r := registry(t, map[Type]Risk{"crm:write": Low, "code:audit": Critical, "a_1:b_2": Unknown})
	if r.Risk("crm:write") != Low || r.Risk("code:audit") != Critical || !r.Has("a_1:b_2") || len(r.Types()) != 48 {
		t.Errorf("types %v", r.Types())
	}
	if registry(t, nil).Has("crm:write") {
		t.Error("one registry's types are in another")
	}
	p, err := r.ParsePattern("code")
	if err != nil || !p.Match("code:audit") {
		t.Errorf("code does not take code:audit, %v", err)
	}
	for _, s := range []Type{"", "crm", "crm:", ":write", "Crm:write", "crm:Write", "crm:a:b", "crm:a-b", "crm: a", "crm:*", "code:read", "vcs:clone", "all:x", "deployment:x", "database_write:x", "é:x"} {
		if _, err := NewRegistry(map[Type]Risk{s: Low}); err == nil {
			t.Errorf("%q is registered", s)
		}
	}
}

func TestPatterns(t *testing.T) {
	r := registry(t, map[Type]Risk{"crm:write": Low})
	for _, c := range []struct {
		pattern string
		takes   string // all types it takes, "" for every one
	}{
		{"all", ""},
		{"code", "code:create code:delete code:read code:refactor code:write"},
		{"code:*", "code:create code:delete code:read code:refactor code:write"},
		{"code:read", "code:read"},
		{"deploy", "deploy:production deploy:staging"},
		{"deployment", "deploy:production deploy:staging"},
		{"database_write", "db:mutate"},
		{"db:*", "db:admin db:mutate db:query"},
		{"docs", "docs:write"},
		{"external_data", "external_data:request"},
		{"crm", "crm:write"},
		{"crm:write", "crm:write"},
		{"memory", "memory:delete memory:read memory:write"},
	} {
		p, err := r.ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if p.Text != c.pattern {
			t.Errorf("%s shows as %s", c.pattern, p.Text)
		}
		var takes []string
		for _, ty := range r.Types() {
			if p.Match(ty) {
				takes = append(takes, string(ty))
			}
		}
		if got := strings.Join(takes, " "); got != c.takes && (c.takes != "" || len(takes) != len(r.Types())) {
			t.Errorf("%s takes %s, want %s", c.pattern, got, c.takes)
		}
		if (p.Match("no:such") || p.Match("")) && c.pattern != "all" {
			t.Errorf("%s takes what there is not", c.pattern)
		}
	}
	for _, s := range []string{"", "*", "*:*", ":", ":*", "all:*", "ALL", "Code", "code:", "code:**", "code:wri*", "cod", "code:write ", " code", "code:*:*", "deployment:*", "database_write:*", "no:such", "crm:read", "unknown"} {
		p, err := r.ParsePattern(s)
		var u *UnknownError
		if !errors.As(err, &u) || u.Got != s || len(u.Known) == 0 || u.Form == "" {
			t.Errorf("%q: %v", s, err)
		}
		if p.Match("code:read") || p != (Pattern{}) {
			t.Errorf("%q: what comes with the error selects something", s)
		}
	}
	if (Pattern{}).Match("code:read") || (Lists{Auto: []Pattern{{}}}).Of("code:read").Named {
		t.Error("the zero Pattern selects something")
	}
}

// TestLists: the most specific pattern wins, and the human list at equal ones.
func TestLists(t *testing.T) {
	r := registry(t, nil)
	parse := func(s string) (out []Pattern) {
		for _, f := range strings.Fields(s) {
			p, err := r.ParsePattern(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
		return out
	}
	for _, c := range []struct{ auto, human, of, want string }{
		{"", "", "code:read", "unnamed"},
		{"test", "docs", "code:read", "unnamed"},
		{"all", "", "code:read", "auto all"},
		{"", "all", "code:read", "human all"},
		{"all", "all", "code:read", "human all"},
		{"code", "all", "code:read", "auto code"},
		{"all", "code", "code:read", "human code"},
		{"code", "code", "code:read", "human code"},
		{"code", "code:*", "code:read", "human code:*"},
		{"code:*", "code", "code:read", "human code"},
		{"code:read", "code", "code:read", "auto code:read"},
		{"code", "code:read", "code:read", "human code:read"},
		{"code", "code:read", "code:write", "auto code"},
		{"code:read", "code:read", "code:read", "human code:read"},
		{"code:read", "all", "code:write", "human all"},
		{"all code code:read", "all code", "code:read", "auto code:read"},
		{"all code", "all code code:read", "code:read", "human code:read"},
		{"code:read code all", "all", "code:read", "auto code:read"},
		{"deploy:production", "deployment", "deploy:production", "auto deploy:production"},
		{"deploy:production", "deployment", "deploy:staging", "human deployment"},
		{"db", "database_write", "db:mutate", "human database_write"},
		{"db:mutate", "database_write", "db:mutate", "human database_write"},
		{"all", "", "no:such", "auto all"},
		{"code", "", "no:such", "unnamed"},
	} {
		v := Lists{Auto: parse(c.auto), Human: parse(c.human)}.Of(Type(c.of))
		got := "unnamed"
		if v.Named {
			got = map[bool]string{true: "human ", false: "auto "}[v.Human] + v.By.Text
		}
		if got != c.want {
			t.Errorf("auto %q human %q of %s: %s, want %s", c.auto, c.human, c.of, got, c.want)
		}
	}
}
