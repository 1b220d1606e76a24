package define

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

// call is what the edge makes of arguments: canonical, and each path resolved, here
// into /real.
func call(t testing.TB, x *tool.Tool, args string) writ.Call {
	t.Helper()
	canonical, value, err := x.Args([]byte(args))
	must(t, err)
	c := writ.Call{Tool: x.Name, Args: canonical, Resolved: true}
	for _, found := range x.Shape.Candidates(value) {
		c.Targets = append(c.Targets, writ.Target{Pointer: found.Pointer, Value: found.Value, Kind: found.Kind, Side: found.Side, Path: "/real/" + found.Value})
	}
	return c
}

// What calls run: each argument is one element or a flag and an element, or nothing.
func TestCommandLines(t *testing.T) {
	all := good(t)
	for _, row := range []struct{ tool, args, want string }{
		{"least", `{}`, `echo|hello`},
		{"count_lines", `{"paths":["a","b c"]}`, `wc|--|/real/a|/real/b c`},
		{"count_lines", `{"paths":["-x"],"bytes":true}`, `wc|-c|--|/real/-x`},
		{"count_lines", `{"paths":["$(id)"],"bytes":false}`, `wc|--|/real/$(id)`},
		{"everything", `{}`, `/usr/bin/tool|sub|--`},
		{"everything", `{"text":""}`, `/usr/bin/tool|sub|-t||--`},
		{"everything", `{"text":"{last}","last":"$HOME; rm -rf *"}`, `/usr/bin/tool|sub|-t|{last}|--|$HOME; rm -rf *`},
		{"everything", `{"count":-5}`, `/usr/bin/tool|sub|--count=-5|--`},
		{"everything", `{"count":1e3}`, `/usr/bin/tool|sub|--count=1000|--`},
		{"everything", `{"count":1e21}`, `/usr/bin/tool|sub|--count=1000000000000000000000|--`},
		{"everything", `{"count":"12"}`, `/usr/bin/tool|sub|--count=12|--`},
		{"everything", `{"ratio":0.1}`, `/usr/bin/tool|sub|--ratio|0.1|--`},
		{"everything", `{"ratio":1e-7}`, `/usr/bin/tool|sub|--ratio|0.0000001|--`},
		{"everything", `{"quiet":true,"tags":["a","b"],"sizes":[1,-2]}`, `/usr/bin/tool|sub|-q|--tag|a|--tag|b|--size=1|--size=-2|--`},
		{"everything", `{"tags":[]}`, `/usr/bin/tool|sub|--`},
		{"everything", `{"file":"../f","last":"--help"}`, `/usr/bin/tool|sub|/real/../f|--|--help`},
		{"everything", `{"text":"-x"}`, `error: everything: argument "text" begins with -, which the program would read as an option; give another value`},
		{"everything", `{"ratio":-1}`, `error: everything: argument "ratio" begins with -, which the program would read as an option; give another value`},
		{"everything", `{"tags":["a","-b"]}`, `error: everything: argument "tags" begins with -, which the program would read as an option; give another value`},
		{"everything", `{"text":"a\u0000b"}`, `error: everything: argument "text" holds a NUL character; leave it out`},
		{"everything", `{"last":"\u0000"}`, `error: everything: argument "last" holds a NUL character; leave it out`},
		{"everything", `{"last":"` + strings.Repeat("x", maxElement) + `"}`, `/usr/bin/tool|sub|--|` + strings.Repeat("x", maxElement)},
		{"everything", `{"last":"` + strings.Repeat("x", maxElement+1) + `"}`, `error: everything: argument "last" is too large for a command line; give less`},
		{"everything", `{"tags":[` + strings.Repeat(`"`+strings.Repeat("x", 1<<16)+`",`, 16) + `"y"]}`, `error: everything: argument "tags" is too large for a command line; give less`},
		{"greet", `{"name":"x"}`, "bash|-o|pipefail|-c|jq -r .name\n"},
		{"lint", `{"file":"a"}`, `lint|/real/a`},
	} {
		l := all[row.tool]
		spec, err := l.plan.spec(call(t, ready(t, l), row.args))
		got := strings.Join(spec.Argv, "|")
		if err != nil {
			got = "error: " + err.Error()
			if kind := writ.KindOf(err); kind != writ.Invalid && kind != writ.TooLarge {
				t.Errorf("%s: kind %s", row.args, kind)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s %.200s (-want +got)\n%.2000s", row.tool, row.args, diff)
		}
	}
}

// What calls read, and where they start.
func TestInputAndDirectory(t *testing.T) {
	all := good(t)
	for _, row := range []struct{ tool, args, stdin, dir string }{
		{"least", `{}`, "none", ""},
		{"everything", `{"body":"-\u0000\n","in":"d"}`, "-\x00\n", "/real/d"},
		{"everything", `{}`, "", ""},
		{"greet", `{"name":"x","mode":"look"}`, `{"mode":"look","name":"x"}`, ""},
		{"echo_json", `{"deep":{"at":"f"},"b":"/etc/passwd","a":[1.50,null]}`, `{"a":[1.5,null],"b":"/etc/passwd","deep":{"at":"/real/f"}}`, ""},
	} {
		l := all[row.tool]
		spec, err := l.plan.spec(call(t, ready(t, l), row.args))
		must(t, err)
		got := "none"
		if spec.Stdin != nil {
			raw, err := io.ReadAll(spec.Stdin)
			must(t, err)
			got = string(raw)
		}
		if got != row.stdin || spec.Dir != row.dir {
			t.Errorf("%s %s: reads %q in %q", row.tool, row.args, got, spec.Dir)
		}
	}
}

// A path that was not resolved, or resolved as something else, does not run.
func TestUnresolvedPaths(t *testing.T) {
	l := good(t)["lint"]
	c := call(t, ready(t, l), `{"file":"a"}`)
	if _, err := l.plan.spec(c); err != nil {
		t.Fatal(err)
	}
	right := c.Targets[0]
	for name, change := range map[string]func(*writ.Target){
		"pointer": func(t *writ.Target) { t.Pointer = "/other" },
		"value":   func(t *writ.Target) { t.Value = "b" },
		"kind":    func(t *writ.Target) { t.Kind = writ.TargetHost },
		"side":    func(t *writ.Target) { t.Side = writ.SideWrite },
		"problem": func(t *writ.Target) { t.Problem = "it loops" },
		"path":    func(t *writ.Target) { t.Path = "" },
	} {
		wrong := right
		change(&wrong)
		c.Targets = []writ.Target{wrong}
		if _, err := l.plan.spec(c); err == nil || err.Error() != "lint: argument /file: the path was not resolved; report this as a bug" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
