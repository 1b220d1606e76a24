package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Providers are those that web_search knows how to ask, by the type of their connection.
func Providers() []string {
	names := make([]string, 0, len(providers))
	for name := range providers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Posts says whether a provider is asked by POST, which counts as changing something.
func Posts(provider string) bool {
	p, ok := providers[provider]
	if !ok {
		return false
	}
	a, err := p.ask(Query{Text: "x", Count: 1})
	return err != nil || a.Method != http.MethodGet
}

// A Query is what is searched for.
type Query struct {
	Text  string
	Count int // from 1 to 20
}

// An Asking is a query as a provider takes it, below the address of its connection.
// Credentials are the connection's.
type Asking struct {
	Method, Path string
	Body         string // JSON; empty: none
}

// A Hit is one result. What is in it is text that somebody else wrote, with nothing in it
// that does not show.
type Hit struct {
	Title string `json:"title"`
	URL   string `json:"url"`
	Text  string `json:"text,omitempty"`
	Date  string `json:"date,omitempty"`
}

// Ask is the request that finds out.
func Ask(provider string, q Query) (Asking, error) {
	p, ok := providers[provider]
	if !ok {
		return Asking{}, fmt.Errorf("there is no search provider %q; there are %s", provider, strings.Join(Providers(), ", "))
	}
	return p.ask(q)
}

// Found reads a provider's answer. What is no address of a page is left out, and so is
// what comes after as many as were asked for.
func Found(provider string, q Query, answer []byte) ([]Hit, error) {
	p, ok := providers[provider]
	if !ok {
		return nil, fmt.Errorf("there is no search provider %q", provider)
	}
	raw, err := p.read(answer)
	if err != nil {
		return nil, fmt.Errorf("what %s answers is not what it is known to answer: %w", provider, err)
	}
	out := []Hit{}
	for _, h := range raw {
		u, err := resolve(nil, h.URL)
		if err != nil || len(out) == q.Count {
			continue
		}
		out = append(out, Hit{Title: plain(h.Title, 300), URL: visible(u.String()), Text: plain(h.Text, mostSnippet), Date: plain(h.Date, 40)})
	}
	return out, nil
}

// mostSnippet is how much of a page comes with a result.
const mostSnippet = 1000

// plain is a text of a provider's, which may have marked words with tags.
func plain(s string, most int) string {
	s = cutTo(s, 4*most)
	if strings.ContainsAny(s, "<&") {
		if doc, err := parse(s); err == nil {
			w := writer{whole: true}
			w.node(doc)
			s = w.out.String()
		}
	}
	return cutTo(strings.Join(strings.Fields(visible(s)), " "), most)
}

type provider struct {
	ask  func(Query) (Asking, error)
	read func([]byte) ([]Hit, error)
}

var providers = map[string]provider{
	"brave":   {get("/res/v1/web/search", "count", nil), readBrave},
	"searxng": {get("/search", "", url.Values{"format": {"json"}}), readList},
	"tavily": {post("/search", func(q Query) any {
		return map[string]any{"query": q.Text, "max_results": q.Count, "search_depth": "basic"}
	}), readList},
	"exa": {post("/search", func(q Query) any {
		return map[string]any{"query": q.Text, "numResults": q.Count, "contents": map[string]any{"text": map[string]any{"maxCharacters": mostSnippet}}}
	}), readList},
}

func get(path, count string, more url.Values) func(Query) (Asking, error) {
	return func(q Query) (Asking, error) {
		values := url.Values{"q": {q.Text}}
		for k, v := range more {
			values[k] = v
		}
		if count != "" {
			values.Set(count, strconv.Itoa(q.Count))
		}
		return Asking{Method: http.MethodGet, Path: path + "?" + values.Encode()}, nil
	}
}

func post(path string, of func(Query) any) func(Query) (Asking, error) {
	return func(q Query) (Asking, error) {
		b, err := json.Marshal(of(q))
		return Asking{Method: http.MethodPost, Path: path, Body: string(b)}, err
	}
}

func readBrave(answer []byte) ([]Hit, error) {
	var a struct {
		Web struct {
			Results []struct{ Title, URL, Description, Age string }
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, err
	}
	var out []Hit
	for _, r := range a.Web.Results {
		out = append(out, Hit{r.Title, r.URL, r.Description, r.Age})
	}
	return out, nil
}

// readList reads the answers that are alike: tavily's and searxng's text is content, exa's
// text.
func readList(answer []byte) ([]Hit, error) {
	var a struct {
		Results []struct {
			Title, URL, Content, Text string
			Exa                       string `json:"publishedDate"`
			Tavily                    string `json:"published_date"`
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, err
	}
	if a.Results == nil {
		return nil, fmt.Errorf("it has no results")
	}
	var out []Hit
	for _, r := range a.Results {
		out = append(out, Hit{r.Title, r.URL, r.Content + r.Text, r.Exa + r.Tavily})
	}
	return out, nil
}
