package external

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/writ-run/writ"
)

// Said is what the other side of a connection answered, without the credentials.
type Said struct {
	Status int
	Body   string
}

// Ask sends a request that a tool of ours made, over the connection of its call.
func (t *Client) Ask(ctx context.Context, w writ.Writ, c Connection, a Args) (Said, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p, req, _, refused, err := t.ready(ctx, c, a)
	if err != nil {
		return Said{}, err
	}
	if refused != nil {
		return Said{}, writ.Fail(writ.Invalid, refused.Content, nil)
	}
	way, err := t.src.Reach(w)
	if err != nil {
		return Said{}, err
	}
	defer way.Close()
	res, err := t.sent(req, way, c, p)
	if err != nil {
		return Said{}, writ.Fail(writ.Invalid, unreached(c, err, p.hide).Content, nil)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil || len(body) > maxBody || !utf8.Valid(body) {
		return Said{}, writ.Fail(writ.Invalid, fmt.Sprintf("%s broke off, or answered with more than 1 MiB, or not with text", c.Base), err)
	}
	return Said{res.StatusCode, p.hide.clean(string(body), maxBody)}, nil
}
