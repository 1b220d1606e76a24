package profile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/strict"
)

var update = flag.Bool("update", false, "write what came out into testdata/malformed.txt, to be read before it is kept")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, name, text string, mode os.FileMode) (*Profile, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	must(t, os.Chmod(path, mode))
	p, err := Load(path)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), filepath.Dir(path), "$DIR"))
	}
	if p.File != path {
		t.Errorf("%s was read from %s", path, p.File)
	}
	p.File = name
	return p, nil
}

func TestLoad(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       Profile
	}{
		{"coder.md", "---\nname: coder.1\ndescription: |\n  Writes\n  code.\nrole: developer\nallowedTools:\n  - fs_*\n  - \"@github\"\ndisallowedTools: [shell_command]\nmcpServers: [github, my-db]\n---\n\n# You\n\n---\nWrite.\n", Profile{
			Name: "coder.1", Description: "Writes\ncode.", Role: Entry{"developer", 6},
			Allowed: &[]Entry{{"fs_*", 8}, {"@github", 9}}, Denied: []Entry{{"shell_command", 10}}, Servers: []Entry{{"github", 11}, {"my-db", 11}},
			Body: "\n# You\n\n---\nWrite.\n", File: "coder.md",
		}},
		{"coder.yaml", "allowedTools: []\nmcpServers:\n  zed: {command: npx, args: [-y, x], env: {PORT: \"80\"}, type: stdio}\n  all: {url: \"https://example.com\", headers: {A: b}}\n  bare: {}\n", Profile{
			Name: "coder", Allowed: &[]Entry{}, Denied: []Entry{}, Servers: []Entry{{"zed", 3}, {"all", 4}, {"bare", 5}}, File: "coder.yaml",
		}},
		{"least.yml", "role: reviewer\n", Profile{Name: "least", Role: Entry{"reviewer", 1}, Denied: []Entry{}, File: "least.yml"}},
		{"dos.md", "---\r\nrole: reviewer\r\n---\r\nx\r\n", Profile{Name: "dos", Role: Entry{"reviewer", 2}, Denied: []Entry{}, Body: "x\r\n", File: "dos.md"}},
	} {
		got, err := load(t, row.name, row.text, 0o644)
		must(t, err)
		if diff := cmp.Diff(&row.want, got); diff != "" {
			t.Errorf("%s\n%s", row.name, diff)
		}
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "x.md"): dir + "/x.md: there is no such file; name a profile that is there",
		dir:                        dir + ": is not a file; name a profile",
	} {
		if _, err := Load(path); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestMalformed loads each profile of the table. None may load, and each says exactly
// what is written there (I2).
func TestMalformed(t *testing.T) {
	const table = "testdata/malformed.txt"
	raw, err := os.ReadFile(table)
	must(t, err)
	head, rest, _ := strings.Cut(string(raw), "\n-- ")
	cases := strings.Split(rest, "\n-- ")
	if len(cases) < 45 {
		t.Errorf("the table has %d profiles, not 45", len(cases))
	}
	out := head
	for _, c := range cases {
		title, body, _ := strings.Cut(c, " --\n")
		text, want, _ := strings.Cut(body, "\n>> ")
		name, bytes, mode := expand(t, strings.TrimRight(text, "\n")+"\n")
		want = strings.ReplaceAll(strings.TrimRight(want, "\n"), "\n>> ", "\n")
		_, err := load(t, name, bytes, mode)
		if err == nil {
			t.Errorf("%s: loads\n%s", title, text)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" && !*update {
			t.Errorf("%s (-want +got)\n%s\n%s", title, text, diff)
		}
		out += fmt.Sprintf("\n-- %s --\n%s\n>> %s\n", title, strings.TrimRight(text, "\n"), strings.ReplaceAll(err.Error(), "\n", "\n>> "))
	}
	if *update {
		must(t, os.WriteFile(table, []byte(out), 0o644))
	}
}

// expand reads the notation of the table.
func expand(t *testing.T, s string) (name, text string, mode os.FileMode) {
	t.Helper()
	name, mode = "p.md", 0o600
	for line := range strings.Lines(s) {
		rest, special := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "<< ")
		as, named := strings.CutPrefix(rest, "as ")
		octal, moded := strings.CutPrefix(rest, "mode ")
		switch {
		case !special:
			text += line
		case named:
			name = as
		case moded:
			m, err := strconv.ParseUint(octal, 8, 32)
			must(t, err)
			mode = os.FileMode(m)
		default:
			count, quoted, many := strings.Cut(rest, " * ")
			if !many {
				count, quoted = "1", rest
			}
			n, err := strconv.Atoi(count)
			must(t, err)
			one, err := strconv.Unquote(quoted)
			must(t, err)
			text += strings.Repeat(one, n)
		}
	}
	return name, text, mode
}

// FuzzProfile: an error that names the file, or the same profile each time.
func FuzzProfile(f *testing.F) {
	f.Add([]byte("---\nrole: developer\nmcpServers: {a: {command: x}}\n---\nx\n"), true)
	f.Add([]byte("allowedTools: [a, \"@b\"]\ndisallowedTools: [c]\nmcpServers: [d]\n"), false)
	f.Fuzz(func(t *testing.T, text []byte, markdown bool) {
		name := "p.yaml"
		if markdown {
			name = "p.md"
		}
		read := func() (*Profile, error) {
			return parse(&strict.File{Name: name, What: "a profile", Empty: "write one"}, text, "/"+name)
		}
		p, err := read()
		if err != nil {
			if !strings.HasPrefix(err.Error(), name) || strings.ContainsAny(err.Error(), "\x00\x1b\x7f") {
				t.Fatalf("error %q", err)
			}
			return
		}
		again, err := read()
		if err != nil || cmp.Diff(p, again) != "" {
			t.Fatalf("the second time: %v", err)
		}
		for _, e := range p.Servers {
			if e.Line < 1 || e.Text == "" || strings.Contains(e.Text, "__") {
				t.Fatalf("server %+v", e)
			}
		}
	})
}
