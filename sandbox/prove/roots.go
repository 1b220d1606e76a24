package prove

import (
	"context"
	"os"
	"path/filepath"
)

// tryRoots: a file as a root, a root in a root, a root below /tmp, as many tools have,
// and one that is not there.
func tryRoots(ctx context.Context, w *world) error {
	dir, err := os.MkdirTemp("/tmp", "writ-prove-")
	if err != nil {
		return err
	}
	w.later(func() { os.RemoveAll(dir) })
	tmp := filepath.Join(dir, "ws")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	if err := giveAway(tmp); err != nil {
		return err
	}
	c := w.confinement()
	c.Write = append(c.Write, filepath.Join(w.out, "link-to-me"), tmp)
	c.Read = append(c.Read, w.base+"/nothing-here")
	o := w.bash(ctx, c, prelude+`echo new >$OUT/link-to-me; echo new >$T/x; ls /tmp; ! cat $OUT/canary; ! touch $OUT/y; [ "$(ls /tmp | grep -v home)" = "$(basename $(dirname $T))" ]`,
		map[string]string{"T": tmp})
	if o.Error != nil || o.Exit.Code != 0 {
		return broken("%s", o)
	}
	for _, path := range []string{filepath.Join(w.out, "link-to-me"), filepath.Join(tmp, "x")} {
		if b, err := os.ReadFile(path); string(b) != "new\n" {
			return inconclusive("%s: %q, %v", path, b, err)
		}
	}
	return nil
}
