package protect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An index that is told of changes knows what one knows that looks at everything, whatever
// has happened in between.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x03\x00\x00\x05\x00\x00\x01\xff\x05\x00\x00\x00\x01"))
	for seed := range 24 { // histories that are long enough for something to happen
		var history []byte
		x := uint32(seed + 1)
		for range 400 {
			x = x*1664525 + 1013904223
			history = append(history, byte(x>>24))
		}
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		if len(history) > 600 {
			return // longer ones show nothing that shorter ones do not
		}
		ws := t.TempDir()
		watched, err := New(Options{State: t.TempDir(), Quarantine: t.TempDir()})
		must(t, err)
		defer watched.Close()
		unwatched, err := New(Options{State: t.TempDir(), Quarantine: t.TempDir(), Unwatched: true})
		must(t, err)
		defer unwatched.Close()
		h := &historian{ws: ws, rest: history}
		mountsIn(t, watched, ws)
		for len(h.rest) > 0 {
			h.step()
			if h.next(4) > 0 {
				continue
			}
			got, want := mountsIn(t, watched, ws), mountsIn(t, unwatched, ws)
			if !slices.Equal(got, want) {
				t.Fatalf("after %s\nknown, and not there: %v\nthere, and not known: %v", strings.Join(h.log, "; "), without(got, want), without(want, got))
			}
		}
	})
}

// A historian does things to a workspace, chosen by bytes.
type historian struct {
	ws   string
	rest []byte
	log  []string
}

func (h *historian) next(n int) int {
	if len(h.rest) == 0 {
		return 0
	}
	b := h.rest[0]
	h.rest = h.rest[1:]
	return int(b) % n
}

func (h *historian) path() string {
	var all []string
	filepath.WalkDir(h.ws, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Count(p[len(h.ws):], "/") < 5 && len(all) < 200 {
			all = append(all, p)
		}
		return nil
	})
	names := []string{"a", "b", ".git", "node_modules", ".env", ".claude", "hooks", "config", "HEAD", "objects", "refs", "bare"}
	return filepath.Join(all[h.next(len(all))], names[h.next(len(names))])
}

func (h *historian) step() {
	from, to := h.path(), h.path()
	name, did := "", error(nil)
	switch h.next(9) {
	case 0, 1:
		name, did = "mkdir", os.Mkdir(from, 0o755)
	case 2:
		name, did = "write", os.WriteFile(from, nil, 0o644)
	case 3, 4:
		name, did = "move", unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, 0)
	case 5:
		name, did = "exchange", unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	case 6:
		name, did = "link", os.Link(from, to)
	case 7:
		name, did = "remove", os.RemoveAll(from)
	case 8:
		if did = os.Mkdir(from, 0o755); did == nil {
			name, did = "make bare", os.WriteFile(from+"/HEAD", nil, 0o644)
			os.Mkdir(from+"/objects", 0o755)
			os.Mkdir(from+"/refs", 0o755)
		}
	}
	if did == nil {
		h.log = append(h.log, fmt.Sprintf("%s %s %s", name, strings.TrimPrefix(from, h.ws), strings.TrimPrefix(to, h.ws)))
	}
}

func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(others, s) })
}

// mountsIn is what a Finder would mount.
func mountsIn(t *testing.T, f *Finder, ws string) (out []string) {
	t.Helper()
	c, err := f.Cover(context.Background(), ws, nil)
	must(t, err)
	for _, m := range c.Mounts {
		out = append(out, fmt.Sprint(strings.TrimPrefix(m.Path, ws), m.How, m.Dir, m.Link))
	}
	f.end(c) // without a run there is nothing to be done
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
