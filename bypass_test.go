package writ_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// I1 by type: code outside the package cannot make a writ, nor a gate around the
// gate. Each program is compiled for real; the control shows that the harness can
// compile at all.
func TestBypassDoesNotCompile(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"control", `var w writ.Writ; _ = w.Valid()`, ""},
		{"literal", `_ = writ.Writ{order: nil}`, "cannot refer to unexported field order"},
		{"positional", `_ = writ.Writ{nil}`, "implicit assignment to unexported field order"},
		{"field", `var w writ.Writ; w.order = nil`, "w.order undefined"},
		{"constructor", `_ = writ.issue(writ.Call{}, writ.Decision{}, "")`, "undefined: writ.issue"},
		{"gate's runner", `g := writ.NewGate(nil, nil, nil, nil); g.run.Run(nil, writ.Writ{})`, "g.run undefined"},
		{"own writ type", `var r writ.Runner; type Writ struct{}; r.Run(nil, Writ{})`, "cannot use Writ{}"},
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := os.MkdirTemp(root, "bypass-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			src := "package main\n\nimport \"github.com/writ-run/writ\"\n\nfunc main() { " + tt.body + " }\n"
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "build", "-o", os.DevNull, ".")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if tt.want == "" {
				if err != nil {
					t.Fatalf("the control does not compile: %s", out)
				}
				return
			}
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("want an error with %q, got %v: %s", tt.want, err, out)
			}
		})
	}
}
