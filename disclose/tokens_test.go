package disclose

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// The true counts are the larger of those of cl100k_base and o200k_base. What is
// counted must stay what it is, and near the truth: a change of one is a change of
// everybody's budget.
func TestTokensAgainstTrueCounts(t *testing.T) {
	raw, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []struct {
		Name, Text string
		True       int
	}
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{
		"empty": 0, "word": 2, "prose": 70, "markdown": 87, "schema": 111, "indented": 78, "go": 92, "python": 86, "shell": 70, "names": 40,
		"base64": 102, "numbers": 81, "emoji": 36, "german": 62, "chinese": 83, "japanese": 70, "russian": 68, "arabic": 76, "hindi": 111,
	}
	if len(texts) != len(counted) {
		t.Errorf("%d texts, %d counts", len(texts), len(counted))
	}
	for _, x := range texts {
		got := Tokens(x.Text)
		if got != counted[x.Name] {
			t.Errorf("%s: counted %d, want %d", x.Name, got, counted[x.Name])
		}
		if got*100 < x.True*92 || got*100 > x.True*140+200 {
			t.Errorf("%s: counted %d, true %d", x.Name, got, x.True)
		}
	}
}

func TestTokensNeverMoreThanBytes(t *testing.T) {
	for _, s := range []string{"\t\t", "\n ", "\n\t\t1", "a1b2", "\xff\xfe", "~!~!", "a.B", "\U0010FFFF", "ሀ", "-a", " 1", "Q", "x\ny"} {
		if got := Tokens(s); got > len(s)*105/100+1 {
			t.Errorf("%q: %d tokens in %d bytes", s, got, len(s))
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name, in string
		tokens   int
		want     string
	}{
		{"fits", "one two three", 10, "one two three"},
		{"between words", "one two three four five six seven eight", 7, "one two three…"},
		{"one long word", strings.Repeat("x", 100), 10, "xxxxx…"},
		{"not inside a character", strings.Repeat("ሀ", 50), 10, "ሀሀ…"},
		{"nothing", "", 10, ""},
	} {
		got := cut(c.in, c.tokens)
		if got != c.want || Tokens(got) > c.tokens {
			t.Errorf("%s: %q of %d tokens, want %q", c.name, got, Tokens(got), c.want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"", "plain text", "\x1b[2J", "\u202e", "\xff\xfe", "日本語 😀", "aB1_-.\n\t\r  x", strings.Repeat("a", 300)} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		n := Tokens(s)
		if n < 0 || s != "" && n < 1 && strings.TrimSpace(s) != "" || n > len(s)*105/100+1 {
			t.Fatalf("%q: %d tokens in %d bytes", s, n, len(s))
		}
		most = 10 + most&0xFFF
		short := cut(s, most)
		if Tokens(short) > most {
			t.Fatalf("%q cut to %d is %q of %d", s, most, short, Tokens(short))
		}
		if n <= most && short != s || n > most && !strings.HasSuffix(short, "…") {
			t.Fatalf("%q of %d cut to %d is %q", s, n, most, short)
		}
		if utf8.ValidString(s) && !utf8.ValidString(short) {
			t.Fatalf("%q cut to %d is %q", s, most, short)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat(`{"path":"src/main.go","limit":100} Reads a file of the workspace. `, 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Tokens(text)
	}
}
