package policy

import (
	"bufio"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// The table is published; it holds for the library too, so that a new version of
// it cannot change what a declaration means unseen.
func TestGlobs(t *testing.T) {
	f, err := os.Open("testdata/globs.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "#") {
			continue
		}
		row := strings.Split(scan.Text(), "\t")
		if len(row) != 3 || row[2] != "yes" && row[2] != "no" {
			t.Fatalf("bad row %q", scan.Text())
		}
		rows++
		want := row[2] == "yes"
		if got := Match(row[0], row[1]); got != want {
			t.Errorf("Match(%q, %q) = %v", row[0], row[1], got)
		}
		if got, err := doublestar.Match(row[0], row[1]); got != want || err != nil {
			t.Errorf("doublestar.Match(%q, %q) = %v, %v", row[0], row[1], got, err)
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows", rows)
	}
}

func TestMalformedGlobMatchesNothing(t *testing.T) {
	for _, g := range []string{"/[", "/[]", "/{a", "/a\\", "/[a-", "/{a,{b}"} {
		for _, p := range []string{"/", "/a", "/[", "/{a"} {
			if Match(g, p) {
				t.Errorf("Match(%q, %q)", g, p)
			}
		}
		if validGlob(g) == nil {
			t.Errorf("%q is valid", g)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, row := range []struct {
		p, dir string
		want   bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b/c", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false},
		{"/a", "/", true}, {"/", "/", true}, {"/a", "", true}, {"/a", "/a/b", false}, {"/a/bc", "/a/b", false}, {"/A", "/a", false},
	} {
		if got := Below(row.p, row.dir); got != row.want {
			t.Errorf("Below(%q, %q) = %v", row.p, row.dir, got)
		}
	}
}

var containment = []struct {
	wide, narrow string
	want         bool
}{
	// The same, and literals.
	{"/a", "/a", true},
	{"/a/[b]", "/a/[b]", true},
	{"/a", "/b", false},
	{"/a", "/a/b", false},
	{"/a/b", "/a", false},
	{"/a", "/A", false},
	// ** above, at and below.
	{"/**", "/a", true},
	{"/**", "/", true},
	{"/**", "/a/**", true},
	{"/**", "/**/x", true},
	{"/**", "/{a,b}/*", true},
	{"/a/**", "/a", true},
	{"/a/**", "/a/b", true},
	{"/a/**", "/a/b/c", true},
	{"/a/**", "/a/*", true},
	{"/a/**", "/a/b/**", true},
	{"/a/**", "/a/**/b", true},
	{"/a/**", "/ab", false},
	{"/a/**", "/ab/**", false},
	{"/a/**", "/**", false},
	{"/a/**", "/b/**", false},
	{"/a/**", "/*", false},
	{"/a/b/**", "/a/**", false},
	{"/a/**/z", "/a/z", true},
	{"/a/**/z", "/a/b/z", true},
	{"/a/**/z", "/a/**/b/z", true},
	{"/a/**/z", "/a/b", false},
	{"/a/**/z", "/a/**", false},
	{"/**/b/**", "/a/b/c", true},
	{"/**/b/**", "/a/b", true},
	{"/**/b/**", "/a/c", false},
	{"/a/**/**/b", "/a/b", true},
	{"/a/**", "/a/**/**", true},
	{"/a", "/a/**", false},
	{"/a/*", "/a/**", false},
	{"/a/*/**", "/a/**", false},
	{"/a/*/**", "/a/*", true},
	{"/a/*/**", "/a/*/b", true},
	{"/a/*/**", "/a/b/**", true},
	// * and ? in an element.
	{"/a/*", "/a/b", true},
	{"/a/*", "/a/b*", true},
	{"/a/*", "/a/?", true},
	{"/a/*", "/a/b/c", false},
	{"/a/*", "/a", false},
	{"/a/*.go", "/a/x.go", true},
	{"/a/*.go", "/a/*_test.go", true},
	{"/a/*.go", "/a/*", false},
	{"/a/*.go", "/a/*.g?", false},
	{"/a/*b*", "/a/xbx", true},
	{"/a/*b*", "/a/*bb*", true},
	{"/a/*b*", "/a/*", false},
	{"/a/?", "/a/b", true},
	{"/a/?", "/a/?", true},
	{"/a/?", "/a/*", false},
	{"/a/?", "/a/bc", false},
	{"/a/??", "/a/?", false},
	{"/a/?*", "/a/b*", true},
	{"/a/?*", "/a/*", false},
	{"/a/b", "/a/?", false},
	{"/a/x**", "/a/x*", true},
	{"/a/x*", "/a/x**", true},
	{"/a/x**", "/a/xy/z", false},
	// Alternatives.
	{"/{a,b}/**", "/a/x", true},
	{"/{a,b}/**", "/{b,a}/x", true},
	{"/{a,b}/**", "/{a,c}/x", false},
	{"/{a,b,c}", "/{a,c}", true},
	{"/{a,{b,c}}", "/c", true},
	{"/a{,b}", "/a", true},
	{"/a{,b}", "/abc", false},
	{"/a{,/**}", "/a/b/c", true},
	{"/a/**", "/a/{b,c/**}", true},
	// True, but not proved: what cannot be shown narrower counts as wider.
	{"/[ab]", "/a", false},
	{"/a/**", "/a/[bc]", false},
	{"/a/**", `/a/\*`, false},
	{"/a/?", "/a/é", false},
	{"/{a,b}/{c,d}/{a,b}/{c,d}/{a,b}/{c,d}/{a,b}/{c,d}/{a,b}", "/a/c/a/c/a/c/a/c/a", false},
	{"/a/{**,b}", "/a/b", false},
	{"/a/**/**", "/a/b", false},
	// False, and a reading of the pattern by its elements alone would say true:
	// the library does not match the path after the arrow.
	{"/a/**/**", "/a/**", false},           // /a
	{"/a/**/**", "/a", false},              // /a
	{"/a*/**", "/a", false},                // /a
	{"/a*/**", "/a/**", false},             // /a
	{"/a*/**", "/a*", false},               // /a
	{"/a*/**", "/ab", true},                // the control: one character more
	{"/a*/**", "/ab/**", true},             //
	{"/a*/**", "/a/b/**", true},            //
	{"/a***", "/a", false},                 // /a
	{"/a*{,b}", "/a", false},               // /a
	{"/a/{**,b}", "/a", false},             // /a
	{"/a/{**,b}", "/a/**", false},          // /a
	{"/a/**{,x}", "/a/b/c", false},         // /a/b/c
	{"/a/{*,x}{*,y}", "/a/b/c", false},     // /a/b/c
	{"/*/**", "/*", false},                 // /
	{"/**/*", "/*", false},                 // /
	{"/*\xa9", "/\u00e9", false},           // /é
	{"/a}", "/a}", true},                   // the same, so no proof is needed
	{"/a}*", "/a}b", false},                // not proved
	{"/{a", "/{a", true},                   // matches nothing
	{"/{a,b", "/a", false},                 //
	{"/a/**", "/a/{b", false},              //
	{"/**/a/**/b/**", "/**/b/**/a", false}, // /b/a
	{"/a/**/*", "/a{/**/,/x}", false},      // /a
	{"/a/{,b}**", "/a", false},             // /a
	{"/a/{{**,b},c}", "/a", false},         // /a
}

func TestContains(t *testing.T) {
	for _, row := range containment {
		if got := Contains(row.wide, row.narrow); got != row.want {
			t.Errorf("Contains(%q, %q) = %v", row.wide, row.narrow, got)
		}
	}
}

// Patterns that made a matcher with two choices at each star take years.
func TestContainsIsBounded(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for _, row := range [][2]string{
		{"/" + many("*a", 200) + "b", "/" + many("a", 1000)},
		{many("/**/a", 60) + "/b", many("/a", 400)},
		{"/" + many("{", 3000) + "a" + many("}", 3000), "/a"},
		{"/" + many("{a,b}", 400), "/a"},
	} {
		if Contains(row[0], row[1]) {
			t.Errorf("Contains(%.20q…, %.20q…)", row[0], row[1])
		}
	}
}

// A glob whose alternatives multiply costs the matcher all of their product, for
// each path: 2^30 steps for sixty characters. Such a glob is refused.
func TestGlobCost(t *testing.T) {
	for glob, ok := range map[string]bool{
		"/x.{ts,tsx,js,jsx,mjs,cjs,vue,css,html,json,md,go,py,rs,c,h}": true,
		"/{a,b}/{c,d}/{e,f}":                                     true,
		"/" + strings.Repeat("{a,a}", 30):                        false,
		"/" + strings.Repeat("{a,a}", 30) + ",":                  false,
		"/{a,b},{a,b},{a,b},{a,b},{a,b},{a,b},{a,b},{a,b},{a,b}": false,
		"/" + strings.Repeat("{[}],a}", 30):                      false,
		"/" + strings.Repeat("{[,{]}", 30):                       true,
		"/" + strings.Repeat(`{\},a}`, 30):                       false,
		"/" + strings.Repeat("{a,{a,a}}", 20):                    false,
		"/" + strings.Repeat("{a}", 30):                          true,
		"/" + strings.Repeat("a", 5000):                          false,
		"/a\xff":                                                 false,
	} {
		if err := validGlob(glob); (err == nil) != ok {
			t.Errorf("%.40q: %v", glob, err)
		}
	}
}

// What fuzzing of FuzzContains is about, for every pair of small patterns over a
// small alphabet and every small path: no proof is wrong.
func TestContainsIsSound(t *testing.T) {
	elements := []string{"a", "*", "**", "?", "a*", "*a", "a**", "{a,b}", "{**,a}", "{a,}*", "*{,a}", "***"}
	var globs, paths []string
	for _, x := range elements {
		globs = append(globs, "/"+x)
		for _, y := range elements {
			globs = append(globs, "/"+x+"/"+y, "/a/"+x+"/"+y)
		}
	}
	names := []string{"a", "b", "aa", "ab", "ba"}
	paths = append(paths, "/")
	for level := []string{""}; len(paths) < 150; {
		var next []string
		for _, p := range level {
			for _, n := range names {
				next = append(next, p+"/"+n)
			}
		}
		paths, level = append(paths, next...), next
	}
	proofs := 0
	for _, w := range globs {
		for _, n := range globs {
			if !Contains(w, n) {
				continue
			}
			proofs++
			for _, p := range paths {
				if Match(n, p) && !Match(w, p) {
					t.Fatalf("Contains(%q, %q), but only the second matches %q", w, n, p)
				}
			}
		}
	}
	if proofs < 2*len(globs) {
		t.Errorf("only %d proofs for %d globs", proofs, len(globs))
	}
}

// spell makes a path that a glob was probably meant to match; seed chooses.
func spell(glob string, seed []byte) string {
	next := func() int {
		if len(seed) == 0 {
			return 0
		}
		b := seed[0]
		seed = seed[1:]
		return int(b)
	}
	for i := 0; strings.Contains(glob, "{") && i < 20; i++ {
		open := strings.LastIndexByte(glob, '{')
		parts, after, ok := group(glob[open:])
		if !ok {
			break
		}
		glob = glob[:open] + parts[next()%len(parts)] + after
	}
	fill := []string{"", "a", "b", "ab", "é", "/a", "/b/a"}
	var b strings.Builder
	for i, e := range strings.Split(glob, "/") {
		if e == "**" {
			b.WriteString(fill[[]int{0, 5, 6}[next()%3]])
			continue
		}
		if i > 0 {
			b.WriteByte('/')
		}
		for _, r := range e {
			switch r {
			case '*':
				b.WriteString(fill[next()%5])
			case '?':
				b.WriteString(fill[1+next()%2])
			default:
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

func FuzzContains(f *testing.F) {
	for _, row := range containment {
		f.Add(row.wide, row.narrow, "/a/b", []byte{1, 2, 3, 4})
	}
	f.Fuzz(func(t *testing.T, wide, narrow, p string, seed []byte) {
		if len(wide)+len(narrow)+len(p) > 400 || !Contains(wide, narrow) {
			return
		}
		for i := range len(seed) + 1 {
			for _, p := range []string{p, "/", spell(narrow, seed[i:])} {
				if path.Clean(p) == p && strings.HasPrefix(p, "/") && Match(narrow, p) && !Match(wide, p) {
					t.Fatalf("Contains(%q, %q), but only the second matches %q", wide, narrow, p)
				}
			}
		}
	})
}
