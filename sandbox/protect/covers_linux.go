package protect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/writ-run/writ/sandbox/mounted"
)

// Covers are those of everything that one run may write.
type Covers []*Cover

// CoverAll readies them, for the directories among some roots. named is what is not
// protected from the run. Whatever comes of it, Done is called.
func (f *Finder) CoverAll(ctx context.Context, roots, named []string) (all Covers, err error) {
	for _, root := range roots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			continue
		}
		c, err := f.cover(root, Named(named))
		if err == nil {
			all = append(all, c)
			err = c.prepare(ctx)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Done takes away what was made for the run, and says what the run left that may not stay.
func (all Covers) Done() (undone []string, err error) {
	for _, c := range all {
		found, failed := c.Done()
		err = errors.Join(err, failed)
		for _, a := range found {
			undone = append(undone, a.told())
		}
	}
	return undone, err
}

// shown is a path as it stands in a line: names may have line ends in them, and what looks like
// another message behind those.
func shown(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// told is one line about it.
func (a Appeared) told() string {
	switch {
	case a.unseen:
		return fmt.Sprintf("not looked at for protected names: %s: %s", shown(a.Path), a.Why)
	case a.MovedTo == "":
		return fmt.Sprintf("protected, and still there: %s (%s)", shown(a.Path), a.Why)
	}
	return fmt.Sprintf("undone, since it is protected: %s (%s): moved to %s", shown(a.Path), a.Why, shown(a.MovedTo))
}

// Saw reports whether the names were looked for among those mounts, and they are the same
// still: then a box that has them has what was looked at.
func (all Covers) Saw(mounts *mounted.Table) (bool, error) {
	now, err := mounted.Now()
	if err != nil {
		return false, err
	}
	for _, c := range all {
		if c.index == nil {
			continue
		}
		if mark := mounts.Mark(c.Root); c.index.mounts.Mark(c.Root) != mark || now.Mark(c.Root) != mark {
			return false, nil
		}
	}
	return true, nil
}
