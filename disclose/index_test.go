package disclose

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
)

// shelf is a small inventory.
func shelf(t *testing.T) *Index {
	t.Helper()
	tool := func(name, category, description string) *Entry {
		return &Entry{Name: name, Category: category, Tier: "cheap", Description: description}
	}
	return index(t, append(DiscoveryTools(),
		tool("read_file", "file_system", "Reads a file of the workspace."),
		tool("write_file", "file_system", "Writes a file of the workspace."),
		tool("search_files", "file_system", "Finds lines in files by a regular expression."),
		tool("sql_query", "database", "Runs one query and returns rows."),
		tool("listHTTPServers", "web", "Lists what answers."),
		tool("git_log", "version_control", "Shows commits; a file can be named."),
		tool("translate", "other", "把文本翻译成另一种语言。"),
		tool("straße", "other", "Findet Straßen und Größen."),
	)...)
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		query string
		want  string
	}{
		{"", "git_log listHTTPServers read_file search_files sql_query straße translate write_file"},
		{" ?! ", "git_log listHTTPServers read_file search_files sql_query straße translate write_file"},
		{"file", "read_file write_file search_files git_log"},
		{"FILES", "read_file write_file search_files git_log"},
		{"read file", "read_file write_file search_files git_log"},
		{"write_file", "write_file read_file search_files git_log"},
		{"queries", "sql_query"},
		{"server", "listHTTPServers"},
		{"http", "listHTTPServers"},
		{"data", "sql_query"},
		{"expr", "search_files"},
		{"ex", ""},
		{"翻译", "translate"},
		{"语", "translate"},
		{"STRASSE", ""},
		{"STRAßE", "straße"},
		{"größe", "straße"},
		{"commit database", "sql_query git_log"},
		{"nothing", ""},
		{strings.Repeat("x ", 200) + "commit", ""}, // beyond the bound
		{"list_tools", "listHTTPServers"},          // discovery is not in it
	} {
		var got []string
		for _, hit := range shelf(t).Search(c.query, 0) {
			got = append(got, hit.Entry.Name)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q: %s", c.query, diff)
		}
	}
	if hits := shelf(t).Search("file", 2); len(hits) != 2 || hits[0].Score < hits[1].Score {
		t.Errorf("%v", hits)
	}
}

// BM25 by hand: two texts of one word, one word in one of them.
func TestScore(t *testing.T) {
	x := index(t, &Entry{Name: "alpha"}, &Entry{Name: "beta"})
	hits := x.Search("the alpha", 0)
	if len(hits) != 1 || fmt.Sprintf("%.4f", hits[0].Score) != "1.1730" { // ln 2 * 4*2.2/(4+1.2)
		t.Errorf("%v", hits)
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"read_file-name":       "read file name",
		"getUserByID":          "get user by id",
		"XMLHttpRequest2Go":    "xml http request2 go",
		"classes boxes status": "class box status",
		"queries gas is":       "query gas is",
		"把文本翻":                 "把文 文本 本翻",
		"a把b":                  "a 把 b",
		"ΣΊΣΥΦΟΣ":              "σίσυφοσ",
		"\xff\xfe":             "",
	} {
		var got []string
		words(in, 100, func(w string) { got = append(got, w) })
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestList(t *testing.T) {
	x := shelf(t)
	page, err := x.List("query", "", 3000)
	want := "1 of 8 tools match \"query\", the best first:\nsql_query (database, cheap): Runs one query and returns rows.\nTo use a tool, call load_tool with its name first.\n"
	if diff := cmp.Diff(Page{want, 1, ""}, page); diff != "" || err != nil {
		t.Error(diff, err)
	}
	page, err = x.List("", "", pageTokens+40)
	want = `8 tools by name, here 1 to 2:
git_log (version_control, cheap): Shows commits; a file can be named.
listHTTPServers (web, cheap): Lists what answers.
For the next page call list_tools with the same query and cursor ` + page.Next + `.
To use a tool, call load_tool with its name first.
`
	if diff := cmp.Diff(Page{want, 8, page.Next}, page); diff != "" || err != nil {
		t.Error(diff, err)
	}
	page, err = x.List("nothing\n\u202e", "", 3000)
	want = "None of 8 tools match \"nothing <U+202E>\"; try other words, or list all tools without a query.\n"
	if diff := cmp.Diff(Page{Text: want}, page); diff != "" || err != nil {
		t.Error(diff, err)
	}
	page, err = index(t).List("", "", 3000)
	if diff := cmp.Diff(Page{Text: "There are no tools that you may use.\n"}, page); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestPagesAreTheWholeList(t *testing.T) {
	x := inventory(t, 500)
	for _, budget := range []int{0, 300, 3000} {
		seen, cursor := map[string]bool{}, ""
		for {
			page, err := x.List("", cursor, budget)
			if err != nil {
				t.Fatal(err)
			}
			if n := Tokens(page.Text); n > budget && budget >= 300 {
				t.Errorf("a page of %d tokens under a budget of %d", n, budget)
			}
			for line := range strings.Lines(page.Text) {
				if name, _, ok := strings.Cut(line, " ("); ok {
					if seen[name] {
						t.Fatalf("%s is on two pages", name)
					}
					seen[name] = true
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if len(seen) != 500 {
			t.Errorf("under %d the pages name %d tools", budget, len(seen))
		}
	}
}

func TestCursorOfAnotherList(t *testing.T) {
	x := inventory(t, 500)
	page, err := x.List("", "", 3000)
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	if _, err := x.List("", page.Next, 3000); err != nil {
		t.Error(err)
	}
	number, sum, _ := strings.Cut(page.Next, "-")
	for _, c := range []struct {
		x             *Index
		query, cursor string
	}{
		{x, "file", page.Next}, {inventory(t, 499), "", page.Next}, {x, "", number}, {x, "", "-1-" + sum}, {x, "", "+" + page.Next},
		{x, "", "0" + page.Next}, {x, "", "99999999999999999999-" + sum}, {x, "", "x"},
	} {
		_, err := c.x.List(c.query, c.cursor, 3000)
		if kind, msg := writ.Public(err); kind != writ.Invalid || msg != "the cursor is not of this list, which may have changed; list again without a cursor" {
			t.Errorf("%q %q: %s: %s", c.query, c.cursor, kind, msg)
		}
	}
}

func TestIndexRefusesTwoOfOneName(t *testing.T) {
	_, err := NewIndex([]*Entry{{Name: "a"}, {Name: "b"}, {Name: "a"}})
	if err == nil || err.Error() != `tool "a" is there twice; give each tool a name of its own` {
		t.Error(err)
	}
	x := shelf(t)
	if e, ok := x.Lookup("read_file"); !ok || e.Name != "read_file" || x.Len() != 8 {
		t.Error(e, ok, x.Len())
	}
	if _, ok := x.Lookup("Read_file"); ok {
		t.Error("found by another name")
	}
}

// inventory is so many tools as servers have them.
func inventory(t testing.TB, n int) *Index {
	t.Helper()
	verbs, nouns := strings.Fields("list get create update delete search export archive restore share"), strings.Fields("file issue branch message invoice user report table server image")
	var entries []*Entry
	for i := range n {
		verb, noun := verbs[i%10], nouns[i/10%10]
		entries = append(entries, &Entry{
			Name: fmt.Sprintf("server%d__%s_%s", i/100, verb, noun), Category: "mcp", Tier: "medium",
			Description: fmt.Sprintf("Calls server %d to %s one %s or several of them. Needs permission %d of the workspace; results are returned as JSON with the identifier, the owner and the time of the last change. At most 100 at a time, use the cursor for more.", i/100, verb, noun, i),
			Schema:      json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"%s_id":{"type":"string","description":"The identifier of the %s."},"workspace":{"type":"string","description":"The workspace to use; the default one where it is left out."},"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"cursor":{"type":"string"}},"required":["%s_id"],"additionalProperties":false}`, noun, noun, noun)),
		})
	}
	x, err := NewIndex(entries)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestCosts(t *testing.T) {
	x := inventory(t, 200)
	one, _ := x.Lookup("server0__get_file")
	got := x.Costs(Defaults(), one)
	if got.All < 200*150 || got.List > 3000+600 || got.Load != Tokens(one.Full())+Tokens(one.listed()) || got.Load > 500 {
		t.Errorf("%+v", got)
	}
	if 5*(got.List+got.Load) > got.All {
		t.Errorf("disclosure of 200 tools saves less than four fifths: %+v", got)
	}
}

func TestSettings(t *testing.T) {
	if diff := cmp.Diff(Settings{Active: Auto, L1Budget: 3000, L2Budget: 15000, AutoUnload: true, Threshold: 80}, Defaults()); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		mode  string
		tools int
		on    bool
	}{{"auto", 30, false}, {"auto", 31, true}, {"always", 0, true}, {"never", 1000, false}} {
		var s Settings
		if err := s.Active.UnmarshalText([]byte(c.mode)); err != nil || s.On(c.tools) != c.on {
			t.Errorf("%s with %d: %v, %v", c.mode, c.tools, s.On(c.tools), err)
		}
	}
	var m Mode
	if err := m.UnmarshalText([]byte("Always")); err == nil || err.Error() != `"Always" is none of auto, always, never` {
		t.Error(err)
	}
	for want, change := range map[string]func(*Settings){
		"": func(*Settings) {},
		`active: "auto" is none of auto, always, never`:                             func(s *Settings) { s.Active = "auto" },
		"l1_token_budget: 249 is less than one line takes; write at least 250":      func(s *Settings) { s.L1Budget = 249 },
		"l2_token_budget: 4999 is less than one tool may take; write at least 5000": func(s *Settings) { s.L2Budget = 4999 },
		"unload_threshold_percent: write a number over 0, at most 100":              func(s *Settings) { s.Threshold = 0 },
	} {
		s := Defaults()
		change(&s)
		if got := fmt.Sprint(s.Validate()); got != want && !(want == "" && got == "<nil>") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	x := inventory(b, 10000)
	for _, query := range []string{"archive invoice", "workspace identifier permission of the results", "s"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				x.Search(query, 20)
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	entries := inventory(b, 10000).entries
	for b.Loop() {
		if _, err := NewIndex(entries); err != nil {
			b.Fatal(err)
		}
	}
}
