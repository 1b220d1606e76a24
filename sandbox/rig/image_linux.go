package rig

import (
	"testing"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ/sandbox/image"
)

const reference = "writ-sandbox:test"

// made gives the image of the tests, built where there is none of today's recipe.
func made(t testing.TB, e Engine) string {
	t.Helper()
	c := dial(t, e)
	defer c.Close()
	old, err := c.ImageInspect(t.Context(), reference)
	if err == nil && old.Config != nil && old.Config.Labels[image.Made] == image.Digest("sandbox") {
		return reference
	}
	if inLab() {
		t.Fatalf("%s must be built, and this lab does not reach the packages: call rig.Start before lab.Run too", reference)
	}
	t.Logf("building %s: a few minutes, once", reference)
	builder, berr := image.Open(t.Context(), e.Host)
	if berr != nil {
		t.Fatal(berr)
	}
	defer builder.Close()
	built, berr := builder.Build(t.Context(), image.Request{Name: "sandbox", Suite: "bookworm", Tag: reference})
	if berr != nil {
		t.Fatal(berr)
	}
	if err == nil && old.ID != built.ID { // 300 MB that nobody names any more; who uses it keeps it
		c.ImageRemove(t.Context(), old.ID, client.ImageRemoveOptions{PruneChildren: true})
	}
	return reference
}
