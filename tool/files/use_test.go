package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
)

func TestReadFile(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "one\ntwo\nthree\n")
	w.put(t, "open", "one\ntwo")
	w.put(t, "empty", "")
	w.put(t, "é ü", "ok")
	for _, row := range []struct {
		args m
		want string
	}{
		{m{"path": "f"}, "one\ntwo\nthree\n"},
		{m{"path": w.ws + "/f"}, "one\ntwo\nthree\n"},
		{m{"path": "f", "start_line": 2}, "two\nthree\n"},
		{m{"path": "f", "end_line": 1}, "one\n"},
		{m{"path": "f", "start_line": 2, "end_line": 2}, "two\n"},
		{m{"path": "f", "start_line": 3, "end_line": 99}, "three\n"},
		{m{"path": "f", "start_line": "2", "end_line": "2"}, "two\n"},
		{m{"path": "open", "start_line": 2}, "two"},
		{m{"path": "empty"}, ""},
		{m{"path": "empty", "start_line": 1}, ""},
		{m{"path": "é ü"}, "ok"},
	} {
		if got := w.ok(t, "read_file", row.args); got != row.want {
			t.Errorf("%v: %q", row.args, got)
		}
	}
	w.fails(t, "read_file", m{"path": "f", "start_line": 4}, `cannot read "f": it has 3 lines, so there is no line 4`)
	w.fails(t, "read_file", m{"path": "f", "start_line": 5, "end_line": 9}, `cannot read "f": it has 3 lines, so there is no line 5`)
	w.fails(t, "read_file", m{"path": "open", "start_line": 3}, `cannot read "open": it has 2 lines, so there is no line 3`)
	w.fails(t, "read_file", m{"path": "empty", "start_line": 2}, `cannot read "empty": it has 0 lines, so there is no line 2`)
	w.fails(t, "read_file", m{"path": "f", "start_line": 3, "end_line": 2}, `start_line 3 is after end_line 2`)
	w.fails(t, "read_file", m{"path": "none"}, `cannot read "none": no such file or directory`)
	w.fails(t, "read_file", m{"path": "none/x"}, `cannot open "none/x": no such file or directory`)
	w.fails(t, "read_file", m{"path": "f/x"}, `cannot open "f/x": a directory on the way changed while the call was made`)
	w.fails(t, "read_file", m{"path": "."}, `cannot read ".": it is a directory; use list_directory`)
}

func TestReadFileLimit(t *testing.T) {
	w := newWorld(t)
	exact := strings.Repeat("0123456789abcde\n", readLimit/16)
	w.put(t, "exact", exact)
	w.put(t, "over", exact+"x")
	if got := w.ok(t, "read_file", m{"path": "exact"}); got != exact {
		t.Errorf("exactly the limit: %d bytes", len(got))
	}
	if got := w.ok(t, "read_file", m{"path": "exact", "start_line": 1}); got != exact {
		t.Errorf("exactly the limit in lines: %d bytes", len(got))
	}
	if got, want := w.ok(t, "read_file", m{"path": "over"}), exact+"\n[cut: the first 1048576 of 1048577 bytes; read the rest with start_line and end_line]"; got != want {
		t.Errorf("one over: …%q", got[len(got)-120:])
	}
	if got, want := w.ok(t, "read_file", m{"path": "over", "start_line": 1}), exact+"\n[cut: 1048576 bytes shown, up to line 65537; ask for fewer lines]"; got != want {
		t.Errorf("one over in lines: …%q", got[len(got)-120:])
	}
	if got := w.ok(t, "read_file", m{"path": "over", "start_line": 65537}); got != "x" {
		t.Errorf("the rest: %q", got)
	}
	// A character across the limit is left out, not halved.
	w.put(t, "half", strings.Repeat("x", readLimit-1)+"éé")
	if got := w.ok(t, "read_file", m{"path": "half"}); !strings.HasPrefix(got[readLimit-2:], "x\n[cut: the first 1048575 of 1048579 bytes") {
		t.Errorf("…%q", got[readLimit-2:])
	}
}

func TestReadFileIsText(t *testing.T) {
	w := newWorld(t)
	w.put(t, "bin", "a\x00b")
	w.put(t, "latin", "caf\xe9")
	w.put(t, "late", strings.Repeat("x", 9000)+"\xff")
	w.fails(t, "read_file", m{"path": "bin"}, `cannot read "bin": it is a binary file`)
	w.fails(t, "read_file", m{"path": "latin"}, `cannot read "latin": it is not UTF-8 text`)
	w.fails(t, "read_file", m{"path": "late"}, `cannot read "late": it is not UTF-8 text`)
	w.fails(t, "read_file", m{"path": "bin", "start_line": 1}, `cannot read "bin": it is a binary file`)
	w.fails(t, "edit_file", m{"path": "bin", "old_text": "a", "new_text": "b"}, `cannot edit "bin": it is a binary file`)
	w.fails(t, "edit_file", m{"path": "latin", "old_text": "a", "new_text": "b"}, `cannot edit "latin": it is not UTF-8 text`)
}

func TestWriteFile(t *testing.T) {
	w := newWorld(t)
	if got := w.ok(t, "write_file", m{"path": "f", "content": "new"}); got != "created f (3 bytes)" || w.get(t, "f") != "new" {
		t.Errorf("%q", got)
	}
	must(t, os.Chmod(w.path("f"), 0o640|os.ModeSetuid|os.ModeSetgid))
	if got := w.ok(t, "write_file", m{"path": "f", "content": ""}); got != "replaced f (0 bytes)" || w.get(t, "f") != "" {
		t.Errorf("%q", got)
	}
	// The permission bits are kept; that it runs as its owner is not.
	info, err := os.Stat(w.path("f"))
	must(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if got := w.ok(t, "write_file", m{"path": "a/b/c", "content": "x", "create_directories": true}); got != "created a/b/c (1 bytes)" {
		t.Errorf("%q", got)
	}
	w.ok(t, "write_file", m{"path": "a/b/d", "content": "x", "create_directories": true})
	w.ok(t, "write_file", m{"path": "top", "content": "x", "create_directories": true})
	w.fails(t, "write_file", m{"path": "n/x", "content": ""}, `cannot open "n/x": no such file or directory; set create_directories to make the directories`)
	w.fails(t, "write_file", m{"path": "a", "content": ""}, `cannot write "a": it is a directory`)
	w.fails(t, "write_file", m{"path": ".", "content": ""}, `cannot write ".": it is a directory`)
	w.fails(t, "write_file", m{"path": "f/x", "content": "", "create_directories": true}, `cannot open "f/x": a directory on the way changed while the call was made`)
	w.fails(t, "write_file", m{"path": strings.Repeat("n", 300), "content": ""}, fmt.Sprintf("cannot write %q: file name too long", strings.Repeat("n", 300)))
	if left := w.leftovers(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFileLimit(t *testing.T) {
	w := newWorld(t)
	exact := strings.Repeat("x", writeLimit)
	w.ok(t, "write_file", m{"path": "f", "content": exact})
	w.put(t, "g", "old")
	w.fails(t, "write_file", m{"path": "g", "content": exact + "x"}, `the content has 10485761 bytes; at most 10485760 are written`)
	if w.get(t, "g") != "old" {
		t.Error("it was written")
	}
	w.put(t, "h", exact[1:]+"y")
	w.ok(t, "edit_file", m{"path": "h", "old_text": "y", "new_text": "z"})
	w.fails(t, "edit_file", m{"path": "h", "old_text": "z", "new_text": "zz"}, `edit 1 would make the file larger than 10485760 bytes; nothing was changed`)
	w.put(t, "big", exact+"y")
	w.fails(t, "edit_file", m{"path": "big", "old_text": "y", "new_text": "z"}, `cannot edit "big": it has 10485761 bytes; at most 10485760 are edited`)
}

// A reader sees the old file or the new one, whole.
func TestWriteFileIsAtomic(t *testing.T) {
	w := newWorld(t)
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	w.put(t, "f", texts[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	reads := 0
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(w.path("f"))
			if err != nil || string(b) != texts[0] && string(b) != texts[1] {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
			reads++
		}
	})
	for i := range 30 {
		w.ok(t, "write_file", m{"path": "f", "content": texts[i%2]})
	}
	close(stop)
	wg.Wait()
	if reads == 0 {
		t.Error("nothing was read meanwhile")
	}
	if left := w.leftovers(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestEditFile(t *testing.T) {
	w := newWorld(t)
	edit := func(text string, args m, want string) {
		t.Helper()
		w.put(t, "f", text)
		args["path"] = "f"
		w.ok(t, "edit_file", args)
		if got := w.get(t, "f"); got != want {
			t.Errorf("%v: %q", args, got)
		}
	}
	edit("one two", m{"old_text": "two", "new_text": "three"}, "one three")
	edit("one two", m{"old_text": " two", "new_text": ""}, "one")
	edit("a a a", m{"old_text": "a", "new_text": "b", "replace_all": true}, "b b b")
	edit("a", m{"old_text": "a", "new_text": "b", "replace_all": "true"}, "b")
	edit("a b", m{"edits": []m{{"old_text": "a", "new_text": "c"}, {"old_text": "c b", "new_text": "d"}}}, "d")
	edit("aaa", m{"old_text": "aa", "new_text": "b", "replace_all": true}, "ba")

	refuse := func(text string, args m, want string) {
		t.Helper()
		w.put(t, "f", text)
		args["path"] = "f"
		w.fails(t, "edit_file", args, want)
		if got := w.get(t, "f"); got != text {
			t.Errorf("%v changed it to %q", args, got)
		}
	}
	refuse("a", m{}, `there is nothing to edit; give old_text and new_text, or edits`)
	refuse("a", m{"old_text": "b", "new_text": "c"}, `edit 1: old_text is not in "f"; nothing was changed`)
	refuse("a a", m{"old_text": "a", "new_text": "c"}, `edit 1: old_text occurs 2 times in "f"; make it unique or set replace_all; nothing was changed`)
	// It stands at two places that overlap: which one was meant?
	refuse("aaa", m{"old_text": "aa", "new_text": "c"}, `edit 1: old_text occurs 2 times in "f"; make it unique or set replace_all; nothing was changed`)
	refuse("a", m{"old_text": "", "new_text": "c"}, `edit 1: old_text is empty; nothing was changed`)
	refuse("a", m{"new_text": "c"}, `edit 1: old_text is empty; nothing was changed`)
	refuse("a", m{"old_text": "a", "new_text": "a"}, `edit 1: old_text and new_text are the same; nothing was changed`)
	refuse("a b", m{"edits": []m{{"old_text": "a", "new_text": "c"}, {"old_text": "x", "new_text": "y"}}}, `edit 2: old_text is not in "f"; nothing was changed`)
	refuse("a b", m{"edits": []m{{"old_text": "a", "new_text": "c"}, {"old_text": "", "new_text": "y"}}}, `edit 2: old_text is empty; nothing was changed`)
	refuse("a", m{"old_text": "a", "new_text": "b", "edits": []m{{"old_text": "a", "new_text": "c"}}}, `give old_text and new_text, or edits, not both`)
	// replace_all beside edits would be read over.
	refuse("a a", m{"replace_all": true, "edits": []m{{"old_text": "a", "new_text": "c"}}}, `give replace_all inside each of edits, not beside them`)
	w.fails(t, "edit_file", m{"path": "none", "old_text": "a", "new_text": "b"}, `cannot edit "none": no such file or directory`)
	w.fails(t, "edit_file", m{"path": ".", "old_text": "a", "new_text": "b"}, `cannot edit ".": it is a directory; use list_directory`)
	if left := w.leftovers(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A megabyte of one letter, each replaced by a megabyte, is a terabyte: the size
// is worked out before it is made.
func TestEditFileDoesNotGrowBeyondItsLimit(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("a", 1<<20)
	w.put(t, "f", text)
	w.fails(t, "edit_file", m{"path": "f", "old_text": "a", "new_text": text, "replace_all": true}, `edit 1 would make the file larger than 10485760 bytes; nothing was changed`)
	w.ok(t, "edit_file", m{"path": "f", "old_text": "a", "new_text": strings.Repeat("b", 10), "replace_all": true})
	if got := len(w.get(t, "f")); got != 10<<20 {
		t.Errorf("control: %d bytes", got)
	}
}

func TestDeleteAndMove(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "f")
	if got := w.ok(t, "delete_file", m{"path": "f"}); got != "deleted f" {
		t.Errorf("%q", got)
	}
	w.fails(t, "delete_file", m{"path": "f"}, `cannot delete "f": no such file or directory`)
	w.put(t, "d/f", "f")
	w.put(t, "g", "g")
	must(t, os.Mkdir(w.path("e"), 0o755))
	w.fails(t, "delete_file", m{"path": "d"}, `cannot delete "d": it is a directory; only files are deleted`)
	w.fails(t, "delete_file", m{"path": "e"}, `cannot delete "e": it is a directory; only files are deleted`)
	w.fails(t, "delete_file", m{"path": "."}, `cannot delete ".": it is a directory; only files are deleted`)

	if got := w.ok(t, "move_file", m{"source": "d/f", "destination": "h"}); got != "moved d/f to h" || w.get(t, "h") != "f" {
		t.Errorf("%q", got)
	}
	const there = `"g" is there already; set overwrite to replace a file`
	w.fails(t, "move_file", m{"source": "h", "destination": "g"}, there)
	w.fails(t, "move_file", m{"source": "d", "destination": "g", "overwrite": true}, `"g" is there already; a directory replaces nothing`)
	w.fails(t, "move_file", m{"source": "h", "destination": "e", "overwrite": true}, `"e" is there already and is a directory; give the whole new path`)
	w.fails(t, "move_file", m{"source": "h", "destination": "e"}, `"e" is there already and is a directory; give the whole new path`)
	w.fails(t, "move_file", m{"source": "d", "destination": "e"}, `"e" is there already and is a directory; give the whole new path`)
	w.fails(t, "move_file", m{"source": "h", "destination": "."}, `"." is there already and is a directory; give the whole new path`)
	w.fails(t, "move_file", m{"source": "d", "destination": "d/in"}, `cannot move "d" into itself`)
	w.fails(t, "move_file", m{"source": "none", "destination": "x"}, `cannot move "none": no such file or directory`)
	w.fails(t, "move_file", m{"source": "h", "destination": "no/x"}, `cannot open "no/x": no such file or directory`)
	w.fails(t, "move_file", m{"source": ".", "destination": "x"}, `cannot move ".": only files and directories inside the workspace are moved`)
	if w.get(t, "g") != "g" || w.get(t, "h") != "f" {
		t.Error("a refused move moved")
	}
	w.ok(t, "move_file", m{"source": "h", "destination": "g", "overwrite": true})
	if w.get(t, "g") != "f" {
		t.Error("overwrite did not")
	}
	w.ok(t, "move_file", m{"source": "d", "destination": "e/d"})
	if info, err := os.Stat(w.path("e/d")); err != nil || !info.IsDir() {
		t.Error(err)
	}
}

func TestStat(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "12345")
	must(t, os.Chmod(w.path("f"), 0o600))
	got := w.ok(t, "stat", m{"path": "f"})
	if !strings.HasPrefix(got, "type: file\nsize: 5\nmode: 0600\nmodified: ") || !strings.HasSuffix(got, "Z\n") {
		t.Errorf("%q", got)
	}
	must(t, os.Symlink("f", w.path("l")))
	if got := w.ok(t, "stat", m{"path": "l"}); !strings.HasPrefix(got, "type: symlink\n") {
		t.Errorf("%q", got)
	}
	if got := w.ok(t, "stat", m{"path": "."}); !strings.HasPrefix(got, "type: directory\n") {
		t.Errorf("%q", got)
	}
	w.fails(t, "stat", m{"path": "none"}, `cannot stat "none": no such file or directory`)
}

// No tool of the family runs without a writ, or with one that was used.
func TestNoWritNoWork(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", "f")
	all, err := Tools()
	must(t, err)
	for _, tl := range all {
		if _, err := tl.Run(t.Context(), writ.Writ{}); writ.KindOf(err) != writ.Internal {
			t.Errorf("%s: %v", tl.Name, err)
		}
	}
	var kept writ.Writ
	g := gate{w.confine, func(_ context.Context, w writ.Writ) (writ.Result, error) { kept = w; return writ.Result{}, nil }}
	_, err = writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{ID: "c", Agent: "a", Tool: "delete_file", Definition: writ.Digest{1}, Args: `{"path":"f"}`, Resolved: true,
		Targets: []writ.Target{{Pointer: "/path", Value: "f", Path: w.path("f")}}})
	must(t, err)
	if _, err := named(t, "delete_file").Run(t.Context(), kept); writ.KindOf(err) != writ.Internal {
		t.Errorf("a used writ: %v", err)
	}
	if w.get(t, "f") != "f" {
		t.Error("it was deleted")
	}
	w.ok(t, "delete_file", m{"path": "f"})
	if _, err := os.Stat(filepath.Join(w.ws, "f")); err == nil {
		t.Error("control: it was not deleted")
	}
}
