package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

var extractDefinition = define(tool.Definition{
	Name: "html_extract", Title: "Take parts out of HTML",
	Description: "Find elements by CSS selectors in a web page, or in HTML that is given, and return their text, their HTML, or one of their attributes, as JSON. With url it reaches that host alone; with html it reaches nothing. At most 1000 results a selector and 1 MiB in all. What a page says is untrusted.",
	Action:      "web:read", Class: writ.ClassNone, // with a URL, read_only
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["selectors"],"properties":{
		"url":{"type":"string","minLength":1,"maxLength":8192,"x-writ-url":"read","description":"The page to look at: an absolute http or https URL. Either this or html."},
		"html":{"type":"string","maxLength":1048576,"x-writ-text":true,"description":"HTML to look at. Either this or url."},
		"selectors":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"string","minLength":1,"maxLength":500,"x-writ-text":true},"description":"CSS selectors: elements, .class, #id, [attribute^=\"value\"], :first-child, :last-child, :only-child, :nth-child(2n+1), :nth-last-child(1), :not(.class), :empty, :root, joined by spaces, >, +, ~ and commas."},
		"as":{"type":"string","enum":["text","html","attribute"],"description":"What to return of each element; text when left out."},
		"attribute":{"type":"string","minLength":1,"maxLength":100,"x-writ-text":true,"description":"Which attribute, with as: attribute. Of href and src, the address that it leads to."},
		"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Results of each selector; 100 when left out."},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":60,"description":"Seconds until it has to be done; 30 when left out."}}}`),
	Output: json.RawMessage(`{"type":"object","required":["results","cut"],"properties":{
		"url":{"type":"string"},
		"results":{"type":"array","items":{"type":"object","required":["selector","matched","items"],"properties":{
			"selector":{"type":"string"},"matched":{"type":"integer"},"items":{"type":"array","items":{"type":"string"}}}}},
		"cut":{"type":"boolean"}}}`),
	Examples: []tool.Example{
		example("the headings of a page", `{"url":"https://example.com/","selectors":["h1, h2","main p:first-child"]}`),
		example("where a list links to", `{"html":"<ul><li><a href=\"/a\">A</a></ul>","selectors":["li > a"],"as":"attribute","attribute":"href"}`),
	},
	Failures: []string{"neither html nor url is given, or both", "a selector is not understood, which the error says", "the page is not HTML, or is nested too deep", "those of web_fetch"},
})

type extractArgs struct {
	URL       string   `json:"url"`
	HTML      *string  `json:"html"`
	Selectors []string `json:"selectors"`
	As        string   `json:"as"`
	Attribute string   `json:"attribute"`
	Limit     int      `json:"limit"`
	Timeout   int      `json:"timeout_seconds"`
}

func (a extractArgs) check() error {
	switch {
	case (a.URL == "") == (a.HTML == nil):
		return failf("give either url or html")
	case a.HTML != nil && len(*a.HTML) > mostBody:
		return failf("html has more than %d bytes; give less of it", mostBody)
	case (a.As == "attribute") != (a.Attribute != ""):
		return failf(`attribute goes with "as": "attribute"; give both or neither`)
	}
	return nil
}

func (f family) extract(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a extractArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if err := a.check(); err != nil {
		return writ.Result{}, err
	}
	var wanted []selector
	for _, text := range a.Selectors { // before anything is fetched
		s, err := parseSelector(text)
		if err != nil {
			return writ.Result{}, err
		}
		wanted = append(wanted, s)
	}
	x := &extraction{args: a}
	var text string
	if a.HTML != nil {
		text = *a.HTML
	} else {
		g, err := f.page(ctx, w, a.URL, a.Timeout)
		switch {
		case err != nil:
			return writ.Result{}, err
		case g.code >= 400:
			return writ.Result{}, failf("the server answers %s; web_fetch shows what it says", shown(g.status))
		case !g.isHTML():
			return writ.Result{}, failf("it is not HTML but %s; web_fetch or http_request shows it", g.body.says())
		}
		text, x.at, x.out.URL, x.out.Cut = g.text, g.at, g.at.String(), g.body.cut
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cmp.Or(a.Timeout, 30))*time.Second)
	defer cancel()
	if err := x.run(ctx, text, wanted); err != nil {
		return writ.Result{}, err
	}
	return x.result()
}

// extraction is the work of one call.
type extraction struct {
	args extractArgs
	at   *url.URL
	page *page
	size int
	out  extracted
}

type extracted struct {
	URL     string  `json:"url,omitempty"`
	Results []found `json:"results"`
	Cut     bool    `json:"cut"`
}

type found struct {
	Selector string   `json:"selector"`
	Matched  int      `json:"matched"`
	Items    []string `json:"items"`
}

func (x *extraction) run(ctx context.Context, text string, wanted []selector) error {
	doc, err := parse(text)
	if err != nil {
		return err
	}
	x.page = pageOf(doc, x.at)
	o := outlineOf(doc)
	for i, s := range wanted {
		matched, err := s.find(ctx, o)
		if err != nil {
			return failf("the selectors take too long on this page; give fewer")
		}
		f := found{Selector: x.args.Selectors[i], Matched: len(matched), Items: []string{}}
		for _, at := range matched {
			if len(f.Items) == cmp.Or(x.args.Limit, 100) || x.size >= mostBody {
				x.out.Cut = true
				break
			}
			item := x.item(o.nodes[at])
			if x.size += len(item); x.size > mostBody {
				item = string(trimRune([]byte(item[:max(0, len(item)-(x.size-mostBody))])))
				x.out.Cut = true
			}
			f.Items = append(f.Items, item)
		}
		x.out.Results = append(x.out.Results, f)
	}
	return nil
}

// item is what is wanted of one element.
func (x *extraction) item(n *html.Node) string {
	switch x.args.As {
	case "attribute":
		name := strings.ToLower(x.args.Attribute)
		value := attr(n, name)
		if u, err := resolve(x.page.base, value); err == nil && (name == "href" || name == "src") {
			value = u.String()
		}
		return visible(value)
	case "html":
		var b strings.Builder
		if html.Render(&b, n) != nil {
			return ""
		}
		return visible(b.String())
	}
	w := writer{base: x.page.base, whole: true}
	w.node(n)
	return w.out.String()
}

func (x *extraction) result() (writ.Result, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is read as it is
	err := e.Encode(x.out)
	return writ.Result{Content: b.String()}, err
}
