package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ"
)

// DefaultBase is what images are built on where nobody names something else.
const DefaultBase = "debian:bookworm-slim"

// Request is an image to build.
type Request struct {
	Name  string // a recipe's
	From  string // the image that it is built on; empty: DefaultBase
	Suite string // of Debian: the base is made here, with debootstrap, instead
	Tag   string // empty: writ-NAME:latest
	Fresh bool   // nothing that was made before is used again

	// Progress is told what happens; nil tells nobody. Calls do not overlap.
	Progress func(Line)
}

// Line is something that happens while an image is built: the beginning of a step, or
// what a step says.
type Line struct {
	Text string
	Step bool
}

// Built is an image that was built.
type Built struct {
	Name string
	Tag  string
	ID   string // to put into a configuration: it is this image and no other
	Base string
	Size int64
}

// named is how engines let images be called: a host with its port, parts, a tag.
var named = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$`)
})

// Build makes an image. When ctx ends, so does what runs for it; what is left are layers
// that the next build uses again.
func (e *Engine) Build(ctx context.Context, r Request) (Built, error) {
	steps, err := chain(r.Name)
	if err != nil {
		return Built{}, err
	}
	if r.From != "" && r.Suite != "" {
		return Built{}, writ.Fail(writ.Invalid, "an image is built on one base; leave out --from or --from-debootstrap", nil)
	}
	if r.Tag != "" && !named().MatchString(r.Tag) { // before anything is fetched or made for it
		return Built{}, writ.Fail(writ.Invalid, fmt.Sprintf("%q is no name of an image; write one such as ours/sandbox:2, in lower case but for what follows the colon", r.Tag), nil)
	}
	r.Progress = inTurn(r.Progress)
	out := Built{Name: r.Name, Tag: cmp.Or(r.Tag, "writ-"+r.Name+":latest")}
	on, err := e.base(ctx, &r)
	if err != nil {
		return Built{}, err
	}
	out.Base = r.From
	network, err := e.network(ctx)
	if err != nil {
		return Built{}, err
	}
	for i, step := range steps {
		tag := ""
		if i == len(steps)-1 {
			tag = out.Tag
		}
		r.Progress(Line{Text: "building " + step.Name, Step: true})
		if on, err = e.build(ctx, &r, step, on, tag, network); err != nil {
			return Built{}, err
		}
	}
	out.ID = on
	got, err := e.api.ImageInspect(ctx, on)
	if err != nil {
		return Built{}, fmt.Errorf("look at the image that was built: %w", err)
	}
	out.Size = got.Size
	return out, nil
}

// inTurn tells one thing after the other: debootstrap and the engine speak at once.
func inTurn(say func(Line)) func(Line) {
	var one sync.Mutex
	return func(l Line) {
		if say != nil {
			one.Lock()
			defer one.Unlock()
			say(l)
		}
	}
}

// build runs one Dockerfile and gives the image's id.
func (e *Engine) build(ctx context.Context, r *Request, step Recipe, on, tag, network string) (string, error) {
	var tags []string
	if tag != "" {
		tags = []string{tag}
	}
	out, err := e.api.ImageBuild(ctx, alone("Dockerfile", step.dockerfile()), client.ImageBuildOptions{
		Tags: tags, BuildArgs: map[string]*string{"BASE": &on}, Labels: labels(step.Name),
		NetworkMode: network, NoCache: r.Fresh, Remove: true, ForceRemove: true,
	})
	if err != nil {
		return "", stopped(ctx, fmt.Errorf("build %s: %w", step.Name, err))
	}
	id, err := follow(out.Body, r.Progress)
	if err != nil {
		return "", stopped(ctx, fmt.Errorf("build %s: %w", step.Name, err))
	}
	if id == "" {
		return "", fmt.Errorf("build %s: the engine at %s did not say what it built; this takes Docker 20.10 or later, or Podman", step.Name, e.Host)
	}
	return id, nil
}

// alone is an archive with one file.
func alone(name string, text []byte) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}) // a buffer takes everything
	w.Write(text)
	w.Close()
	return &b
}

// network is what packages are fetched over: the engine's default, or the host's where
// the engine has no other (dockerd --bridge none).
func (e *Engine) network(ctx context.Context) (string, error) {
	all, err := e.api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the engine's networks: %w", err)
	}
	for _, n := range all.Items {
		if n.Name != "host" && n.Name != "none" {
			return "default", nil
		}
	}
	return "host", nil
}

// stopped is what is said of an error that came of ending the work.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.New("interrupted; no image was made, and the next build goes on from the layers that are done")
}
