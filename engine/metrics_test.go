package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// Every verdict and every kind of error is counted under its own name, from the beginning.
func TestMetricsKnowEveryWord(t *testing.T) {
	m := newMetrics()
	for _, of := range []struct {
		file, kind string
		have       counters
	}{{"../egress/verdict.go", "Verdict", m.egress}, {"../errors.go", "Kind", m.outcomes}} {
		words := constants(t, of.file, of.kind)
		if len(words) < 10 {
			t.Errorf("%s: only %q were found", of.file, words)
		}
		for _, w := range words {
			if of.have[w] == nil {
				t.Errorf("%s: %q is counted as other", of.file, w)
			}
		}
		for w := range of.have {
			if !slices.Contains(append(words, other, "ok", "tool_error"), w) {
				t.Errorf("%s: %q never happens", of.file, w)
			}
		}
	}
	m.outcomes.add("x\"} 1\nforged 2")
	if n := m.outcomes[other].Load(); n != 1 || len(m.outcomes) != len(newMetrics().outcomes) {
		t.Errorf("a word that nobody knows is a label: %v", m.outcomes)
	}
}

// constants are the values of a type that a file declares.
func constants(t *testing.T, file, kind string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && of.Name == kind && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				word, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, word)
			}
		}
		return true
	})
	return out
}
