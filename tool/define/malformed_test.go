package define

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what came out into testdata, to be read before it is kept")

// TestMalformed loads each definition of the table. None may load, and each says
// exactly what is written there (I2).
func TestMalformed(t *testing.T) {
	refused(t, "testdata/malformed.txt", 110, func(_, path string) error {
		_, err := Load(path, registry(t))
		return err
	})
}

// TestMalformedDirectories is the same for directories of definitions.
func TestMalformedDirectories(t *testing.T) {
	refused(t, "testdata/directories.txt", 16, func(dir, _ string) error {
		_, err := Dir(dir, registry(t))
		return err
	})
}

func refused(t *testing.T, file string, least int, load func(dir, path string) error) {
	t.Helper()
	head, cases := table(t, file)
	if len(cases) < least {
		t.Errorf("the table has %d cases, not %d", len(cases), least)
	}
	seen := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		if seen[c.title] {
			t.Errorf("%s is in the table twice", c.title)
		}
		seen[c.title] = true
		dir := t.TempDir()
		err := load(dir, c.files(t, dir, "t.yaml"))
		if err == nil {
			t.Errorf("%s: loads\n%s", c.title, c.text)
			continue
		}
		got := strings.ReplaceAll(err.Error(), dir, "$DIR")
		if *update {
			c.want = got
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s%s", c.title, c.text, diff)
		}
	}
	if *update {
		out := strings.TrimRight(head, "\n") + "\n"
		for _, c := range cases {
			out += fmt.Sprintf("\n-- %s --\n%s>> %s\n", c.title, c.text, strings.ReplaceAll(c.want, "\n", "\n>> "))
		}
		must(t, os.WriteFile(file, []byte(out), 0o644))
	}
}
