package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiimage "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
)

// Image is one that was made here.
type Image struct {
	ID      string
	Kind    string // a recipe's name, or "base"
	Tags    []string
	Size    int64
	Created time.Time
	Current bool // made by today's recipe
	Used    int  // by how many containers, running or not
	digests []string
}

// List gives the images that were made here, the newest first. What others built on one
// carries its labels too, and is not among them.
func (e *Engine) List(ctx context.Context) ([]Image, error) {
	all, err := e.api.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", Managed+"=true")})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	users, err := e.users(ctx)
	if err != nil {
		return nil, err
	}
	out := []Image{}
	for _, s := range all.Items {
		ours, err := e.ours(ctx, s)
		if err != nil {
			return nil, err
		}
		if !ours {
			continue
		}
		kind := s.Labels[Kind]
		out = append(out, Image{
			ID: s.ID, Kind: kind, Tags: tags(s), Size: s.Size, Created: time.Unix(s.Created, 0), Used: users[s.ID],
			Current: s.Labels[Made] != "" && s.Labels[Made] == Digest(kind), digests: s.RepoDigests,
		})
	}
	slices.SortStableFunc(out, func(a, b Image) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// ours tells whether the last thing done to an image was what is done here: an import, or
// the label that a build sets last. Labels alone are inherited.
func (e *Engine) ours(ctx context.Context, s apiimage.Summary) (bool, error) {
	if s.Labels[Managed] != "true" { // engines differ in what they filter
		return false, nil
	}
	past, err := e.api.ImageHistory(ctx, s.ID)
	if missing(err) || err == nil && len(past.Items) == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the history of image %s: %w", s.ID, err)
	}
	last := past.Items[0]
	did := strings.ReplaceAll(last.CreatedBy, `"`, "")
	return last.Comment == importedBy || strings.Contains(did, "LABEL") && strings.Contains(did, Made+"="+s.Labels[Made]), nil
}

// users counts the containers of each image.
func (e *Engine) users(ctx context.Context) (map[string]int, error) {
	all, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	out := map[string]int{}
	for _, c := range all.Items {
		out[c.ImageID]++
	}
	return out, nil
}

func tags(s apiimage.Summary) []string {
	return slices.DeleteFunc(slices.Clone(s.RepoTags), func(t string) bool { return strings.HasPrefix(t, "<none>") })
}

// missing tells whether an engine said that there is no such thing.
func missing(err error) bool {
	var not interface{ NotFound() }
	return errors.As(err, &not)
}
