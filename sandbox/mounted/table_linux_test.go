package mounted

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

func same(string) uint64 { return 1 }

func TestParse(t *testing.T) {
	table, err := parse("21 1 8:1 / / rw shared:1 - ext4 /dev/root rw\n"+
		`22 21 0:20 / /a\040b rw - tmpfs none rw`+"\n"+
		`23 21 0:21 / /c\134040 rw - tmpfs none rw`+"\n"+
		"24 21 0:22 / /d\u00a0e rw - tmpfs none rw\n"+
		`25 22 0:23 / /a\040b rw - tmpfs none rw`+"\n", same)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/a b", `/c\040`, "/d\u00a0e"}, table.Points()); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"\n", "21 1 8:1 / /\n"} {
		if _, err := parse(bad, same); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTouches(t *testing.T) {
	for _, tc := range []struct {
		place, path string
		want        bool
	}{
		{"/srv", "/srv", true}, {"/srv", "/srv/ws", true}, {"/srv/ws/a", "/srv/ws", true}, {"/", "/srv", true},
		{"/srv/w", "/srv/ws", false}, {"/srv/ws", "/srv/w", false}, {"/mnt", "/srv", false},
	} {
		if got := Touches(tc.place, tc.path); got != tc.want {
			t.Errorf("%s, %s: %v", tc.place, tc.path, got)
		}
	}
}

// What is mounted and unmounted is noticed, where it is and nowhere else.
func TestNow(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Root(t)
	}
	dir := t.TempDir()
	ws, other := filepath.Join(dir, "a b"), filepath.Join(dir, "other")
	for _, d := range []string{ws, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	now := func() *Table {
		t.Helper()
		table, err := Now()
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	var before *Table
	same := func() bool { before = now(); return now() == before }
	for range 100 { // others may be mounting something just now
		if same() {
			break
		}
	}
	if !same() {
		t.Error("nothing was mounted, and it is another table")
	}
	if err := unix.Mount("none", ws, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	mounted := true
	defer func() {
		if mounted {
			unix.Unmount(ws, 0)
		}
	}()
	with := now()
	if with == before || !slices.Contains(with.Points(), ws) {
		t.Fatal("a mount was not noticed")
	}
	if with.Mark(ws) == before.Mark(ws) || with.Mark(dir) == before.Mark(dir) || with.Mark(other) != before.Mark(other) {
		t.Errorf("marks: %q, %q, %q", with.Mark(ws), with.Mark(dir), with.Mark(other))
	}
	if diff := cmp.Diff([]string{ws}, slices.DeleteFunc(with.Since(before), func(at string) bool { return !strings.HasPrefix(at, dir) })); diff != "" {
		t.Error(diff)
	}
	if err := unix.Unmount(ws, 0); err != nil {
		t.Fatal(err)
	}
	mounted = false
	after := now()
	if after.Mark(dir) != before.Mark(dir) {
		t.Errorf("it was unmounted: %q, before %q", after.Mark(dir), before.Mark(dir))
	}
	if err := unix.Mount("none", ws, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	mounted = true
	two := now()
	if Doubt(); now() != two && len(now().Since(two)) == 0 {
		t.Error("nothing was found when it was looked at anew, and it is another table")
	}
	if again := now(); again.Mark(dir) == with.Mark(dir) {
		t.Error("another mount in the same place has the mark of the first")
	}
}

// A directory with a mount in it that is renamed is found when somebody says so, as the same
// mount in another place.
func TestDoubt(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	at, later := filepath.Join(dir, "one", "at"), filepath.Join(dir, "two", "at")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Unmount(at, 0); unix.Unmount(later, 0) }()
	before, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Dir(at), filepath.Dir(later)); err != nil {
		t.Fatal(err)
	}
	Doubt()
	now, err := Now()
	if err != nil || now.Mark(later) == "" || now.Mark(at) != "" || before.Mark(at) == "" {
		t.Errorf("%q, %q: %v", now.Mark(later), now.Mark(at), err)
	}
	if slices.ContainsFunc(now.Others(before), func(at string) bool { return strings.HasPrefix(at, dir) }) {
		t.Error("a mount that was moved is taken for another")
	}
}
