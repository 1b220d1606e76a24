package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Match reports whether an absolute clean path matches a glob. The commonest
// shape, a literal directory with all below, needs no matcher.
func Match(glob, p string) bool {
	if dir, ok := strings.CutSuffix(glob, "/**"); ok && !strings.ContainsAny(dir, `*?[{\`) {
		return Below(p, dir)
	}
	ok, err := doublestar.Match(glob, p)
	return ok && err == nil
}

// Below reports whether p is dir or lies below it; both absolute and clean.
// The root is written "" or "/".
func Below(p, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// Bounds on a glob: as long as a path may be, and few enough alternatives that
// trying all of them, as the matcher does, costs nothing.
const (
	maxGlob    = 4096
	maxChoices = 256
)

// CheckGlob refuses a pattern that is malformed or dear: alternatives multiply,
// so that sixty characters can cost 2^30 steps for each path.
func CheckGlob(glob string) error {
	switch {
	case len(glob) > maxGlob:
		return fmt.Errorf("it is longer than %d bytes", maxGlob)
	case !utf8.ValidString(glob) || strings.ContainsRune(glob, 0):
		return errors.New("it is not text")
	case !doublestar.ValidatePattern(glob):
		return errors.New("it is malformed")
	case choices(glob) > maxChoices:
		return fmt.Errorf("it has more than %d alternatives", maxChoices)
	}
	return nil
}

// choices counts the alternatives of a well-formed glob: those of a group add up,
// those of groups side by side multiply. It stops counting above maxChoices.
func choices(glob string) int {
	type level struct{ before, here int } // of the alternatives that ended, of the one at hand
	levels := []level{{0, 1}}
	for i := 0; i < len(glob); i++ {
		top := &levels[len(levels)-1]
		switch glob[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(glob, i)
		case '{':
			levels = append(levels, level{0, 1})
		case ',':
			if len(levels) == 1 {
				continue // a comma like any other character
			}
			top.before, top.here = top.before+top.here, 1
		case '}':
			if len(levels) == 1 {
				continue
			}
			n := top.before + top.here
			levels = levels[:len(levels)-1]
			if top = &levels[len(levels)-1]; top.here*n > maxChoices {
				return maxChoices + 1
			}
			top.here *= n
		}
	}
	return levels[0].here
}

// classEnd is where the class that opens at i closes.
func classEnd(glob string, i int) int {
	for i++; i < len(glob) && glob[i] != ']'; i++ {
		if glob[i] == '\\' {
			i++
		}
	}
	return i
}

// Roots are the directories and files that the globs lie in: exactly what a glob
// says where it is a whole directory or a single path, more where it picks among
// names. All is the whole file system.
func (g Globs) Roots() []string {
	if g.Stance == All {
		return []string{"/"}
	}
	var out []string
	for _, glob := range g.Globs {
		out = append(out, root(glob))
	}
	return out
}

func root(glob string) string {
	whole := strings.TrimSuffix(glob, "/**")
	if i := strings.IndexAny(whole, `*?[{\`); i >= 0 {
		whole = whole[:strings.LastIndexByte(whole[:i], '/')]
	}
	if whole == "" {
		return "/"
	}
	return whole
}

// Whole reports whether every glob is a whole directory (/dir/**) or a single
// path: that is what a sandbox can hold.
func (g Globs) Whole() bool {
	for _, glob := range g.Globs {
		if strings.ContainsAny(strings.TrimSuffix(glob, "/**"), `*?[{\`) {
			return false
		}
	}
	return true
}
