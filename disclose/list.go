package disclose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
)

// pageTokens of a page say how many tools there are and how to go on.
const pageTokens = 150

// A Page is a part of the list (L1) as a model reads it.
type Page struct {
	Text  string
	Total int    // tools that match, on all pages
	Next  string // the cursor of the next page, or "" on the last
}

// List is the page of the tools matching a query that a cursor points to, and "" to the
// first. It takes at most budget tokens, but holds one tool at least, so that the list
// has an end under any budget. A cursor of another query or of other tools is refused:
// pages of two lists, read as one, would miss tools.
func (x *Index) List(query, cursor string, budget int) (Page, error) {
	hits := x.Search(query, 0)
	from, err := x.position(query, cursor, len(hits))
	if err != nil {
		return Page{}, err
	}
	return x.page(query, hits, from, budget), nil
}

func (x *Index) page(query string, hits []Hit, from, budget int) Page {
	var lines strings.Builder
	left := budget - pageTokens
	to := from
	for ; to < len(hits); to++ {
		line := hits[to].Entry.Line() + "\n"
		if left -= Tokens(line); left < 0 && to > from {
			break
		}
		lines.WriteString(line)
	}
	page := Page{Total: len(hits), Text: x.summary(query, from, to, len(hits)) + "\n" + lines.String()}
	if to < len(hits) {
		page.Next = x.cursor(query, to)
		page.Text += fmt.Sprintf("For the next page call %s with the same query and cursor %s.\n", ListTools, page.Next)
	}
	if len(hits) > 0 {
		page.Text += fmt.Sprintf("To use a tool, call %s with its name first.\n", LoadTool)
	}
	return page
}

func (x *Index) summary(query string, from, to, total int) string {
	shown := ":"
	if from > 0 || to < total {
		shown = fmt.Sprintf(", here %d to %d:", from+1, to)
	}
	asked := display.Preview(oneLine(beginning(query, queryBytes)), 40)
	switch {
	case asked == "" && total == 0:
		return "There are no tools that you may use."
	case asked == "":
		return fmt.Sprintf("%d tools by name%s", total, shown)
	case total == 0:
		return fmt.Sprintf("None of %d tools match %q; try other words, or list all tools without a query.", len(x.entries), asked)
	}
	return fmt.Sprintf("%d of %d tools match %q, the best first%s", total, len(x.entries), asked, shown)
}

// cursor is the place of a tool in one list of one query.
func (x *Index) cursor(query string, at int) string {
	e := Entry{Name: x.edition, Description: query}
	sum := e.digest()
	return fmt.Sprintf("%d-%x", at, sum[:6])
}

// position is where a cursor points.
func (x *Index) position(query, cursor string, total int) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	number, _, _ := strings.Cut(cursor, "-")
	at, err := strconv.Atoi(number)
	if err != nil || at < 0 || at >= total || x.cursor(query, at) != cursor {
		return 0, writ.Fail(writ.Invalid, "the cursor is not of this list, which may have changed; list again without a cursor", nil)
	}
	return at, nil
}
