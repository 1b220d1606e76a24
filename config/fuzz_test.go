package config

import (
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzLoad: whatever the bytes, there is an error that names the file, or a
// configuration with values in force and the same digest each time. Never a panic,
// never a wait.
func FuzzLoad(f *testing.F) {
	p := newPlace(f)
	table, err := os.ReadFile("testdata/malformed.txt")
	must(f, err)
	for c := range strings.SplitSeq(string(table), "\n-- ") {
		if len(c) < 4096 {
			text, _, _ := strings.Cut(c, "\n>>")
			_, text, _ = strings.Cut(text, "\n")
			f.Add([]byte(text))
		}
	}
	f.Add([]byte(strings.ReplaceAll(full, "$DIR", string(p))))
	f.Add([]byte(starter))
	tools := toolNames(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		c, err := parse(p.config(), text, named(tools...), 0o600)
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "writ.yaml") || strings.ContainsAny(err.Error(), "\x00\x1b\x7f") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if len(c.Effective()) == 0 || c.Digest.IsZero() {
			t.Fatal("nothing is in force")
		}
		again, err := parse(p.config(), text, named(tools...), 0o600)
		if err != nil || again.Digest != c.Digest {
			t.Fatalf("the second time: %v", err)
		}
	})
}
