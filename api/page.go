package api

import (
	"encoding/base64"
	"encoding/json"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// How many of a list a page has.
const (
	usualPage = 100
	mostPage  = 1000
)

// paged are the parameters that every list takes.
func paged(more ...param) []param {
	return append([]param{
		{name: "limit", about: "how many a page has at most; 100 when left out", number: true, least: 1, most: mostPage},
		{name: "cursor", about: "next_cursor of the page before"},
	}, more...)
}

func (x *exchange) limit() int { return int(x.number("limit", usualPage)) }

// cursor is a place in a list: which list, and what the last one before it was. It
// positions and confers nothing, so it is not signed.
func cursor(list string, at ...string) string {
	b, _ := json.Marshal(append([]string{list}, at...)) // strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// at reads the request's cursor, n texts; nil when there is none.
func (x *exchange) at(list string, n int) ([]string, error) {
	text, given := x.query["cursor"]
	if !given {
		return nil, nil
	}
	var parts []string
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) > 1024 || json.Unmarshal(b, &parts) != nil || len(parts) != n+1 || parts[0] != list || cursor(list, parts[1:]...) != text {
		return nil, writ.Fail(writ.Invalid, "the cursor is not one that this list gave; leave it out to begin again", nil)
	}
	return parts[1:], nil
}

// pageOf is a page of what a query gave, which was asked for one more than fits.
func pageOf[T, V any](rows []T, limit int, view func(T) V, place func(T) string) client.Page[V] {
	p := client.Page[V]{Data: []V{}, Limit: limit}
	if p.HasMore = len(rows) > limit; p.HasMore {
		rows = rows[:limit]
		p.NextCursor = place(rows[limit-1])
	}
	for _, r := range rows {
		p.Data = append(p.Data, view(r))
	}
	return p
}

// pageBy is a page of a whole list in order of its keys.
func pageBy[T any](x *exchange, list string, all []T, key func(T) string) (client.Page[T], error) {
	at, err := x.at(list, 1)
	if err != nil {
		return client.Page[T]{}, err
	}
	rest := all
	for at != nil && len(rest) > 0 && key(rest[0]) <= at[0] {
		rest = rest[1:]
	}
	rest = rest[:min(len(rest), x.limit()+1)]
	return pageOf(rest, x.limit(), func(v T) T { return v }, func(v T) string { return cursor(list, key(v)) }), nil
}
