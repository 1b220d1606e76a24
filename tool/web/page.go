package web

import (
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// page is what a document says about itself, and where it has its say.
type page struct {
	title, description, canonical, language string

	base    *url.URL // what its links are relative to; nil: nothing
	body    *html.Node
	main    *html.Node // the element that is what it is about; nil: none stands out
	longest int        // the text of that
}

// mostTags bounds what a parser is given: each may make it look at all that are open, of
// which it allows 512. A page of 1 MiB that people made has a third of it.
const mostTags = 100_000

// parse reads a document. The parser itself refuses what is nested too deep, so that
// whoever walks the tree may call itself.
func parse(text string) (*html.Node, error) {
	if strings.Count(text, "<") > mostTags {
		return nil, failf("the page has more than %d tags, too many to be read; http_request shows its source", mostTags)
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, failf("the page is nested deeper than it can be read; http_request shows its source")
	}
	return doc, nil
}

// pageOf finds out what a document is about.
func pageOf(doc *html.Node, at *url.URL) *page {
	p := &page{base: at}
	all := p.survey(doc)
	// A page may have a small article beside what it is about.
	if p.longest*4 < all {
		p.main = nil
	}
	return p
}

// survey looks at every element once, and gives the length of its text.
func (p *page) survey(n *html.Node) int {
	if n.Type == html.TextNode {
		return len(n.Data)
	}
	if n.Type == html.ElementNode {
		p.note(n)
		if n.DataAtom != atom.Head && (silent[n.DataAtom] || hidden(n)) {
			return 0
		}
	}
	length := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		length += p.survey(c)
	}
	if stands := n.DataAtom == atom.Main || n.DataAtom == atom.Article || attr(n, "role") == "main"; stands && n.Type == html.ElementNode && length > p.longest {
		p.main, p.longest = n, length
	}
	return length
}

// note takes down what an element says of the whole page.
func (p *page) note(n *html.Node) {
	first := func(into *string, value string) {
		if *into == "" {
			*into = oneLine(value)
		}
	}
	switch n.DataAtom {
	case atom.Html:
		first(&p.language, attr(n, "lang"))
	case atom.Body:
		p.body = n
	case atom.Title:
		if n.FirstChild != nil && n.Namespace == "" {
			first(&p.title, n.FirstChild.Data)
		}
	case atom.Base:
		if u, err := resolve(p.base, attr(n, "href")); err == nil {
			p.base = u
		}
	case atom.Link:
		if strings.EqualFold(attr(n, "rel"), "canonical") {
			if u, err := resolve(p.base, attr(n, "href")); err == nil {
				first(&p.canonical, u.String())
			}
		}
	case atom.Meta:
		switch strings.ToLower(attr(n, "name") + attr(n, "property")) {
		case "description", "og:description":
			first(&p.description, attr(n, "content"))
		case "og:title":
			first(&p.title, attr(n, "content"))
		}
	}
}

// silent are elements whose text nobody reads on a page.
var silent = map[atom.Atom]bool{
	atom.Head: true, atom.Script: true, atom.Style: true, atom.Template: true, atom.Noscript: true, atom.Iframe: true, atom.Object: true,
	atom.Embed: true, atom.Svg: true, atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Select: true, atom.Datalist: true, atom.Textarea: true,
}

// around are elements that are beside what a page is about.
var around = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true}

func isAround(n *html.Node) bool {
	switch attr(n, "role") {
	case "navigation", "banner", "contentinfo", "complementary", "search":
		return true
	}
	return around[n.DataAtom]
}

// hidden reports whether an element says of itself that nobody sees it. What a style sheet
// says is not known here, so this leaves out what is plain and promises nothing.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return strings.EqualFold(a.Val, "true")
		case "style":
			if unseen(a.Val) {
				return true
			}
		}
	}
	return false
}

func unseen(style string) bool {
	flat := strings.ToLower(strings.Join(strings.Fields(style), "")) + ";"
	for _, says := range []string{
		"display:none", "visibility:hidden", "visibility:collapse", "opacity:0;", "opacity:0!", "opacity:0.0", "font-size:0;", "font-size:0!", "font-size:0px", "font-size:0.",
		"color:transparent", "text-indent:-9", "left:-9", "top:-9", "clip:rect(0", "clip-path:inset(50%", "clip-path:inset(100%",
	} {
		if strings.Contains(flat, says) {
			return true
		}
	}
	return false
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// mostURL is how long an address of a page may be to be passed on.
const mostURL = 2000

var errNoPage = errors.New("it leads to no page")

// resolve is where a link of a page leads.
func resolve(base *url.URL, href string) (*url.URL, error) {
	href = strings.TrimSpace(href)
	if href == "" || len(href) > mostURL {
		return nil, errNoPage
	}
	u, err := url.Parse(href)
	if err != nil {
		return nil, errNoPage
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errNoPage
	}
	return u, nil
}
