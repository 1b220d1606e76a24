package display

import (
	"strings"
	"testing"
	"unicode"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"nothing", "", ""},
		{"lines and tabs", "a\tb\nc\n", "a\tb\nc\n"},
		{"terminal escape", "\x1b[2Jrm", "<U+001B>[2Jrm"},
		{"carriage return", "safe\revil", "safe<U+000D>evil"},
		{"backspace and delete", "a\b\x7f", "a<U+0008><U+007F>"},
		{"NUL", "a\x00", "a<U+0000>"},
		{"C1 control", "a\u009b31m", "a<U+009B>31m"},
		{"right-to-left override", "exe.\u202egnp", "exe.<U+202E>gnp"},
		{"isolates", "\u2066a\u2069", "<U+2066>a<U+2069>"},
		{"marks of direction", "\u200e\u200f\u061c", "<U+200E><U+200F><U+061C>"},
		{"zero width", "pay\u200bpal\u200c\u200d\u2060\ufeff", "pay<U+200B>pal<U+200C><U+200D><U+2060><U+FEFF>"},
		{"soft hyphen", "a\u00adb", "a<U+00AD>b"},
		{"variation selectors", "❤\ufe0f\U000e0100", "❤<U+FE0F><U+E0100>"},
		{"line and paragraph separator", "a\u2028b\u2029", "a<U+2028>b<U+2029>"},
		{"private use", "\ue000\U000f0000\U0010fffd", "<U+E000><U+F0000><U+10FFFD>"},
		{"noncharacters and unassigned", "\uffff\ufdd0\u0378", "<U+FFFF><U+FDD0><U+0378>"},
		{"fillers", "\u115f\u1160\u3164\uffa0\u034f\u2800\u180e\u17b4\u17b5", "<U+115F><U+1160><U+3164><U+FFA0><U+034F><U+2800><U+180E><U+17B4><U+17B5>"},
		{"blank symbols", "\ufffc\U0001d159\U00016fe4\U00013441", "<U+FFFC><U+1D159><U+16FE4><U+13441>"},
		{"tags", "\U000e0001\U000e0041\U000e007f", "<U+E0001><U+E0041><U+E007F>"},
		{"unusual spaces", "a\u00a0\u1680\u2000\u200a\u202f\u205f\u3000b", "a<U+00A0><U+1680><U+2000><U+200A><U+202F><U+205F><U+3000>b"},
		{"four marks", "e\u0301\u0302\u0303\u0304x", "e\u0301\u0302\u0303\u0304x"},
		{"six marks", "e\u0301\u0302\u0303\u0304\u0305\u0306x", "e\u0301\u0302\u0303\u0304<U+0305><U+0306>x"},
		{"a mark on nothing", "\u0338a", "<U+0338>a"},
		{"a spacing mark on nothing", "\u0903a", "<U+0903>a"},
		{"a mark on a new line", "a\n\u0338a", "a\n<U+0338>a"},
		{"a mark on an escape", "\u202e\u0338", "<U+202E><U+0338>"},
		{"stacked Hangul vowels", "\u1100\u1161\u1161\u1161\u1161\u1161", "\u1100\u1161\u1161\u1161\u1161<U+1161>"},
		{"bytes that are not UTF-8", "a\xff\xc3(", "a<0xFF><0xC3>("},
		{"surrogates as bytes", "\xed\xa0\x80", "<0xED><0xA0><0x80>"},
		{"replacement character", "\ufffd", "\ufffd"},
		{"written like an escape", "<U+202E> <0x41>", "<U+003C>U+202E> <U+003C>0x41>"},
		{"written nearly like one", "<u+202e> <U+202Е> <0XFF>", "<U+003C>u+202e> <U+003C>U+202Е> <U+003C>0XFF>"},
		{"like the escape of an escape", "<U+003C>U+202E>", "<U+003C>U+003C>U+202E>"},
		{"HTML and code", "<b>U+202E</b> if x <0x10 && a<u+b {", "<b>U+202E</b> if x <0x10 && a<u+b {"},
		{"cut escapes", "<U+ <U+> <0x> <U+202E", "<U+ <U+> <0x> <U+202E"},
	} {
		if got := Visible(c.in); got != c.want {
			t.Errorf("%s: %q\n got %q\nwant %q", c.what, c.in, got, c.want)
		}
	}
}

func TestPlainTextStays(t *testing.T) {
	for _, s := range []string{
		"Grüße, naïve façade", "Tiếng Việt", "Привет, мир", "Καλημέρα", "שָׁלוֹם", "السَّلامُ عليكم", "नमस्ते दुनिया", "ภาษาไทยที่นี่", "မြန်မာ မြွှော်", "བོད་སྐད",
		"日本語のテキスト、カタカナー", "中文：文本。", "한국어 텍스트", "\u1112\u1161\u11ab", "አማርኛ", "ქართული", "Հայերեն", "தமிழ்", "ខ្មែរ", "😀👍🏽🇩🇪", "∑ x² ≤ ½ → “quoted” – €5…", "│ ┌ ▓",
	} {
		if got := Visible(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"a\nb\tc\r\n":       "a<U+000A>b<U+0009>c<U+000D><U+000A>",
		`a\nb`:              `a\nb`,
		"<U+000A>":          "<U+003C>U+000A>",
		"a\n\u0301\u202ebc": "a<U+000A><U+0301><U+202E>bc",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHiddenCoversTheCategories(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		must := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector, unicode.Bidi_Control) || r >= 0xE0000
		if r == '\n' || r == '\t' || r == ' ' {
			must = false
		}
		if must && !hidden(r) {
			t.Errorf("%U is not hidden", r)
		}
		if !must && hidden(r) && unicode.In(r, unicode.Nd, unicode.P, unicode.Lu, unicode.Ll) {
			t.Errorf("%U is hidden", r)
		}
	}
}

func TestNothingToDoTakesNoMemory(t *testing.T) {
	long := strings.Repeat("plain < text, Grüße, 日本語 नमस्ते\n\t", 1000)
	if n := testing.AllocsPerRun(10, func() { Visible(long) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() { Visible(long + "\x00") }); n == 0 {
		t.Error("the measurement does not see allocations")
	}
}

func TestPreview(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 10, ""},
		{"short", 5, "short"},
		{"a\nb", 20, "a<U+000A>b"},
		{"0123456789012345678901234567890", 20, "0123456… (31 bytes)"},
		{"0123456789012345678901234567890", 31, "0123456789012345678901234567890"},
		{"0123\u202e56789012345678901234567890", 20, "0123… (33 bytes)"},
		{"0123\u202e56789012345678901234567890", 25, "0123<U+202E>… (33 bytes)"},
		{"éééééé\xffab, and more of it", 20, "éééééé… (31 bytes)"},
		{"e\u0301e\u0301e\u0301e\u0301 and so on, and on and on", 15, "e\u0301e\u0301… (37 bytes)"},
		{strings.Repeat("x", 12345), 20, "xxx… (12,345 bytes)"},
		{strings.Repeat("é"+strings.Repeat("\U0001e8d0", 4), 50), 20, strings.Repeat("é"+strings.Repeat("\U0001e8d0", 4), 6) + "… (900 bytes)"},
		{strings.Repeat("x", 1<<17), 1 << 40, strings.Repeat("x", widest-18) + "… (131,072 bytes)"},
		{"anything", 2, "… (8 bytes)"},
		{"anything", -1, "… (8 bytes)"},
		{"rm -rf … (3 bytes)", 80, "rm -rf <U+2026> (3 bytes)"},
		{"rm -rf … (3 bytes)", 20, "rm -rf … (20 bytes)"},
		{"wait … for it", 80, "wait … for it"},
	} {
		if got := Preview(c.in, c.most); got != c.want {
			t.Errorf("Preview(%q, %d)\n got %q\nwant %q", c.in[:min(len(c.in), 50)], c.most, got, c.want)
		}
	}
}
