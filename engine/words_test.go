package engine

import (
	"strings"
	"testing"
)

// Of what a program says its beginning and its end are kept, whatever comes between and
// in whatever pieces.
func TestWords(t *testing.T) {
	for what, c := range map[string]struct {
		said []string
		want string
	}{
		"nothing":         {[]string{" \n", ""}, ""},
		"a little":        {[]string{"one\n", "two\n"}, " said:\none\ntwo"},
		"over one end":    {[]string{strings.Repeat("a", wordsKept), "bc"}, " said:\n" + strings.Repeat("a", wordsKept) + "bc"},
		"over both":       {[]string{strings.Repeat("a", wordsKept), strings.Repeat("b", 7), strings.Repeat("c", wordsKept)}, " said:\n" + strings.Repeat("a", wordsKept) + "\n… (7 bytes)\n" + strings.Repeat("c", wordsKept)},
		"in one piece":    {[]string{strings.Repeat("a", wordsKept) + strings.Repeat("b", 7) + strings.Repeat("c", wordsKept)}, " said:\n" + strings.Repeat("a", wordsKept) + "\n… (7 bytes)\n" + strings.Repeat("c", wordsKept)},
		"what is no text": {[]string{"a\xffb"}, " said:\na?b"},
	} {
		w := &words{}
		for _, s := range c.said {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := w.after(" said:"); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
}
