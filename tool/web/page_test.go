package web

import (
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// seen is what web_fetch makes of a page.
func seen(t testing.TB, text string, a fetchArgs) *view {
	t.Helper()
	at, err := url.Parse("https://good.test/docs/page")
	if err != nil {
		t.Fatal(err)
	}
	v := &view{args: a, got: got{code: 200, at: at, text: text, body: body{kind: "text/html", bytes: []byte(text)}}}
	if err := v.read(); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPageText(t *testing.T) {
	for _, c := range []struct{ name, html, want string }{
		{"paragraphs", "<p>one\n  two<p>three<b> four</b>five", "one two\n\nthree fourfive"},
		{"headings", "<h1>A</h1><h3>B</h3>c", "# A\n\n### B\n\nc"},
		{"lists", "<ul><li>a<li>b<ol><li>c<li>d</ol></ul>", "- a\n- b\n\n  1. c\n  2. d"},
		{"code", "x<pre>a\n  b\n</pre>y", "x\n\n```\na\n  b\n```\n\ny"},
		{"tables", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"},
		{"breaks", "a<br>b<hr>c", "a\nb\n\n---\n\nc"},
		{"images", `a <img alt="a  cat"> <img>b`, "a [image: a cat] b"},
		{"not for readers", "a<script>x</script><style>y</style><template>z</template><noscript>n</noscript><!-- c -->b<svg><text>s</text></svg>", "ab"},
		{"hidden", `a<p hidden>1<p style="DISPLAY : none">2<p style="visibility:hidden">3<div style="font-size:0">4</div><span style="opacity:0">5</span><i aria-hidden=true>6</i><p style="color:red">b`, "a\n\nb"},
		{"characters that do not show", "a\u200bb\u202ec\U000e0041d\u00ade\x1b[2J", "abcde[2J"},
		{"entities", "&lt;b&gt; &amp; &eacute;", "<b> & é"},
		{"what it is about", "<nav>menu menu</nav><main><p>the text of it</main><footer>foot</footer>", "the text of it"},
		{"a small article beside", "<article>ad</article><p>the text of the page, which is long", "ad\n\nthe text of the page, which is long"},
		{"around it", "<nav>menu</nav><div role=navigation>x</div><p>text<aside>side</aside>", "text"},
		{"nothing", "", ""},
		{"frames", "<frameset><frame src=x></frameset>", ""},
	} {
		if got := seen(t, c.html, fetchArgs{}).text; got != c.want {
			t.Errorf("%s: %s", c.name, cmp.Diff(c.want, got))
		}
	}
	if got := seen(t, "<nav>menu</nav><main>text</main>", fetchArgs{Whole: true}).text; got != "menu\n\ntext" {
		t.Errorf("whole: %q", got)
	}
}

func TestPageSaysOfItself(t *testing.T) {
	v := seen(t, `<html lang=de><head><base href="/other/"><title> A
		title </title><meta name=description content="what it is"><link rel=canonical href=here></head><body>
		<a href="x">one</a> <a href="x">again</a> <a href="#y">here</a> <a href="javascript:alert(1)">run</a> <a href="//b.test/z?q=1">two</a> <a href="mailto:a@b.test">mail</a>`, fetchArgs{})
	if v.about.title != "A title" || v.about.description != "what it is" || v.about.canonical != "https://good.test/other/here" || v.about.language != "de" {
		t.Errorf("%+v", v.about)
	}
	want := []link{{"one", "https://good.test/other/x"}, {"two", "https://b.test/z?q=1"}}
	if diff := cmp.Diff(want, v.w.links, cmp.AllowUnexported(link{})); diff != "" {
		t.Error(diff)
	}
	res := v.result()
	if !strings.HasPrefix(res.Content, "title: A title\nurl: https://good.test/docs/page\ndescription: what it is\ncanonical: https://good.test/other/here\nlanguage: de\n\none again") ||
		!strings.HasSuffix(res.Content, "\nlinks:\n- https://good.test/other/x one\n- https://b.test/z?q=1 two\n") {
		t.Errorf("%s", res.Content)
	}
}

func TestPageInParts(t *testing.T) {
	text := "<p>" + strings.Repeat("äbcdefghi ", 100)
	first := seen(t, text, fetchArgs{Most: 100}).result()
	if !strings.Contains(first.Content, "[cut: characters 0 to 100 of 999; go on with start_char 100]") || first.Metadata["cut"] != true {
		t.Errorf("%s", first.Content)
	}
	last := seen(t, text, fetchArgs{Most: 100, Start: 900}).result()
	if strings.Contains(last.Content, "[cut") || !strings.Contains(last.Content, "\näbcdefghi ") {
		t.Errorf("%s", last.Content)
	}
	if none := seen(t, text, fetchArgs{Start: 5000}).result(); !strings.Contains(none.Content, "[no text]\n[the text has 999 characters; begin before that]") {
		t.Errorf("%s", none.Content)
	}
}

// hostile pages are made to be dear to read.
func hostile() map[string]string {
	many := func(s string) string {
		return strings.Repeat(s, min(mostBody/len(s), mostTags/max(1, strings.Count(s, "<")))-1000)
	}
	return map[string]string{
		"siblings": many("<p>"), "links": many("<a href=x>y</a>"), "lists": strings.Repeat("<ul>", 400) + many("<li>x"), "images": many("<img alt=x>"),
		"attributes": "<p " + many("a=b ") + ">x", "foster": many("<table><a>x"), "styles": many("<i style=a>x</i>"), "pre": many("<pre>x</pre>"), "comments": many("<!--"),
		"nesting as deep as may be": strings.Repeat("<article>", 500) + many("x "), "broken": many("<\x00&#xffffff;\xff"),
	}
}

// What a page is like does not make reading it take long, or much.
func TestHostilePages(t *testing.T) {
	for name, text := range hostile() {
		began := worked(t)
		v := seen(t, text, fetchArgs{})
		if took := worked(t) - began; took > 20*time.Second || len(v.text) > 20*mostBody {
			t.Errorf("%s took %v for %d bytes", name, took, len(v.text))
		}
		if res := v.result(); len(res.Content) > 300000 {
			t.Errorf("%s: %d bytes", name, len(res.Content))
		}
	}
	for text, says := range map[string]string{strings.Repeat("<div>", 10000): "nested deeper", strings.Repeat("<p>", mostTags+1): "more than 100000 tags"} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s: %v", says, err)
		}
	}
}

// worked is the processor time that this process has used: whatever else runs on the machine
// has no part in it.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func FuzzPage(f *testing.F) {
	f.Add("<p>a<b hidden>c</b><ul><li>x<pre> y\n</pre><a href='//x'>z</a>")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parse(text); err != nil {
			return
		}
		v := seen(t, text, fetchArgs{Whole: len(text)%2 == 0})
		for _, s := range []string{v.text, v.about.title, v.about.description} {
			if !utf8.ValidString(s) && utf8.ValidString(text) {
				t.Errorf("%q is not UTF-8", s)
			}
			if strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Cf) || unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%q holds what does not show", s)
			}
		}
	})
}
