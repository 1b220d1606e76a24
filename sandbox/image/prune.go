package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/client"
)

// PruneOptions say what Prune removes.
type PruneOptions struct {
	All    bool     // those of today's recipes too
	Keep   []string // tags, digests or ids that stay, whatever they are
	DryRun bool     // nothing is removed
}

// Pruned is what became of an image.
type Pruned struct {
	Image
	Kept string // why it stayed; empty: it was removed, or would be
}

// Prune removes images that were made here and that nothing needs: no container, and no
// other image that stays. It tells of every one that it considered.
func (e *Engine) Prune(ctx context.Context, o PruneOptions) ([]Pruned, error) {
	all, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	out, going := []Pruned{}, map[string]bool{}
	for _, i := range all {
		if i.Current && !o.All {
			continue
		}
		p := Pruned{Image: i}
		switch {
		case i.Used == 1:
			p.Kept = "a container uses it"
		case i.Used > 1:
			p.Kept = fmt.Sprintf("%d containers use it", i.Used)
		case slices.ContainsFunc(o.Keep, i.named):
			p.Kept = "--keep or the configuration names it"
		default:
			going[i.ID] = true
		}
		out = append(out, p)
	}
	below, err := e.below(ctx, going)
	if err != nil {
		return nil, err
	}
	for n := range out { // the newest first: no image goes before what was built on it
		p := &out[n]
		switch {
		case p.Kept != "":
		case below[p.ID]:
			p.Kept = "another image is built on it"
		case !o.DryRun:
			if err := e.remove(ctx, p.Image); err != nil {
				return out[:n], err
			}
		}
	}
	return out, nil
}

// named tells whether somebody means an image: by its id, the beginning of it, a tag, or the
// digest that a registry gave it.
func (i Image) named(by string) bool {
	id := strings.TrimPrefix(by, "sha256:")
	return len(id) >= 12 && strings.HasPrefix(strings.TrimPrefix(i.ID, "sha256:"), id) || slices.Contains(i.Tags, by) || slices.Contains(i.Tags, by+":latest") || slices.Contains(i.digests, by)
}

// below are the images that those which stay are built on, as far as the engine says.
func (e *Engine) below(ctx context.Context, going map[string]bool) (map[string]bool, error) {
	every, err := e.api.ImageList(ctx, client.ImageListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	tops, err := e.api.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	parents := map[string]string{}
	for _, s := range every.Items {
		parents[s.ID] = s.ParentID
	}
	out := map[string]bool{}
	for _, s := range tops.Items {
		if going[s.ID] {
			continue
		}
		for id := parents[s.ID]; id != "" && !out[id]; id = parents[id] {
			out[id] = true
		}
	}
	return out, nil
}

// remove takes an image away by its names, or its id where it has none. The engine refuses
// while a container uses it, also one that was made a moment ago.
func (e *Engine) remove(ctx context.Context, i Image) error {
	names := i.Tags
	if len(names) == 0 {
		names = []string{i.ID}
	}
	for _, name := range names {
		if now, err := e.api.ImageInspect(ctx, name); missing(err) || err == nil && now.ID != i.ID {
			continue // gone with another, or the name of another by now
		}
		if _, err := e.api.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true}); err != nil && !missing(err) {
			return fmt.Errorf("remove image %s: %w", name, err)
		}
	}
	return nil
}
