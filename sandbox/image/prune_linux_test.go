package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"

	"github.com/writ-run/writ/sandbox/image"
	"github.com/writ-run/writ/sandbox/rig"
)

// engine is one of the test's own, with what makes small images in it.
type engine struct {
	*testing.T
	api *client.Client
	*image.Engine
	base string
}

func own(t *testing.T) *engine {
	t.Helper()
	at := rig.Own(t)
	api, err := client.New(client.WithHost(at.Host))
	if err != nil {
		t.Fatal(err)
	}
	e, err := image.Open(t.Context(), at.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close(); e.Close() })
	out, err := api.ImageImport(t.Context(), client.ImageImportSource{Source: archive("file", "x"), SourceName: "-"}, "foreign:1", client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	return &engine{t, api, e, "foreign:1"}
}

func archive(name, text string) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	io.WriteString(w, text)
	w.Close()
	return &b
}

// build builds an image as the engine does it for everybody; a recipe makes it one of ours.
func (e *engine) build(tag, from, step, recipe string) string {
	e.Helper()
	o := client.ImageBuildOptions{Tags: []string{tag}, Remove: true}
	if recipe != "" {
		o.Labels = map[string]string{image.Managed: "true", image.Kind: "sandbox", image.Made: recipe}
	}
	out, err := e.api.ImageBuild(e.Context(), archive("Dockerfile", "FROM "+from+"\n"+step+"\n"), o)
	if err != nil {
		e.Fatal(err)
	}
	defer out.Body.Close()
	for in := json.NewDecoder(out.Body); in.More(); {
		var m jsonstream.Message
		if err := in.Decode(&m); err != nil || m.Error != nil {
			e.Fatal(err, m.Error)
		}
	}
	got, err := e.api.ImageInspect(e.Context(), tag)
	if err != nil {
		e.Fatal(err)
	}
	return got.ID
}

// tags are those of all images there are.
func (e *engine) tags() string {
	e.Helper()
	all, err := e.api.ImageList(e.Context(), client.ImageListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	var out []string
	for _, s := range all.Items {
		out = append(out, s.RepoTags...)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// pruned says what became of each image that was considered.
func (e *engine) pruned(o image.PruneOptions) string {
	e.Helper()
	all, err := e.Prune(e.Context(), o)
	if err != nil {
		e.Fatal(err)
	}
	var out []string
	for _, p := range all {
		out = append(out, strings.TrimSpace(strings.Join(p.Tags, " ")+" "+p.Kept))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

// Images of ours that are stale and that nothing uses go; those in use, those that others
// are built on, and everybody else's stay.
func TestPrune(t *testing.T) {
	e := own(t)
	const stale = "sha256:0000"
	e.build("ours:stale", e.base, "ENV A=1", stale)
	e.build("ours:used", e.base, "ENV A=2", stale)
	e.build("ours:below", e.base, "ENV A=3", stale)
	e.build("derived:1", "ours:below", "ENV B=1", "") // carries our labels
	e.build("ours:pinned", e.base, "ENV A=4", stale)
	current := e.build("ours:current", e.base, "ENV A=5", image.Digest("sandbox"))
	if _, err := e.api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{Image: "ours:used", Cmd: []string{"none"}}}); err != nil {
		t.Fatal(err)
	}
	everything := "derived:1 foreign:1 ours:below ours:current ours:pinned ours:stale ours:used"

	all, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, i := range all {
		listed = append(listed, i.Tags...)
		if i.Current != (i.ID == current) || (i.Used == 1) != slices.Contains(i.Tags, "ours:used") {
			t.Errorf("%v is listed with current %v and %d containers", i.Tags, i.Current, i.Used)
		}
	}
	slices.Sort(listed)
	is(t, "listed", strings.Join(listed, " "), "ours:below ours:current ours:pinned ours:stale ours:used")

	o := image.PruneOptions{Keep: []string{"ours:pinned"}, DryRun: true}
	becomes := "ours:below another image is built on it, ours:pinned --keep or the configuration names it, ours:stale, ours:used a container uses it"
	is(t, "a dry run", e.pruned(o), becomes)
	is(t, "after a dry run", e.tags(), everything)
	o.DryRun = false
	is(t, "pruned", e.pruned(o), becomes)
	is(t, "left", e.tags(), "derived:1 foreign:1 ours:below ours:current ours:pinned ours:used")

	o = image.PruneOptions{All: true, Keep: []string{current[:20]}}
	is(t, "all but one", e.pruned(o), "ours:below another image is built on it, ours:current --keep or the configuration names it, ours:pinned, ours:used a container uses it")
	is(t, "all", e.pruned(image.PruneOptions{All: true}), "ours:below another image is built on it, ours:current, ours:used a container uses it")
	is(t, "left of all", e.tags(), "derived:1 foreign:1 ours:below ours:used")
}

// A base that debootstrap could not make is no image, nor is half of one.
func TestNoHalfBase(t *testing.T) {
	e := own(t)
	var said []string
	_, err := e.Build(t.Context(), image.Request{Name: "sandbox", Suite: "nosuchsuite", Progress: func(l image.Line) { said = append(said, l.Text) }})
	if err == nil || !strings.Contains(err.Error(), `debootstrap of "nosuchsuite" failed (exit status 1)`) {
		t.Errorf("%v", err)
	}
	is(t, "left", e.tags(), "foreign:1")
	if len(said) == 0 || said[0] != "making writ-base:nosuchsuite with debootstrap; this takes a few minutes, once" {
		t.Errorf("said %q", said)
	}
}
