package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// holds demands what a file has, and its mode.
func holds(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != text {
		t.Errorf("%s: %v %q, want %q", path, err, b, text)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() != mode {
		t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), mode)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func read(t *testing.T, path string) *File {
	t.Helper()
	f, err := Read(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWriteKeepsModeAndBacksUp(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o644, 0o640} {
		path := filepath.Join(t.TempDir(), "c.json")
		write(t, path, "one", mode)
		for n, backup := range []string{"c.json.writ-backup-20260102T120000Z", "c.json.writ-backup-20260102T120000Z-2"} {
			f := read(t, path)
			got, err := f.Write(fmt.Append(f.Data, "+"), 0o666, noon)
			if err != nil || filepath.Base(got) != backup {
				t.Fatalf("%s %v", got, err)
			}
			holds(t, got, "one"+strings.Repeat("+", n), 0o600)
		}
		holds(t, path, "one++", mode)
		if got := names(t, filepath.Dir(path)); got != "c.json c.json.writ-backup-20260102T120000Z c.json.writ-backup-20260102T120000Z-2" {
			t.Errorf("left over: %s", got)
		}
		if got := read(t, path).Backups(); len(got) != 2 || string(got[0]) != "one+" || string(got[1]) != "one" {
			t.Errorf("backups: %q", got)
		}
	}
}

func TestWriteMakesAndRemoves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "c.toml")
	backup, err := read(t, path).Write([]byte("x"), 0o600, noon)
	if err != nil || backup != "" {
		t.Fatalf("%q %v", backup, err)
	}
	holds(t, path, "x", 0o600)
	if backup, err = read(t, path).Write(nil, 0, noon); err != nil || backup != "" {
		t.Fatalf("%q %v", backup, err)
	}
	if got := names(t, filepath.Dir(path)); got != "" {
		t.Errorf("left over: %s", got)
	}
}

func TestWriteRefusesWhatChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"changed":  func(t *testing.T, path string) { write(t, path, "two", 0o600) },
		"gone":     func(t *testing.T, path string) { os.Remove(path) },
		"replaced": func(t *testing.T, path string) { write(t, path+"2", "one", 0o600); os.Rename(path+"2", path) },
	} {
		path := filepath.Join(t.TempDir(), "c.json")
		write(t, path, "one", 0o600)
		f := read(t, path)
		change(t, path)
		if _, err := f.Write([]byte("mine"), 0o600, noon); err == nil || err.Error() != path+" changed in the meantime, and was left as it is; run this again" {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(t, filepath.Dir(path)); got != "c.json" && name != "gone" {
			t.Errorf("%s: left over: %s", name, got)
		}
	}
	path := filepath.Join(t.TempDir(), "c.json")
	f := read(t, path)
	write(t, path, "theirs", 0o600)
	if _, err := f.Write([]byte("mine"), 0o600, noon); err == nil {
		t.Error("a file that came in the meantime is overwritten")
	}
	holds(t, path, "theirs", 0o600)
}

func TestWriteRefusesReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one", 0o444)
	if _, err := read(t, path).Write([]byte("x"), 0, noon); err == nil || !strings.HasSuffix(err.Error(), "is read-only, and was left as it is; chmod u+w it, then run this again") {
		t.Errorf("%v", err)
	}
	holds(t, path, "one", 0o444)
}

func TestLinks(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	real := filepath.Join(out, "real.json")
	link := filepath.Join(dir, ".mcp.json")
	write(t, real, "one", 0o600)
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	f := read(t, link)
	if _, err := f.Write([]byte("two"), 0, noon); err != nil {
		t.Fatal(err)
	}
	holds(t, real, "two", 0o600)
	if to, err := os.Readlink(link); err != nil || to != real || f.Link != link || names(t, dir) != ".mcp.json" {
		t.Errorf("the link: %q %v %+v", to, err, f)
	}
	if _, err := Read(link, dir); err == nil || !strings.Contains(err.Error(), "outside the project, which is not edited") {
		t.Errorf("out of the project: %v", err)
	}
	if _, err := Read(link, out); err != nil {
		t.Errorf("below: %v", err)
	}
	os.Remove(real)
	if _, err := Read(link, ""); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("dangling: %v", err)
	}
	if _, err := Read(dir, ""); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("directory: %v", err)
	}
}

func TestDiffHidesOtherValues(t *testing.T) {
	before := "{\n  \"key\": \"sk-1\",\n  \"list\": [\n    \"sk-2\"\n  ],\n  \"last\": \"sk-3\"\n}\n"
	added, err := Connect(claude, []byte(before), coder, false)
	if err != nil {
		t.Fatal(err)
	}
	got := Diff([]byte(before), added.After)
	want := "@@ -3,5 +3,17 @@\n   \"list\": [\n     …\n   ],\n-  \"last\": …\n+  \"last\": …,\n+  \"mcpServers\": {\n+    \"writ\": {\n+      \"type\": \"stdio\",\n+      \"command\": \"/opt/writ\",\n" +
		"+      \"args\": [\n+        \"mcp\",\n+        \"--agent\",\n+        \"coder\"\n+      ],\n+      \"env\": {}\n+    }\n+  }\n }\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	before = `{"key":"sk-1","mcpServers":{"b":{"env":{"K":"sk-2"},"long":"` + strings.Repeat("é", 100) + `"}},"z":"sk-3"}`
	if added, err = Connect(claude, []byte(before), coder, false); err != nil {
		t.Fatal(err)
	}
	want = "(on one line in the file, and shown on several)\n@@ -6,6 +6,16 @@\n         \"K\": …\n       },\n       \"long\": …\n" +
		"+    },\n+    \"writ\": " + strings.ReplaceAll(strings.TrimSuffix(block("    ", "  "), "\n    }"), "\n", "\n+") + "\n     }\n   },\n   \"z\": …\n"
	if got := Diff([]byte(before), added.After); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	before = `{"k":"sk-1"}`
	if added, err = Connect(claude, []byte(before), remote, false); err != nil {
		t.Fatal(err)
	}
	if got := Diff([]byte(before), added.After); strings.Contains(got, "sk-1") || !strings.Contains(got, "\n+      \"url\": \"http://127.0.0.1:7323/mcp\",\n") {
		t.Errorf("a short line\n%s", got)
	}
	toml := "token = \"sk-1\"\n[mcp_servers.a]\nargs = [\n\"sk-2\"]\nK = 'sk-3'\n"
	if added, err = Connect(TOML{}, []byte(toml), coder, false); err != nil {
		t.Fatal(err)
	}
	want = "@@ -3,3 +3,7 @@\n args = [\n …\n K = …\n+\n+[mcp_servers.writ]\n+command = \"/opt/writ\"\n+args = [\"mcp\", \"--agent\", \"coder\"]\n"
	if got := Diff([]byte(toml), added.After); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestClaudeProject(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(root, "tree")
	own := filepath.Join(root, "main/.git/worktrees/tree")
	for _, dir := range []string{"main/.git/worktrees/tree", "main/sub", "tree/sub", "liar", "plain/sub"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(tree, ".git"), "gitdir: "+own+"\n", 0o644)
	write(t, filepath.Join(root, "liar/.git"), "gitdir: "+own+"\n", 0o644)
	write(t, filepath.Join(own, "gitdir"), filepath.Join(tree, ".git")+"\n", 0o644)
	write(t, filepath.Join(own, "commondir"), "../..\n", 0o644)
	for dir, want := range map[string]string{"main/sub": "main", "tree/sub": "main", "tree": "main", "liar": "liar", "plain/sub": "plain/sub"} {
		if got, err := claudeProject(filepath.Join(root, dir)); err != nil || got != filepath.Join(root, want) {
			t.Errorf("%s: %s %v, want %s", dir, got, err, want)
		}
	}
}

func TestTargets(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	is := func(want string) func(Target, error) {
		return func(got Target, err error) {
			t.Helper()
			if err != nil || got.File != want {
				t.Errorf("%s %v, want %s", got.File, err, want)
			}
		}
	}
	is(filepath.Join(home, ".claude.json"))(ClaudeCode("user", home))
	is(filepath.Join(home, ".claude.json"))(ClaudeCode("local", home))
	is(filepath.Join(home, "p/.mcp.json"))(ClaudeCode("project", filepath.Join(home, "p")))
	is(filepath.Join(home, ".codex/config.toml"))(Codex())
	own := filepath.Join(home, "own")
	t.Setenv("CLAUDE_CONFIG_DIR", own)
	t.Setenv("CODEX_HOME", own)
	is(filepath.Join(own, ".claude.json"))(ClaudeCode("user", home))
	if _, err := Codex(); err == nil || !strings.Contains(err.Error(), "which is not a directory") {
		t.Errorf("no CODEX_HOME: %v", err)
	}
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	is(filepath.Join(own, "config.toml"))(Codex())
	write(t, filepath.Join(own, ".config.json"), "{}", 0o600)
	is(filepath.Join(own, ".config.json"))(ClaudeCode("user", home))
	if _, err := ClaudeCode("", home); err == nil {
		t.Error("an empty scope is taken")
	}
}
