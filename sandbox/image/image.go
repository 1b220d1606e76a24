// Package image makes the container images that sandboxes run in, by an engine that speaks
// Docker's API, from Dockerfiles that are part of this program. It knows its images by
// labels that it gives them when it makes them, and removes no others. It is an operator's
// tool: nothing here runs for an agent.
package image

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
)

// Labels of every image that is made here.
const (
	Managed = "writ.managed" // "true"
	Kind    = "writ.image"   // which of the recipes, or "base"
	Made    = "writ.recipe"  // the digest of the recipe it was made by
)

// baseKind is the kind of what debootstrap made.
const baseKind = "base"

//go:embed files
var files embed.FS

// Recipe is one of the images that can be made.
type Recipe struct {
	Name  string
	About string
	on    string // the recipe that it builds on; empty: on a base
}

// Recipes are all there are, those that others build on first.
func Recipes() []Recipe {
	return []Recipe{
		{Name: "sandbox", About: "Python, Node.js, git, ripgrep, jq and the usual tools; under 500 MB"},
		{Name: "sandbox-go", About: "the sandbox with Go", on: "sandbox"},
		{Name: "browser", About: "the sandbox with Chromium", on: "sandbox"},
		{Name: "desktop", About: "the sandbox with Xvfb, xdotool, scrot and x11vnc", on: "sandbox"},
	}
}

// chain is a recipe after those it builds on.
func chain(name string) ([]Recipe, error) {
	var known []string
	for _, r := range Recipes() {
		if r.Name != name {
			known = append(known, r.Name)
			continue
		}
		if r.on == "" {
			return []Recipe{r}, nil
		}
		below, err := chain(r.on)
		return append(below, r), err
	}
	return nil, writ.Fail(writ.Invalid, fmt.Sprintf("there is no recipe %q; there are %s", name, strings.Join(known, ", ")), nil)
}

func (r Recipe) dockerfile() []byte {
	text, err := files.ReadFile("files/" + r.Name + ".Dockerfile")
	if err != nil {
		panic(err) // a recipe without its file: a programming error
	}
	return text
}

func baseScript() []byte {
	text, err := files.ReadFile("files/base.sh")
	if err != nil {
		panic(err)
	}
	return text
}

// Digest is what an image of a kind carries when it was made by today's recipe, and
// nothing for kinds that there are not. What it was built on is not part of it.
func Digest(kind string) string {
	sum := sha256.New()
	if kind == baseKind {
		sum.Write(baseScript())
	} else {
		steps, err := chain(kind)
		if err != nil {
			return ""
		}
		for _, r := range steps {
			text := r.dockerfile()
			fmt.Fprintf(sum, "%d\n%s", len(text), text)
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func labels(kind string) map[string]string {
	return map[string]string{Managed: "true", Kind: kind, Made: Digest(kind)}
}
