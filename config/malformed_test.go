package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what came out into testdata/malformed.txt, to be read before it is kept")

// malformed is one configuration that does not hold, and every error it gives.
type malformed struct {
	name string
	text string // as it stands in the table
	want string
}

// TestMalformed loads each configuration of the table. None may load, and each
// says exactly what is written there (I2).
func TestMalformed(t *testing.T) {
	const table = "testdata/malformed.txt"
	raw, err := os.ReadFile(table)
	must(t, err)
	head, cases := readMalformed(t, string(raw))
	if len(cases) < 130 {
		t.Errorf("the table has %d configurations, not 130", len(cases))
	}
	p := newPlace(t)
	seen := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		if seen[c.name] {
			t.Errorf("%s is in the table twice", c.name)
		}
		seen[c.name] = true
		text, mode := c.bytes(t)
		began := time.Now()
		_, err := p.load(t, text, mode)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: took %v", c.name, took)
		}
		if err == nil {
			t.Errorf("%s: loads\n%s", c.name, c.text)
			continue
		}
		got := strings.ReplaceAll(err.Error(), string(p), "$DIR")
		if *update {
			c.want = got
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s%s", c.name, c.text, diff)
		}
	}
	if *update {
		must(t, os.WriteFile(table, writeMalformed(head, cases), 0o644))
	}
}

// bytes expands a case: "<< mode 0666" sets the file's mode, `<< 3 * "x"` appends
// the quoted text three times and `<< "x"` once; any other line is itself.
func (c *malformed) bytes(t *testing.T) (string, os.FileMode) {
	t.Helper()
	var out strings.Builder
	mode := os.FileMode(0o600)
	for line := range strings.Lines(c.text) {
		rest, special := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "<< ")
		if !special {
			out.WriteString(line)
			continue
		}
		if octal, ok := strings.CutPrefix(rest, "mode "); ok {
			m, err := strconv.ParseUint(octal, 8, 32)
			must(t, err)
			mode = os.FileMode(m)
			continue
		}
		count, quoted, many := strings.Cut(rest, " * ")
		n := 1
		if many {
			var err error
			n, err = strconv.Atoi(count)
			must(t, err)
		} else {
			quoted = rest
		}
		s, err := strconv.Unquote(quoted)
		must(t, err)
		out.WriteString(strings.Repeat(s, n))
	}
	return out.String(), mode
}

func readMalformed(t *testing.T, s string) (head string, cases []malformed) {
	t.Helper()
	for line := range strings.Lines(s) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(name, " --\n") {
			cases = append(cases, malformed{name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		if len(cases) == 0 {
			head += line
			continue
		}
		c := &cases[len(cases)-1]
		if want, ok := strings.CutPrefix(line, ">> "); ok {
			c.want += strings.TrimSuffix("\n"+want, "\n")
		} else if c.want == "" {
			c.text += line
		} else if line != "\n" {
			t.Fatalf("%s: text after what is expected: %q", c.name, line)
		}
	}
	for i := range cases {
		cases[i].want = strings.TrimPrefix(cases[i].want, "\n")
	}
	return head, cases
}

func writeMalformed(head string, cases []malformed) []byte {
	var out bytes.Buffer
	out.WriteString(strings.TrimRight(head, "\n") + "\n")
	for _, c := range cases {
		fmt.Fprintf(&out, "\n-- %s --\n%s\n>> %s\n", c.name, strings.TrimRight(c.text, "\n"), strings.ReplaceAll(c.want, "\n", "\n>> "))
	}
	return out.Bytes()
}

// TestNotBuilt: a key of the product that this version lacks is refused by name.
func TestNotBuilt(t *testing.T) {
	p := newPlace(t)
	for key, why := range notBuilt {
		block, leaf, nested := strings.Cut(key, ".")
		text := "version: 1\n" + key + ": {}\n"
		line := 2
		if nested {
			text, line = "version: 1\n"+block+":\n  "+leaf+": {}\n", 3
		}
		_, err := p.load(t, text, 0o600)
		want := fmt.Sprintf("writ.yaml:%d: %s: %s is not built into this version of writ; remove the key", line, key, why)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}
