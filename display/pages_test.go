package display

import (
	"fmt"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	long := strings.Repeat("0123456789", 5)
	for _, c := range []struct {
		what, safe  string
		rows, width int
		want        string // each page under its title
	}{
		{"empty", "", 5, 80, "page 1 of 1, line 1 of 1, 0 bytes\n1 │ \n"},
		{"newline at the end", "a\n", 5, 80, "page 1 of 1, lines 1–2 of 2, 2 bytes\n1 │ a\n2 │ \n"},
		{"two pages", "a\nb\nc", 2, 80, "page 1 of 2, lines 1–2 of 3, 5 bytes\n1 │ a\n2 │ b\npage 2 of 2, line 3 of 3, 5 bytes\n3 │ c\n"},
		{"numbers line up", strings.Repeat("x\n", 9) + "y", 20, 80,
			"page 1 of 1, lines 1–10 of 10, 19 bytes\n" + strings.Repeat(" n │ x\n", 9) + "10 │ y\n"},
		{"continued", long + "\nb", 9, 25, "page 1 of 1, lines 1–2 of 2, 52 bytes\n1 │ 01234567890123456789\n  ↪ 01234567890123456789\n  ↪ 0123456789\n2 │ b\n"},
		{"continued on the next page", long + "\nb", 2, 25,
			"page 1 of 2, line 1 of 2, 52 bytes\n1 │ 01234567890123456789\n  ↪ 01234567890123456789\npage 2 of 2, lines 1–2 of 2, 52 bytes\n  ↪ 0123456789\n2 │ b\n"},
		{"least width", long[:20], 9, 0, "page 1 of 1, line 1 of 1, 20 bytes\n1 │ 0123456789012345\n  ↪ 6789\n"},
		{"escapes stay whole", "0123456789ab<U+202E>c", 9, 0, "page 1 of 1, line 1 of 1, 16 bytes\n1 │ 0123456789ab\n  ↪ <U+202E>c\n"},
		{"marks stay on their letters", "0123456789abcdee\u0301\u0302f", 9, 0, "page 1 of 1, line 1 of 1, 21 bytes\n1 │ 0123456789abcdee\u0301\u0302\n  ↪ f\n"},
		{"more marks than fit", "क" + strings.Repeat("\u093e", 20), 9, 0,
			"page 1 of 1, line 1 of 1, 63 bytes\n1 │ क" + strings.Repeat("\u093e", 11) + "\n  ↪ " + strings.Repeat("\u093e", 9) + "\n"},
		{"wide letters", "日本語日本語日本語", 9, 0, "page 1 of 1, line 1 of 1, 27 bytes\n1 │ 日本語日本語日本\n  ↪ 語\n"},
		{"imitated margin", "a\n  ↪ b\n3 │ c", 9, 80, "page 1 of 1, lines 1–3 of 3, 17 bytes\n1 │ a\n2 │   ↪ b\n3 │ 3 │ c\n"},
		{"bytes of the original", Visible("\xff\u202e\U000e0041<0x41>"), 9, 80, "page 1 of 1, line 1 of 1, 14 bytes\n1 │ <0xFF><U+202E><U+E0041><U+003C>0x41>\n"},
	} {
		p := Paginate(c.safe, c.rows, c.width)
		var b strings.Builder
		for n := 1; n <= p.Count(); n++ {
			fmt.Fprintf(&b, "%s\n%s", p.Title(n), p.Page(n))
		}
		want := c.want
		for n := 1; strings.Contains(want, " n │"); n++ {
			want = strings.Replace(want, " n │", fmt.Sprintf(" %d │", n), 1)
		}
		if got := b.String(); got != want {
			t.Errorf("%s\n got %q\nwant %q", c.what, got, want)
		}
	}
}

func TestTitleOfManyPages(t *testing.T) {
	p := Paginate(strings.Repeat("twelve bytes\n", 2599)+"end", 400, 80)
	if got, want := p.Title(2), "page 2 of 7, lines 401–800 of 2,600, 33,790 bytes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoSuchPage(t *testing.T) {
	p := Paginate("a\nb", 1, 80)
	for _, n := range []int{-1, 0, 3} {
		if p.Page(n) != "" || p.Title(n) != "" {
			t.Errorf("page %d: %q, %q", n, p.Page(n), p.Title(n))
		}
	}
	if p.Count() != 2 || p.Page(2) == "" || (Pages{}).Count() != 0 || (Pages{}).Page(1) != "" {
		t.Error("the pages that there are")
	}
}
