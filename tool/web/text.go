package web

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// link is where a page leads.
type link struct{ text, url string }

// writer makes readable text of elements.
type writer struct {
	out   strings.Builder
	lines int  // line ends that are due before the next word
	space bool // a space is

	base   *url.URL
	whole  bool // what is around the page's subject is kept
	links  []link
	seen   map[string]bool
	more   int // links that were left out
	hidden int // elements that were
	pre    bool
	lists  []int // the numbers of lists that are open; -1 for those without
}

// Bounds of a text.
const (
	mostLinks  = 100
	mostLabel  = 120
	mostIndent = 6 // a list in a list in a list
)

func (w *writer) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
	case html.ElementNode:
		w.element(n)
	case html.DocumentNode:
		w.children(n)
	}
}

func (w *writer) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c)
	}
}

func (w *writer) element(n *html.Node) {
	if silent[n.DataAtom] || !w.whole && isAround(n) {
		return
	}
	if hidden(n) {
		w.hidden++
		return
	}
	gap := gaps[n.DataAtom]
	w.end(gap)
	w.begin(n)
	w.end(gap)
}

// gaps is how far elements stand from what is before and after them: on a line of their
// own, or with an empty line between.
var gaps = map[atom.Atom]int{
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Pre: 2, atom.Table: 2,
	atom.Blockquote: 2, atom.Figure: 2, atom.Hr: 2, atom.Article: 2, atom.Section: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Aside: 2,
	atom.Div: 1, atom.Li: 1, atom.Dt: 1, atom.Dd: 1, atom.Tr: 1, atom.Form: 1, atom.Fieldset: 1, atom.Address: 1, atom.Details: 1, atom.Summary: 1, atom.Figcaption: 1, atom.Caption: 1, atom.Option: 1,
}

func (w *writer) begin(n *html.Node) {
	switch n.DataAtom {
	case atom.Br:
		w.end(1)
	case atom.Hr:
		w.word("---")
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.word(strings.Repeat("#", int(n.Data[1]-'0')))
		w.space = true
		w.children(n)
	case atom.Ul, atom.Ol:
		number := -1
		if n.DataAtom == atom.Ol {
			number = 0
		}
		w.lists = append(w.lists, number)
		w.children(n)
		w.lists = w.lists[:len(w.lists)-1]
	case atom.Li:
		w.item()
		w.children(n)
	case atom.Td, atom.Th:
		if prevElement(n) != nil {
			w.space = true
			w.word("|")
		}
		w.space = true
		w.children(n)
	case atom.Pre:
		w.word("```")
		w.end(1)
		before := w.pre
		w.pre = true
		w.children(n)
		w.pre = before
		w.end(1)
		w.word("```")
	case atom.Img:
		if alt := oneLine(attr(n, "alt")); alt != "" {
			w.word("[image: " + alt + "]")
		}
	case atom.A:
		from := w.out.Len()
		w.children(n)
		w.link(n, w.out.String()[from:])
	default:
		w.children(n)
	}
}

func (w *writer) item() {
	depth, mark := len(w.lists), "-"
	if depth > 0 && w.lists[depth-1] >= 0 {
		w.lists[depth-1]++
		mark = strconv.Itoa(w.lists[depth-1]) + "."
	}
	w.word(strings.Repeat("  ", max(0, min(depth, mostIndent)-1)) + mark)
	w.space = true
}

func (w *writer) link(n *html.Node, text string) {
	if strings.HasPrefix(strings.TrimSpace(attr(n, "href")), "#") {
		return
	}
	u, err := resolve(w.base, attr(n, "href"))
	if err != nil || w.seen[u.String()] {
		return
	}
	if len(w.links) == mostLinks {
		w.more++
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[u.String()] = true
	w.links = append(w.links, link{cutTo(oneLine(text), mostLabel), visible(u.String())})
}

// end asks for line ends before whatever comes next.
func (w *writer) end(lines int) {
	w.lines = max(w.lines, lines)
}

// word writes something with what is due before it.
func (w *writer) word(s string) {
	switch {
	case w.out.Len() == 0:
	case w.lines > 0:
		w.out.WriteString("\n\n"[:min(w.lines, 2)])
	case w.space:
		w.out.WriteByte(' ')
	}
	w.lines, w.space = 0, false
	w.out.WriteString(s)
}

func (w *writer) text(s string) {
	s = visible(s)
	if w.pre {
		if s != "" {
			w.word(strings.TrimRight(s, "\n"))
			w.lines = min(2, len(s)-len(strings.TrimRight(s, "\n")))
		}
		return
	}
	for i, part := range strings.Fields(s) {
		w.space = w.space || i > 0 || unicode.IsSpace(firstRune(s))
		w.word(part)
	}
	if s != "" && strings.TrimRightFunc(s, unicode.IsSpace) != s {
		w.space = true
	}
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

// visible leaves out characters that do not show: text that only a model would read.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u2028' || r == '\u2029' || r == '\r':
			return '\n'
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
}

// oneLine is a text as it stands in a line, bounded.
func oneLine(s string) string {
	return cutTo(strings.Join(strings.Fields(visible(cutTo(s, 4*mostLine))), " "), mostLine)
}

const mostLine = 500

// cutTo is the beginning of a text, and a sign that there was more.
func cutTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return string(trimRune([]byte(s[:most]))) + "…"
}

func prevElement(n *html.Node) *html.Node {
	for p := n.PrevSibling; p != nil; p = p.PrevSibling {
		if p.Type == html.ElementNode {
			return p
		}
	}
	return nil
}
