package display

import (
	"slices"
	"strings"
	"testing"
)

func TestLookalikes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"see раypal.com now", []string{`"раypal.com" mixes Cyrillic and Latin letters`}},
		{"/home/аdmin/.ssh", []string{`"аdmin" mixes Cyrillic and Latin letters`}},
		{"gοοgle", []string{`"gοοgle" mixes Greek and Latin letters`}},
		{"gοоgle", []string{`"gοоgle" mixes Cyrillic, Greek and Latin letters`}},
		{"ｐaypal", []string{`"ｐaypal" mixes Latin and fullwidth letters`}},
		{"𝗉aypal", []string{`"𝗉aypal" mixes Latin and mathematical letters`}},
		{"\u212Aey", []string{"\"\u212Aey\" mixes Latin and letterlike letters"}},
		{"\u217Dom.example", []string{"\"\u217Dom.example\" mixes Latin and letterlike letters"}},
		{"р\u200bay", []string{`"р<U+200B>ay" mixes Cyrillic and Latin letters`}},
		{"日本а", []string{`"日本а" mixes Cyrillic and Han letters`}},
		{"раy раy раy", []string{`"раy" mixes Cyrillic and Latin letters`}},
		{"аa бb вv гg дd", []string{
			`"аa" mixes Cyrillic and Latin letters`, `"бb" mixes Cyrillic and Latin letters`, `"вv" mixes Cyrillic and Latin letters`,
			"2 more words with letters of several scripts"}},
		{"curl example.com∕x.evil", []string{`"example.com∕x.evil" holds U+2215, which looks like "/"`}},
		{"if (a ǃ= b)", nil}, // after a space, a letter like any other
		{"if aǃ= b", []string{`"aǃ=" holds U+01C3, which looks like "!"`}},
		{strings.Repeat("é", 20) + "/etc∕passwd tail", []string{`"éééééééééé/etc∕passwd" holds U+2215, which looks like "/"`}},
		{"x;y\u037ez", []string{"\"x;y\u037ez\" holds U+037E, which looks like \";\""}},
	} {
		if got := Lookalikes(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestHonestTextIsNotALookalike(t *testing.T) {
	for _, s := range []string{
		"", "paypal.com", "Grüße aus Łódź", "Привет, мир", "привет.com", "my_переменная", "сосоа.com", "Καλημέρα", "日本語テキストのTシャツ", "東京タワーABC", "ＡＢＣ株式会社",
		"中文：文本。", "注音ㄅㄆㄇ中文abc", "한국어漢字KBS", "नमस्ते", "السلام", "ʻokina", "5µs", "x² ½", "“quoted” – dash…",
	} {
		if got := Lookalikes(s); got != nil {
			t.Errorf("%q: %q", s, got)
		}
	}
}

func TestLookalikesOfManyScriptsEndSoon(t *testing.T) {
	if got := Lookalikes(strings.Repeat("ꓐ ᏣᎳ አማ ", 1<<14)); got != nil {
		t.Errorf("%q", got)
	}
}
