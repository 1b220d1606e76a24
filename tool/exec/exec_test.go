package exec

import (
	"encoding/json"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/tool"
)

func definitions(t *testing.T) map[string]*tool.Tool {
	t.Helper()
	tools, err := Tools(Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tool.Tool{}
	for _, x := range tools {
		out[x.Name] = x
	}
	return out
}

// The examples that models are shown work, and nothing takes any argument.
func TestDefinitions(t *testing.T) {
	all := definitions(t)
	if len(all) != 3 {
		t.Errorf("%d tools", len(all))
	}
	for _, x := range all {
		if len(x.Examples) == 0 || len(x.Failures) == 0 || x.Description == "" {
			t.Errorf("%s lacks an example, a failure mode or a description", x.Name)
		}
		for _, e := range x.Examples {
			if _, _, err := x.Args(e.Args); err != nil {
				t.Errorf("%s: %v", x.Name, err)
			}
		}
		if _, _, err := x.Args([]byte(`{"nonsense":1}`)); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s takes any argument: %v", x.Name, err)
		}
	}
}

// Looking is reading; ending is not, and nor is what is not known.
func TestJobActions(t *testing.T) {
	for do, want := range map[string]action.Type{
		"check": "code:read", "output": "code:read", "list": "code:read", "cancel": "code:write", "": "code:write", "Check": "code:write",
	} {
		if got := definitions(t)["shell_job"].ActionOf(map[string]any{"do": do}); got != want {
			t.Errorf("%q: %s", do, got)
		}
	}
}

// Every bad set of arguments of shell_job, and what the caller is told.
func TestJobArguments(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{`{}`, `argument "do" is missing; it takes bytes, do, from, job`},
		{`{"do":"kill","job":"x"}`, `argument "do": it must be one of "check", "output", "cancel", "list"`},
		{`{"do":"check"}`, "do: check needs a job; do: list shows them"},
		{`{"do":"output"}`, "do: output needs a job; do: list shows them"},
		{`{"do":"cancel"}`, "do: cancel needs a job; do: list shows them"},
		{`{"do":"list","job":"x"}`, "do: list takes no job; leave it out"},
		{`{"do":"list","from":0}`, "bytes and from go with do: output only; leave them out"},
		{`{"do":"check","job":"x","bytes":1}`, "bytes and from go with do: output only; leave them out"},
		{`{"do":"output","job":"x","bytes":0}`, `argument "bytes": it must be at least 1`},
		{`{"do":"output","job":"x","bytes":1000001}`, `argument "bytes": it must be at most 1000000`},
		{`{"do":"output","job":"x","from":-1}`, `argument "from": it must be at least 0`},
		{`{"do":"output","job":"x","from":1e300}`, `argument "from": it must be at most 1000000000000000`},
		{`{"do":"list"}`, ""},
		{`{"do":"output","job":"x","from":0,"bytes":1000000}`, ""},
	} {
		got := ""
		canonical, _, err := definitions(t)["shell_job"].Args([]byte(row.args))
		if err != nil {
			_, got = writ.Public(err)
		} else {
			var a jobArgs
			if err := json.Unmarshal([]byte(canonical), &a); err != nil {
				t.Fatal(err)
			}
			if fault := a.fault(); fault != "" {
				got = "shell_job: " + fault
			}
		}
		if want := "shell_job: " + row.want; got != want && (got != "" || row.want != "") {
			t.Errorf("%s:\n got  %s\n want %s", row.args, got, want)
		}
	}
}

func TestWholeRunes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "ab€": "ab€", "ab\xe2\x82": "ab", "ab\xe2": "ab", "\xe2\x82": "\xe2\x82", "a\xf0\x9f\x98": "a",
		"a😀": "a😀", "a\x80\x80\x80\x80\x80": "a\x80\x80\x80\x80\x80", "a\xff": "a\xff",
	} {
		if got := wholeRunes(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
