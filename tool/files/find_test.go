package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestListDirectory(t *testing.T) {
	w := newWorld(t)
	w.put(t, "b.go", "12345")
	w.put(t, "a.txt", "")
	w.put(t, "sub/c.go", "1")
	w.put(t, "sub/deep/d.go", "1")
	must(t, os.Mkdir(w.path("none"), 0o755))
	must(t, os.Symlink("sub", w.path("link")))
	for _, row := range []struct {
		args m
		want string
	}{
		{m{}, "FILE     a.txt (0 bytes)\nFILE     b.go (5 bytes)\nSYMLINK  link\nDIR      none/\nDIR      sub/\n"},
		{m{"path": "sub"}, "FILE     c.go (1 bytes)\nDIR      deep/\n"},
		{m{"pattern": "*.go"}, "FILE     b.go (5 bytes)\n"},
		{m{"pattern": "*.go", "recursive": true}, "FILE     b.go (5 bytes)\nFILE     sub/c.go (1 bytes)\nFILE     sub/deep/d.go (1 bytes)\n"},
		{m{"pattern": "sub/**/*.go", "recursive": true}, "FILE     sub/c.go (1 bytes)\nFILE     sub/deep/d.go (1 bytes)\n"},
		{m{"pattern": "*.rs", "recursive": true}, "(nothing)\n"},
		{m{"path": "none"}, "(nothing)\n"},
	} {
		if got := w.ok(t, "list_directory", row.args); got != row.want {
			t.Errorf("%v:\n%s", row.args, got)
		}
	}
	w.fails(t, "list_directory", m{"path": "b.go"}, `"b.go" is not a directory`)
	w.fails(t, "list_directory", m{"path": "no"}, `cannot list "no": no such file or directory`)
	w.fails(t, "list_directory", m{"pattern": "[", "recursive": true}, `pattern "[": it is malformed`)
	w.fails(t, "list_directory", m{"pattern": "/etc/*"}, `pattern "/etc/*" must be relative to path and stay below it`)
	w.fails(t, "list_directory", m{"pattern": "../*"}, `pattern "../*" must be relative to path and stay below it`)
	w.fails(t, "list_directory", m{"pattern": "a/../../b"}, `pattern "a/../../b" must be relative to path and stay below it`)
}

// A pattern is the caller's: thirty pairs of alternatives cost 2^30 steps for
// each name.
func TestPatternsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.put(t, strings.Repeat("a", 40), "x")
	dear := strings.Repeat("{a,a}", 30) + "b"
	began := time.Now()
	w.fails(t, "list_directory", m{"pattern": dear}, fmt.Sprintf("pattern %q: it has more than 256 alternatives", dear))
	w.fails(t, "search_files", m{"pattern": "x", "glob": dear}, fmt.Sprintf("glob %q: it has more than 256 alternatives", dear))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	w.ok(t, "list_directory", m{"pattern": "*.{ts,tsx,js,jsx}"})
}

func TestListLimit(t *testing.T) {
	w := newWorld(t)
	for i := range listLimit {
		w.put(t, fmt.Sprintf("d/%04d", i), "")
	}
	if got := w.ok(t, "list_directory", m{"path": "d"}); strings.Contains(got, "cut") || strings.Count(got, "\n") != listLimit {
		t.Errorf("exactly the limit: …%q", got[len(got)-80:])
	}
	w.put(t, "d/x", "")
	if got := w.ok(t, "list_directory", m{"path": "d"}); !strings.HasSuffix(got, "FILE     0999 (0 bytes)\n[cut: the first 1000 entries; narrow it with path or pattern]\n") {
		t.Errorf("one over: …%q", got[len(got)-80:])
	}
}

func TestListHundredThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("100000 files")
	}
	memory, err := os.MkdirTemp("/dev/shm", "writ-test-") // where there is one, it takes a second
	if err != nil {
		memory = t.TempDir()
	}
	defer os.RemoveAll(memory)
	w := worldIn(t, memory)
	for i := range 100 {
		must(t, os.Mkdir(w.path(fmt.Sprintf("d%02d", i)), 0o755))
		for j := range 1000 {
			must(t, os.Symlink("x", w.path(fmt.Sprintf("d%02d/%04d", i, j))))
		}
	}
	got := w.ok(t, "list_directory", m{"recursive": true})
	if strings.Count(got, "\n") != listLimit+1 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
	if got := w.ok(t, "list_directory", m{"recursive": true, "pattern": "d99/0999"}); got != "SYMLINK  d99/0999\n" {
		t.Errorf("the last one: %q", got)
	}
}

func TestSearchFiles(t *testing.T) {
	w := newWorld(t)
	w.put(t, "a.go", "one\nTwo two\n")
	w.put(t, "sub/b.go", "two\r\n")
	w.put(t, "sub/c.txt", "two")
	w.put(t, "bin", "two\x00")
	w.put(t, ".git/x", "two")
	w.put(t, "long", strings.Repeat("x", lineLimit)+"two")
	must(t, os.Symlink("a.go", w.path("link")))
	long := strings.Repeat("x", lineLimit)
	for _, row := range []struct {
		args m
		want string
	}{
		{m{"pattern": "two"}, "a.go:2: Two two\nlong:1: " + long + " [cut: 503 bytes]\nsub/b.go:1: two\nsub/c.txt:1: two\n"},
		{m{"pattern": "^TWO", "ignore_case": true, "glob": "*.go"}, "a.go:2: Two two\nsub/b.go:1: two\n"},
		{m{"pattern": "two", "path": "sub"}, "b.go:1: two\nc.txt:1: two\n"},
		{m{"pattern": "two", "glob": "sub/*.txt"}, "sub/c.txt:1: two\n"},
		{m{"pattern": "none"}, "(no match in 4 files)\n"},
	} {
		if got := w.ok(t, "search_files", row.args); got != row.want {
			t.Errorf("%v:\n%s", row.args, got)
		}
	}
	w.fails(t, "search_files", m{"pattern": "("}, "pattern is not a regular expression (RE2): error parsing regexp: missing closing ): `(`")
	w.fails(t, "search_files", m{"pattern": "(?=x)"}, "pattern is not a regular expression (RE2): error parsing regexp: invalid or unsupported Perl syntax: `(?=`")
	w.fails(t, "search_files", m{"pattern": "x", "glob": "{"}, `glob "{": it is malformed`)
	w.fails(t, "search_files", m{"pattern": "x", "path": "a.go"}, `"a.go" is not a directory`)
}

func TestSearchLimit(t *testing.T) {
	w := newWorld(t)
	w.put(t, "f", strings.Repeat("x\n", matchLimit))
	if got := w.ok(t, "search_files", m{"pattern": "x"}); strings.Contains(got, "cut") || strings.Count(got, "\n") != matchLimit {
		t.Errorf("exactly the limit: …%q", got[len(got)-80:])
	}
	w.put(t, "f", strings.Repeat("x\n", matchLimit+1))
	if got := w.ok(t, "search_files", m{"pattern": "x"}); !strings.HasSuffix(got, "f:1000: x\n[cut: the first 1000 matches; narrow it with path, glob or pattern]\n") {
		t.Errorf("one over: …%q", got[len(got)-80:])
	}
}

// What was not looked through is said: silence reads as "no match".
func TestSearchSaysWhatItLeftOut(t *testing.T) {
	w := newWorld(t)
	w.put(t, "a", strings.Repeat("x", 2<<20)+"\nfind me\n")
	w.put(t, "b", strings.Repeat("x\n", writeLimit/2)+"find me\n")
	if got, want := w.ok(t, "search_files", m{"pattern": "find me"}), "a:2: find me\n[not searched: 1 files larger than 10485760 bytes]\n"; got != want {
		t.Errorf("%q", got)
	}
}

// A file is named by whoever made it; a name must not forge a line of the answer.
func TestNamesDoNotForgeLines(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a\nFILE     passwd (7 bytes)", "b\x1b[2J", "c\u202etxt", "d\xff", "e\r", `"q"`, " f", "g "} {
		w.put(t, name, "needle")
	}
	w.put(t, "main.go:7: needle", "needle")
	w.put(t, "plain é.txt", "needle")
	must(t, os.Mkdir(w.path("z\nDIR      etc"), 0o755))
	want := "FILE     \" f\" (6 bytes)\n" + `FILE     "\"q\"" (6 bytes)
FILE     "a\nFILE     passwd (7 bytes)" (6 bytes)
FILE     "b\x1b[2J" (6 bytes)
FILE     "c\u202etxt" (6 bytes)
FILE     "d\xff" (6 bytes)
FILE     "e\r" (6 bytes)
FILE     "g " (6 bytes)
FILE     main.go:7: needle (6 bytes)
FILE     plain é.txt (6 bytes)
DIR      "z\nDIR      etc"/
`
	if got := w.ok(t, "list_directory", m{}); got != want {
		t.Errorf("%s", got)
	}
	got := w.ok(t, "search_files", m{"pattern": "needle"})
	if strings.Count(got, "\n") != 10 || strings.Contains(got, "\nFILE") || strings.Contains(got, "\nmain.go:7: needle") || !strings.Contains(got, "\n\"main.go:7: needle\":1: needle\n") || !strings.Contains(got, "plain é.txt:1: needle\n") {
		t.Errorf("%s", got)
	}
	// Nor must a line of a file.
	w.put(t, "cr/x", "needle\rcr/y:1: forged\u2028cr/z:1: forged\x1b[1A\ttab\n")
	if got, want := w.ok(t, "search_files", m{"pattern": "needle", "path": "cr"}), "x:1: needle\ufffdcr/y:1: forged\ufffdcr/z:1: forged\ufffd[1A\ttab\n"; got != want {
		t.Errorf("%q", got)
	}
}

// Walking reaches nothing that naming would not: secrets are listed and not
// searched, what is hidden is neither.
func TestWalkKeepsSecrets(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{".env", ".ENV", "sub/.env.local", ".ssh/config", "x/id_rsa", "x/server.key", ".aws/credentials"} {
		w.put(t, name, "needle "+canary)
	}
	w.put(t, ".env.example", "needle")
	w.put(t, "sub/ok", "needle")
	if got := w.ok(t, "search_files", m{"pattern": "needle"}); got != ".env.example:1: needle\nsub/ok:1: needle\n" {
		t.Errorf("%s", got)
	}
	if got := w.ok(t, "list_directory", m{"recursive": true}); !strings.Contains(got, " .env (") || !strings.Contains(got, "sub/.env.local") {
		t.Errorf("%s", got)
	}
}

func TestWalkKeepsHidden(t *testing.T) {
	w := newWorld(t)
	w.put(t, "a/before", "needle")
	w.put(t, "a/hidden", canary+" needle")
	w.put(t, "a/later", "needle")
	w.put(t, "state/db", canary+" needle")
	w.put(t, "statement", "needle")
	w.confine.Read = []string{"/"}
	w.confine.Hide = []string{w.path("a/hidden"), w.path("state")}
	if got := w.ok(t, "list_directory", m{"recursive": true}); got != "DIR      a/\nFILE     a/before (6 bytes)\nFILE     a/later (6 bytes)\nFILE     statement (6 bytes)\n" {
		t.Errorf("%s", got)
	}
	if got := w.ok(t, "search_files", m{"pattern": "needle"}); got != "a/before:1: needle\na/later:1: needle\nstatement:1: needle\n" {
		t.Errorf("%s", got)
	}
	// The confinement holds even where the decision did not see it.
	for _, name := range []string{"read_file", "stat", "list_directory"} {
		w.denied(t, name, m{"path": "state"})
		w.denied(t, name, m{"path": "state/db"})
		w.denied(t, name, m{"path": "a/hidden"})
	}
	w.denied(t, "search_files", m{"path": "state", "pattern": "x"})
	w.denied(t, "write_file", m{"path": "state/db", "content": ""})
	w.denied(t, "write_file", m{"path": "state/new/x", "content": "", "create_directories": true})
	w.denied(t, "delete_file", m{"path": "a/hidden"})
	w.denied(t, "edit_file", m{"path": "state/db", "old_text": "needle", "new_text": "x"})
	w.denied(t, "move_file", m{"source": "state", "destination": "s"})
	w.denied(t, "move_file", m{"source": "a", "destination": "b"}) // with what is hidden in it
	w.denied(t, "move_file", m{"source": "statement", "destination": "state/x"})
	w.ok(t, "move_file", m{"source": "statement", "destination": "s"})
}

func TestWalkIsBoundedInDepth(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat("d/", 300)
	w.put(t, deep+"f", "needle")
	w.put(t, "z", "needle")
	if got := w.ok(t, "list_directory", m{"recursive": true}); !strings.HasSuffix(got, fmt.Sprintf("FILE     z (6 bytes)\n[not entered: 1 directories deeper than %d levels]\n", maxDepth)) {
		t.Errorf("…%q", got[max(0, len(got)-120):])
	}
	if got := w.ok(t, "search_files", m{"pattern": "needle"}); got != fmt.Sprintf("z:1: needle\n[not entered: 1 directories deeper than %d levels]\n", maxDepth) {
		t.Errorf("%q", got)
	}
	if got := w.ok(t, "search_files", m{"pattern": "needle", "path": filepath.Clean(strings.Repeat("d/", 290))}); !strings.HasSuffix(got, "f:1: needle\n") {
		t.Errorf("control: %q", got)
	}
}
