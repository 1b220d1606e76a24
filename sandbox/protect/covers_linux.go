package protect

import (
	"context"
	"errors"
	"fmt"
	"os"

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
			where := "moved to " + a.MovedTo
			switch {
			case a.unseen:
				where = "what the run left there was not looked at"
			case a.MovedTo == "":
				where = "still there"
			}
			undone = append(undone, fmt.Sprintf("%s (%s): %s", a.Path, a.Why, where))
		}
	}
	return undone, err
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
