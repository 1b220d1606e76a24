package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ"
)

// base gives the id of the image that a request builds on, fetched or made where it is
// not there.
func (e *Engine) base(ctx context.Context, r *Request) (string, error) {
	if r.Suite != "" {
		return e.bootstrapped(ctx, r)
	}
	if r.From == "" {
		r.From = DefaultBase
	}
	got, err := e.api.ImageInspect(ctx, r.From)
	if err == nil {
		return got.ID, nil
	}
	r.Progress(Line{Text: "pulling " + r.From, Step: true})
	if err := e.pull(ctx, r); err != nil {
		return "", stopped(ctx, writ.Fail(writ.SandboxUnavailable, fmt.Sprintf("image %s is not in the engine at %s and cannot be pulled (%v); build on one that is there with --from IMAGE, or make one of Debian's packages with --from-debootstrap", r.From, e.Host, err), nil))
	}
	if got, err = e.api.ImageInspect(ctx, r.From); err != nil {
		return "", fmt.Errorf("look at %s after pulling it: %w", r.From, err)
	}
	return got.ID, nil
}

func (e *Engine) pull(ctx context.Context, r *Request) error {
	out, err := e.api.ImagePull(ctx, r.From, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	_, err = follow(out, r.Progress)
	return err
}

var suites = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{2,20}$`) })

// old is the age from which a base is said to be old: Debian mends much in a month.
const old = 30 * 24 * time.Hour

// bootstrapped makes a base with debootstrap, once for each suite and recipe.
func (e *Engine) bootstrapped(ctx context.Context, r *Request) (string, error) {
	if !suites().MatchString(r.Suite) {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("%q is no suite of Debian; write one such as --from-debootstrap=bookworm", r.Suite), nil)
	}
	tag := "writ-base:" + r.Suite
	r.From = tag
	if got, err := e.api.ImageInspect(ctx, tag); err == nil && !r.Fresh && got.Config != nil && got.Config.Labels[Made] == Digest(baseKind) {
		if made, err := time.Parse(time.RFC3339Nano, got.Created); err == nil && time.Since(made) > old {
			r.Progress(Line{Text: fmt.Sprintf("%s is %d days old; --no-cache makes it anew", tag, int(time.Since(made).Hours())/24), Step: true})
		}
		return got.ID, nil
	}
	r.Progress(Line{Text: "making " + tag + " with debootstrap; this takes a few minutes, once", Step: true})
	root, err := debootstrap(ctx, r)
	if err != nil {
		return "", err
	}
	defer root.Close()
	id, err := e.imported(ctx, root, tag, r.Progress)
	if err != nil {
		return "", stopped(ctx, fmt.Errorf("make %s: %w", tag, err))
	}
	return id, nil
}

// importedBy is the comment of an import, by which it is known as ours.
const importedBy = "made by writ image build"

func (e *Engine) imported(ctx context.Context, root io.Reader, tag string, say func(Line)) (string, error) {
	changes := []string{`CMD ["/bin/bash"]`, "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for k, v := range labels(baseKind) {
		changes = append(changes, fmt.Sprintf("LABEL %s=%s", k, v))
	}
	out, err := e.api.ImageImport(ctx, client.ImageImportSource{Source: root, SourceName: "-"}, tag, client.ImageImportOptions{Changes: changes, Message: importedBy})
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // what was asked of the engine says nothing to anybody
	}
	if err != nil {
		return "", err
	}
	return follow(out, say)
}
