package seatbelt

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ"
)

var update = flag.Bool("update", false, "write the golden files")

const private = "/private/var/folders/zz/T/writ-box-1"

func TestProfile(t *testing.T) {
	for name, p := range map[string]Plan{
		"nothing": {Private: private, Listed: true},
		"any":     {Read: []string{"/Users/a/lib"}, Write: []string{"/Users/a/ws"}, Hide: []string{"/Users/a/.writ", "/Users/a/lib/secret"}, Private: private},
		"listed":  {Write: []string{"/Users/a/ws"}, Programs: []string{"/bin/cat", "/opt/tools"}, Listed: true, Private: private},
		"protected": {
			Write: []string{"/Users/a/ws"}, Private: private, Config: []string{".claude", ".mcp.json"}, Git: []string{"hooks", "config"},
		},
		"named": {
			Write: []string{"/Users/a/ws", "/Users/a/ws/.claude", "/Users/a/ws/.git/hooks"}, Hide: []string{"/Users/a/ws/keep/safe/secret"}, Private: private,
			Config: []string{".claude"}, Git: []string{"hooks"},
		},
		"hostile": {
			Read:  []string{`/Users/a/quote"(allow default)`, `/Users/a/back\slash`, "/Users/a/ü ;comment"},
			Write: []string{`/Users/a/dots.and(parens)*"`}, Config: []string{".x"}, Private: private,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Profile(p)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			balanced(t, got)
		})
	}
}

// balanced reads the profile as a reader of the language would, and wants no rule that is
// about everything but the first and the last.
func balanced(t *testing.T, profile string) {
	t.Helper()
	depth, rules, inside := 0, 0, false
	for i := 0; i < len(profile); i++ {
		switch c := profile[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == ';':
			t.Errorf("a comment at %d", i)
		case c == '(':
			if depth == 0 {
				rules++
			}
			depth++
		case c == ')':
			depth--
		}
	}
	if depth != 0 || inside {
		t.Errorf("depth %d, in a string: %v", depth, inside)
	}
	if n := strings.Count(profile, "\n("); rules != n+1 {
		t.Errorf("%d rules, %d of them begin a line", rules, n+1)
	}
	if strings.Contains(profile, "\n(allow default") {
		t.Error("it allows everything")
	}
}

func TestRefusedPaths(t *testing.T) {
	for _, bad := range []string{"", "relative", "/a/../b", "/a//b", "/a/", "/a\nb", "/a\x00b", "/a\x7fb", "/\xff"} {
		for place, p := range map[string]Plan{
			"read": {Read: []string{bad}, Private: private}, "write": {Write: []string{bad}, Private: private}, "hide": {Hide: []string{bad}, Private: private},
			"program": {Programs: []string{bad}, Private: private}, "private": {Private: bad},
		} {
			if got, err := Profile(p); writ.KindOf(err) != writ.SandboxUnavailable || got != "" {
				t.Errorf("%s %q: %v\n%s", place, bad, err, got)
			}
		}
	}
	if _, err := Profile(Plan{Private: private, Read: []string{"/"}}); err != nil {
		t.Errorf("inconclusive: %v", err)
	}
}

// What is out of reach comes after all that is allowed: the last rule decides.
func TestDeniedLast(t *testing.T) {
	got, err := Profile(Plan{Read: []string{"/"}, Write: []string{"/Users"}, Hide: []string{"/Users/a/.writ"}, Private: private, Config: []string{".envrc"}})
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.LastIndex(got, "\n(allow ")
	for _, deny := range []string{"(deny file-write*\n", "(deny file* process-exec*\n  (subpath \"/Users/a/.writ\")", "(deny network*)"} {
		if at := strings.Index(got, deny); at < allowed {
			t.Errorf("%q at %d, before the last that allows at %d", deny, at, allowed)
		}
	}
}
