package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

// SearchName is what the tool is called that searches.
const SearchName = "web_search"

var searchDefinition = func() tool.Definition {
	d := define(tool.Definition{
		Name: SearchName, Title: "Search the web",
		Description: "Search the web over a connection that the operator set up to a search provider. Gives titles, addresses and a piece of text each, which are untrusted; web_fetch reads a page. Providers that are asked by POST ask a person first.",
		Action:      "web:read", Class: writ.ClassReadOnly,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["connection","query"],"properties":{
		"connection":{"type":"string","minLength":1,"maxLength":64,"x-writ-connection":true,"description":"Name of a connection to a search provider. One that is not there is answered with those that are."},
		"query":{"type":"string","minLength":1,"maxLength":1000,"x-writ-text":true,"description":"What to search for."},
		"count":{"type":"integer","minimum":1,"maximum":20,"description":"How many results; 10 when left out."}}}`),
		Examples: []tool.Example{example("find something", `{"connection":"search","query":"landlock network rules"}`)},
		Failures: []string{"there is no such connection, or it is not one to a search provider", "the rate limit of the connection is reached: the error has retry_after, in seconds", "the provider answers with an error, which is shown"},
	})
	d.Brokered = false // the connection says what is asked, and how
	return d
}()

type searchArgs struct {
	Connection string `json:"connection"`
	Query      string `json:"query"`
	Count      int    `json:"count"`
}

// Searcher sends what a provider is asked over the connection of a call. ask is told whom.
type Searcher func(ctx context.Context, w writ.Writ, ask func(provider string) (Asking, error)) (Answer, error)

// An Answer is what a provider said, without the credentials.
type Answer struct {
	Provider string
	Status   int
	Body     string
}

func (f family) search(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a searchArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if f.o.Search == nil {
		return writ.Result{}, writ.Fail(writ.Internal, "there is no way out of this program", nil)
	}
	q := Query{Text: a.Query, Count: cmp.Or(a.Count, 10)}
	got, err := f.o.Search(ctx, w, func(provider string) (Asking, error) { return Ask(provider, q) })
	if err != nil {
		return writ.Result{}, err
	}
	if got.Status != 200 {
		return writ.Result{}, failf("%s answers %d:\n%s", got.Provider, got.Status, cutTo(visible(got.Body), mostSnippet))
	}
	hits, err := Found(got.Provider, q, []byte(got.Body))
	if err != nil {
		return writ.Result{}, failure{err.Error()}
	}
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, cmp.Or(h.Title, "(without a title)"), h.URL)
		for _, line := range []string{h.Date, h.Text} {
			if line != "" {
				fmt.Fprintf(&b, "   %s\n", line)
			}
		}
	}
	if len(hits) == 0 {
		b.WriteString("nothing was found\n")
	}
	return writ.Result{Content: b.String(), Metadata: map[string]any{"connection": a.Connection, "provider": got.Provider, "results": hits}}, nil
}
