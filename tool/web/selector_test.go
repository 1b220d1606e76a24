package web

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// selected is the text of what a selector matches.
func selected(t testing.TB, text, sel string) []string {
	t.Helper()
	s, err := parseSelector(sel)
	if err != nil {
		t.Fatal(err)
	}
	x := &extraction{args: extractArgs{Selectors: []string{sel}}}
	if err := x.run(t.Context(), text, []selector{s}); err != nil {
		t.Fatal(err)
	}
	return x.out.Results[0].Items
}

const menu = `<div id=top class="menu main"><ul><li class=a>1<li>2<li class="a b" data-x="en-GB">3<li>4<li>5</ul><p>6<p>7<span>8</span><p></p></div><p>9<a href="https://x.test/A.PDF">10</a>`

func TestSelectors(t *testing.T) {
	for sel, want := range map[string]string{
		"span": "8", "li": "- 1,- 2,- 3,- 4,- 5", "LI.a": "- 1,- 3", ".a.b": "- 3", "#top > p": "6,78,", "#top p": "6,78,", "body > p": "910", "p span": "8", "div span": "8", "body span": "8",
		"ul + p": "6", "ul ~ p": "6,78,", "li:first-child": "- 1", "li:last-child": "- 5", "li:nth-child(2)": "- 2", "li:nth-child(odd)": "- 1,- 3,- 5", "li:nth-child(even)": "- 2,- 4",
		"li:nth-child(-n+2)": "- 1,- 2", "li:nth-child( 2n + 1 )": "- 1,- 3,- 5", "li:nth-child(n+4)": "- 4,- 5", "li:nth-last-child(1)": "- 5", "li:not(.a)": "- 2,- 4,- 5", "li:not([data-x]):not(.a)": "- 2,- 4,- 5",
		"span:only-child": "8", "p:empty": "", "[data-x]": "- 3", `[data-x="en-GB"]`: "- 3", "[data-x|=en]": "- 3", "[class~=b]": "- 3", `a[href^='https:']`: "10", `a[href$=".pdf" i]`: "10", `a[href*="x.test"]`: "10",
		"span, a": "8,10", "a,span": "8,10", "*:root > body > p > a": "10", "li li": "-none", "ul * span": "-none", ".none": "-none", `#t\op span`: "8", "div > ul > li + li + li + li": "- 4,- 5",
	} {
		got := strings.Join(selected(t, menu, sel), ",")
		if want == "-none" {
			want = ""
		}
		if got != want {
			t.Errorf("%s: %s", sel, cmp.Diff(want, got))
		}
	}
}

func TestSelectorsThatAreNone(t *testing.T) {
	for sel, says := range map[string]string{
		" ": "it ends where", ".": "the class has no name", "#": "the id has no name", "p >": "it ends where", "> p": "not understood there", "p,": "it ends where", "p::before": `: is not understood`,
		"p:has(a)": ":has is not understood; there are :first-child", "p:nth-child(x)": "is no place", "p:nth-child(2": "is not closed", "p:nth-child": "needs something in brackets", "[a": "is not closed", "[]": "the attribute has no name",
		`[a="b]`: "does not end with it", "[a!=b]": "is not closed", ":not(a b)": "conditions on one element", "p(": "not understood there", "a|b": "not understood there", "**": "not understood there",
		strings.Repeat("a ", 33): "more than 32 parts", "p:nth-child(n2)": "is no place", "ä{": "not understood there",
	} {
		if _, err := parseSelector(sel); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", sel, err, says)
		}
	}
}

// Neither the page nor the selector makes it take long: from each element outwards, the
// first of these would take more steps than there are atoms.
func TestHostileSelectors(t *testing.T) {
	deep := strings.Repeat("<div>", 400) + strings.Repeat("<p>x", 90000)
	for _, sel := range []string{
		"b " + strings.Repeat("div ", 30) + "p", "b ~ " + strings.Repeat("p ~ ", 29) + "p", "p:nth-child(2n+1):nth-last-child(3n+1)", strings.Repeat(":not(", 30) + "p" + strings.Repeat(")", 30), "div",
	} {
		began := time.Now()
		selected(t, deep, sel)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%.40s took %v", sel, took)
		}
	}
	s, err := parseSelector("p p")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&extraction{args: extractArgs{Selectors: []string{"p p"}}}).run(over, deep, []selector{s}); err == nil || !strings.Contains(err.Error(), "take too long") {
		t.Errorf("when time is over: %v", err)
	}
}

func FuzzSelector(f *testing.F) {
	for _, s := range []string{"ul > li.a:not([x='y' i]) ~ p, *:nth-child(-2n+1)", `#\31`, "a[b|=c]:empty"} {
		f.Add(s, menu)
	}
	f.Fuzz(func(t *testing.T, sel, text string) {
		s, err := parseSelector(sel)
		doc, failed := parse(text)
		if err != nil || failed != nil {
			return
		}
		o := outlineOf(doc)
		matched, err := s.find(t.Context(), o)
		if err != nil || len(matched) > len(o.nodes) {
			t.Errorf("%v %v", matched, err)
		}
	})
}
