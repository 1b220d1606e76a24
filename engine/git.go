package engine

import (
	"context"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool/git"
)

// gitEndpoint is the host and port of a URL as git's tools read it. What is wrong with it
// is said without repeating it, since there may be a password in it (I7).
func gitEndpoint(text string) (string, error) {
	u, err := git.ParseURL(text)
	if err != nil {
		_, msg := writ.Public(err)
		return "", fmt.Errorf("%s", msg)
	}
	return u.Endpoint().String(), nil
}

// refusedOutside says what a call was not let out to, for whoever made it: the host is
// the call's own, and of an address no more than its kind is said.
func (e *Engine) refusedOutside(ctx context.Context, call string) []string {
	rows, err := e.store.EgressAfter(ctx, store.EgressOf{Call: call, Refused: true}, 0, 10)
	if err != nil {
		return nil
	}
	var out []string
	said := map[string]bool{}
	for _, r := range rows {
		line := r.Host + ": " + r.Verdict
		if r.Class != "" {
			line += ", its address is " + r.Class
		}
		if !said[line] {
			out, said[line] = append(out, line), true
		}
	}
	return out
}
