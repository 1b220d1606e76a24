package spell

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	words := []string{"*", "all", "code", "code:write", "fs_read", "git", "none", "open", "standard", "workspace_only"}
	for _, c := range []struct{ got, want string }{
		{"standart", "standard"},     // replaced
		{"standad", "standard"},      // missing
		{"sttandard", "standard"},    // added
		{"stanadrd", "standard"},     // swapped
		{"stnadrad", "standard"},     // two
		{"Standard", "standard"},     // case alone
		{"STANDART", "standard"},     //
		{"tsnadrad", ""},             // three
		{"gti", "git"},               // short words: one
		{"gut", "git"},               //
		{"gtx", ""},                  // two of three
		{"opne", "open"},             //
		{"code;write", "code:write"}, //
		{"workspaceonly", "workspace_only"},
		{"al", "all"},
		{"", ""},
		{"x", ""},  // not "*": one letter is all of it
		{"**", ""}, //
		{"ab", ""},
		{strings.Repeat("a", 64), ""},
		{strings.Repeat("a", 65), ""},
		{strings.Repeat("a", 1<<20), ""},
		{"sténdard", "standard"},
	} {
		if got := Nearest(c.got, words); got != c.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.got, got, c.want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestHint(t *testing.T) {
	if got := Hint("cdoe", []string{"code"}); got != "; did you mean code?" {
		t.Error(got)
	}
	if got := Hint("zebra", []string{"code"}); got != "" {
		t.Error(got)
	}
}

// FuzzEdits: the distance is symmetric, zero for the same word alone, at most the
// longer word and the limit.
func FuzzEdits(f *testing.F) {
	f.Add("standard", "standart")
	f.Add("", "a")
	f.Add(strings.Repeat("x", 64), strings.Repeat("y", 64))
	f.Fuzz(func(t *testing.T, a, b string) {
		const limit = 3
		d := edits(a, b, limit)
		if d != edits(b, a, limit) || d < 0 || d > limit || d > max(len(a), len(b)) && d != limit {
			t.Errorf("edits(%q, %q) = %d", a, b, d)
		}
		if len(a) <= 64 && (d == 0) != (a == b) && len(b) <= 64 {
			t.Errorf("edits(%q, %q) = %d", a, b, d)
		}
		if n := Nearest(a, []string{b}); n != "" && n != b {
			t.Errorf("Nearest(%q) = %q", a, n)
		}
	})
}
