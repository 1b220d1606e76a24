package external

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/writ-run/writ"
)

// Test looks the secrets of a connection up and asks its address for an answer, by the
// operator's own way. It says step by step what held; the error says what did not.
func (t *Client) Test(ctx context.Context, c Connection) (steps []string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, r := range c.Auth.Refs() {
		v, err := t.src.Secrets().Resolve(ctx, r)
		if err != nil {
			return steps, 0, err
		}
		steps = append(steps, fmt.Sprintf("found secret %s: %s", r, v.Length()))
	}
	p, err := t.prove(ctx, c)
	if err != nil {
		return steps, 0, err
	}
	if c.Auth.Type == "oauth2_client" {
		steps = append(steps, "got an access token from "+c.Auth.TokenURL)
	}
	way, err := t.src.Own("connection "+c.Name, c.Base)
	if err != nil {
		return steps, 0, err
	}
	defer way.Close()
	req, err := http.NewRequestWithContext(ctx, "HEAD", c.Base+"/", nil)
	if err != nil {
		return steps, 0, err
	}
	maps.Copy(req.Header, p.header)
	req.Header.Set("User-Agent", "writ")
	res, err := way.RoundTrip(req)
	if err != nil {
		return steps, 0, writ.Fail(writ.NotFound, unreached(c, err, p.hide).Content, nil)
	}
	defer res.Body.Close()
	steps = append(steps, fmt.Sprintf("HEAD %s/ answered %d %s", c.Base, res.StatusCode, http.StatusText(res.StatusCode)))
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		t.tokens.drop(c)
		return steps, res.StatusCode, writ.Fail(writ.Denied, "the other side does not take the credentials; see what the secret holds and how auth sends it", nil)
	}
	return steps, res.StatusCode, nil
}
