package config

import (
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/strict"
)

// TestHostileShapes: a file of half the largest size ends in an error soon, in every
// shape that makes a parser slow. The limit only tells a hang from an answer.
func TestHostileShapes(t *testing.T) {
	p := newPlace(t)
	indent := &strings.Builder{}
	for i := 0; indent.Len() < strict.MaxBytes/2; i++ {
		indent.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, shape := range map[string]string{
		"keys": "a: b\n", "chained keys": "a: ", "chained colons": "a:", "entries": "- a\n", "wide list": "a, ", "wide mapping": "a: b, ", "wide pairs": "a: {b: c}, ", "wide lists": "a: [b, c], ", "blocks": "a: |\n", "folds": "a: >\n b\n",
		"comments": "#\n", "trailing comments": "a: b #\n", "single quotes": "'", "double quotes": "\"", "escapes": "\"\\x41\" ", "words": "a\n", "colons": ":\n",
		"documents": "---\na: b\n", "ends": "...\n", "brackets": "[]", "braces": "{},", "closing": "]", "closing braces": "}", "blanks": " ", "lines": "\n", "tabs": "\t",
		"dashes": "-", "dash lines": "-\n", "mappings in a list": "- a: b\n", "questions": "?\n", "bars": "|", "percent": "a: \\%", "pairs": "{a: b}\n", "merge": "<<: a\n",
	} {
		leads := []string{"", "agents: {", "tool_access: {restricted_commands: [", "listen: \""}
		if strings.HasSuffix(shape, "\n") {
			leads = []string{"", "listen: |\n  "}
		}
		for _, lead := range leads {
			n := (strict.MaxBytes/2 - len(lead)) / len(shape)
			if lines := strings.Count(shape, "\n"); lines > 0 {
				n = min(n, strict.MaxLines/2/lines)
			}
			text := lead + strings.Repeat(shape, n)
			began := time.Now()
			if _, err := parse(p.config(), []byte(text), named(), 0o600); err == nil {
				t.Errorf("%s after %q: loads", name, lead)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s after %q: took %v", name, lead, took)
			}
		}
	}
	began := time.Now()
	if _, err := parse(p.config(), []byte(indent.String()), named(), 0o600); err == nil {
		t.Error("indentation: loads")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("indentation took %v", took)
	}
}
