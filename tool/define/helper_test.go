package define

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-run/writ/action"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func registry(t testing.TB) *action.Registry {
	t.Helper()
	types, err := action.NewRegistry(nil)
	must(t, err)
	return types
}

// document is one case of a table: a text under a title, and what is expected of it.
type document struct{ title, text, want string }

// table reads a file of "-- title --" cases with ">> expected" lines.
func table(t testing.TB, file string) (head string, cases []document) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		title, is := strings.CutPrefix(line, "-- ")
		switch want, expected := strings.CutPrefix(line, ">> "); {
		case is && strings.HasSuffix(title, " --\n"):
			cases = append(cases, document{title: strings.TrimSuffix(title, " --\n")})
		case len(cases) == 0:
			head += line
		case expected:
			cases[len(cases)-1].want += want
		case cases[len(cases)-1].want == "":
			cases[len(cases)-1].text += line
		case line != "\n":
			t.Fatalf("%s: text after what is expected: %q", cases[len(cases)-1].title, line)
		}
	}
	for i := range cases {
		cases[i].want = strings.TrimSuffix(cases[i].want, "\n")
		cases[i].text = strings.TrimRight(cases[i].text, "\n") + "\n"
	}
	return head, cases
}

// short are texts that many cases begin or end with.
var short = map[string]string{
	"head":     "name: t\ndescription: A test.\ncategory: other\n",
	"run":      "runner: {process: {argv: [\"true\"]}}\n",
	"sections": "## Capability Description\nx\n## Inputs\nx\n## Outputs\nx\n## Failure Modes\n- x\n",
}

// files writes the files of a case below dir: the text belongs to the first, and
// "<< file NAME MODE" begins another. `<< 3 * "x"` is three times that text.
func (d document) files(t testing.TB, dir, first string) (path string) {
	t.Helper()
	name, mode := first, os.FileMode(0o600)
	var text strings.Builder
	write := func() {
		at := filepath.Join(dir, name)
		if path == "" {
			path = at
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		must(t, os.WriteFile(at, []byte(text.String()), 0o600))
		must(t, os.Chmod(at, mode))
		text.Reset()
	}
	for line := range strings.Lines(d.text) {
		rest, special := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "<< ")
		fields := strings.Fields(rest)
		switch {
		case !special:
			text.WriteString(line)
		case short[rest] != "":
			text.WriteString(short[rest])
		case fields[0] == "as":
			name = fields[1]
		case fields[0] == "mode":
			mode = octal(t, fields[1])
		case fields[0] == "link":
			must(t, os.Symlink(fields[2], filepath.Join(dir, fields[1])))
		case fields[0] == "dir":
			at := filepath.Join(dir, fields[1])
			must(t, os.MkdirAll(at, 0o700))
			if len(fields) > 2 {
				must(t, os.Chmod(at, octal(t, fields[2])))
			}
		case fields[0] == "file":
			write()
			name, mode = fields[1], octal(t, fields[2])
		default:
			text.WriteString(repeated(t, rest))
		}
	}
	write()
	return path
}

func octal(t testing.TB, s string) os.FileMode {
	t.Helper()
	m, err := strconv.ParseUint(s, 8, 32)
	must(t, err)
	return os.FileMode(m)
}

func repeated(t testing.TB, s string) string {
	t.Helper()
	count, quoted, many := strings.Cut(s, " * ")
	n := 1
	if many {
		var err error
		n, err = strconv.Atoi(count)
		must(t, err)
	} else {
		quoted = s
	}
	text, err := strconv.Unquote(quoted)
	must(t, err)
	return strings.Repeat(text, n)
}
