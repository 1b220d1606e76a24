package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// Page is a part of a list.
type Page[T any] struct {
	Data       []T    `json:"data"`
	Limit      int    `json:"limit" jsonschema:"how many a page has at most"`
	NextCursor string `json:"next_cursor" jsonschema:"where the next page begins; empty on the last"`
	HasMore    bool   `json:"has_more"`
}

// List is a list that a daemon gives out in pages; nothing is asked yet.
type List[T any] struct {
	c     *Client
	path  string
	query url.Values
}

// Page asks for one page: the first when cursor is empty. Limit zero is the
// daemon's default, 100; it gives at most 1000.
func (l List[T]) Page(ctx context.Context, limit int, cursor string) (Page[T], error) {
	q := url.Values{}
	for k, v := range l.query {
		q[k] = v
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
		q.Del("after") // the cursor holds the place
	}
	path := l.path
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var out Page[T]
	err := l.c.do(ctx, "GET", path, nil, &out)
	return out, err
}

// Each walks the whole list, page by page. After an error it ends.
func (l List[T]) Each(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cursor := ""
		for {
			page, err := l.Page(ctx, 1000, cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range page.Data {
				if !yield(v, nil) {
					return
				}
			}
			if cursor = page.NextCursor; !page.HasMore {
				return
			}
		}
	}
}

// All is the whole list.
func (l List[T]) All(ctx context.Context) ([]T, error) {
	out := []T{}
	for v, err := range l.Each(ctx) {
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Newest is the first n of the list, at most 1000.
func (l List[T]) Newest(ctx context.Context, n int) ([]T, error) {
	page, err := l.Page(ctx, n, "")
	return page.Data, err
}

func list[T any](c *Client, path string, query ...string) List[T] {
	q := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			q.Set(query[i], query[i+1])
		}
	}
	return List[T]{c, path, q}
}
