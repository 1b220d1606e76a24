package rig

import (
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ/sandbox/image"
)

// name is what the images of tests are called; the tag is the recipe's digest, so that
// checkouts with different ones do not take each other's away.
const name = "writ-sandbox:test-"

// made gives the image of the tests, built where there is none of today's recipe.
func made(t testing.TB, e Engine) string {
	t.Helper()
	c := dial(t, e)
	defer c.Close()
	tag := name + strings.TrimPrefix(image.Digest("sandbox"), "sha256:")[:12]
	if _, err := c.ImageInspect(t.Context(), tag); err == nil {
		return tag
	}
	if inLab() {
		t.Fatalf("%s must be built, and this lab does not reach the packages: call rig.Start before lab.Run too", tag)
	}
	t.Logf("building %s: a minute or two, once", tag)
	builder, err := image.Open(t.Context(), e.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer builder.Close()
	if _, err := builder.Build(t.Context(), image.Request{Name: "sandbox", Suite: "bookworm", Tag: tag}); err != nil {
		t.Fatal(err)
	}
	forget(t, c, tag)
	return tag
}

// forget removes images of recipes that nobody has worked on for a week. One that is in
// use stays; the next time is soon enough.
func forget(t testing.TB, c *client.Client, but string) {
	t.Helper()
	all, err := c.ImageList(t.Context(), client.ImageListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Items {
		for _, tag := range s.RepoTags {
			if strings.HasPrefix(tag, name) && tag != but && time.Since(time.Unix(s.Created, 0)) > 7*24*time.Hour {
				c.ImageRemove(t.Context(), tag, client.ImageRemoveOptions{PruneChildren: true})
			}
		}
	}
}
