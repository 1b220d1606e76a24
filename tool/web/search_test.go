package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAsk(t *testing.T) {
	q := Query{Text: "a & b", Count: 3}
	for provider, want := range map[string]Asking{
		"brave":   {"GET", "/res/v1/web/search?count=3&q=a+%26+b", ""},
		"searxng": {"GET", "/search?format=json&q=a+%26+b", ""},
		"tavily":  {"POST", "/search", `{"max_results":3,"query":"a \u0026 b","search_depth":"basic"}`},
		"exa":     {"POST", "/search", `{"contents":{"text":{"maxCharacters":1000}},"numResults":3,"query":"a \u0026 b"}`},
	} {
		if got, err := Ask(provider, q); err != nil || got != want {
			t.Errorf("%s: %v %s", provider, err, cmp.Diff(want, got))
		}
	}
	if _, err := Ask("askjeeves", q); err == nil || !strings.Contains(err.Error(), "there are brave, exa, searxng, tavily") {
		t.Error(err)
	}
}

func TestFound(t *testing.T) {
	const bad = `{"title":"run","url":"javascript:alert(1)"},{"title":"none"},{"url":"/x"}`
	for _, c := range []struct {
		provider, answer string
		want             []Hit
	}{
		{"brave", `{"type":"search","web":{"type":"search","results":[` + bad + `,{"title":"A <strong>b</strong> &amp; c","url":"https://a.test/","description":"x\u200b\u001b[2J  y","age":"2 days ago","language":"en"}]}}`,
			[]Hit{{"A b & c", "https://a.test/", "x[2J y", "2 days ago"}}},
		{"brave", `{"type":"search"}`, []Hit{}},
		{"tavily", `{"query":"x","results":[{"title":"A","url":"https://a.test/","content":"one","score":0.9,"published_date":"2026"},{"title":"B","url":"http://b.test/x","content":"two"},{"title":"C","url":"http://c.test/"}]}`,
			[]Hit{{"A", "https://a.test/", "one", "2026"}, {"B", "http://b.test/x", "two", ""}}},
		{"exa", `{"requestId":"r","results":[{"id":"i","title":"A","url":"https://a.test/","publishedDate":"2026-01-02T00:00:00.000Z","author":null,"text":"one"}]}`, []Hit{{"A", "https://a.test/", "one", "2026-01-02T00:00:00.000Z"}}},
		{"searxng", `{"query":"x","number_of_results":0,"results":[{"title":"A","url":"https://a.test/","content":"one","engine":"e","publishedDate":null}],"answers":[]}`, []Hit{{"A", "https://a.test/", "one", ""}}},
	} {
		got, err := Found(c.provider, Query{Count: 2}, []byte(c.answer))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.provider, err, diff)
		}
	}
	for _, provider := range Providers() {
		for _, answer := range []string{"", "<html>", `{"results":{}}`, `{"web":1,"results":1}`, "[]"} {
			if got, err := Found(provider, Query{Count: 2}, []byte(answer)); err == nil && len(got) != 0 {
				t.Errorf("%s takes %s: %v", provider, answer, got)
			}
		}
	}
	long := `{"results":[{"url":"https://a.test/","title":"` + strings.Repeat("t", 100000) + `","content":"` + strings.Repeat("<b>x</b>", 100000) + `"}]}`
	if got, err := Found("tavily", Query{Count: 1}, []byte(long)); err != nil || len(got[0].Title) > 310 || len(got[0].Text) > 1010 {
		t.Errorf("%v, %d, %d", err, len(got[0].Title), len(got[0].Text))
	}
}
