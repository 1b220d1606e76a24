package cli

import (
	"slices"
	"testing"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]key{
		"aq": {'a', 'q'}, "\x1b[A\x1bOB": {keyUp, keyDown}, "\x1b[5~\x1b[6~j": {keyPageUp, keyPageDown, 'j'},
		"\x1bq": {'q'}, "\x1b\x1b[A": {keyUp}, "\x1b[1;5Cq": {keyOther, 'q'}, "\x1b[200~": {keyOther}, "\x03": {ctrlC},
	} {
		var k keys
		var got []key
		for _, b := range []byte(in) {
			if pressed, whole := k.next(b); whole {
				got = append(got, pressed)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in      string
		columns int
		want    string
	}{
		{"", 20, ""}, {"twenty columns wide.", 20, "twenty columns wide."}, {"one more than twenty.", 20, "one more than twen…"},
		{"日本語日本語日本語日本語", 20, "日本語日本語日本語…"}, {"a │ b", 20, "a │ b"}, {"sixteen columns <U+202E>", 20, "sixteen columns …"},
	} {
		if got := clip(c.in, c.columns); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.in, c.columns, got, c.want)
		}
	}
}
