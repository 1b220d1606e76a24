package define

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/strict"
)

// FuzzDefinition: whatever the bytes, there is an error that names the file, or a
// definition with the same digest each time, whose command lines hold nothing but
// its literals and what the arguments say.
func FuzzDefinition(f *testing.F) {
	for _, file := range []string{"testdata/good.txt", "testdata/malformed.txt"} {
		_, cases := table(f, file)
		for _, c := range cases {
			name := strings.TrimSuffix(c.title, filepath.Ext(c.title))
			text := strings.Replace(c.text, "name: "+name+"\n", "name: t\n", 1)
			for word, stands := range short {
				text = strings.ReplaceAll(text, "<< "+word+"\n", stands)
			}
			if !strings.Contains(text, "<< ") {
				f.Add([]byte(text), strings.HasPrefix(text, "---\n"), `{"text":"x","paths":["a","$(b)"],"count":3,"quiet":true,"tags":["b"]}`)
			}
		}
	}
	head := short["head"]
	f.Add([]byte(head+short["run"]), false, `{}`)
	f.Add([]byte("---\n"+head+short["run"]+"---\n"+short["sections"]), true, `{}`)
	types := registry(f)
	dir := f.TempDir() // without scripts
	root, err := os.OpenRoot(dir)
	must(f, err)
	f.Fuzz(func(t *testing.T, text []byte, markdown bool, args string) {
		path := filepath.Join(dir, "t.yaml")
		if markdown {
			path = filepath.Join(dir, "t.md")
		}
		load := func() (*Loaded, error) {
			file := &strict.File{Name: filepath.Base(path), What: "a definition", Empty: "write one", NotBuilt: notBuilt}
			return (&place{root: root, path: dir, types: types}).parse(file, text, "t", path)
		}
		l, err := load()
		if err != nil {
			if !strings.HasPrefix(err.Error(), filepath.Base(path)) || strings.ContainsAny(err.Error(), "\x00\x1b\x7f") {
				t.Fatalf("error %q", err)
			}
			return
		}
		x, err := l.Tool(nil)
		if err != nil {
			t.Fatalf("loads and is no tool: %v", err)
		}
		again, err := load()
		if err != nil || ready(t, again).Digest != x.Digest {
			t.Fatalf("the second time: %v", err)
		}
		canonical, value, err := x.Args([]byte(args))
		if err != nil {
			return
		}
		c := writ.Call{Args: canonical}
		for _, found := range x.Shape.Candidates(value) {
			c.Targets = append(c.Targets, writ.Target{Pointer: found.Pointer, Value: found.Value, Kind: found.Kind, Side: found.Side, Path: found.Value})
		}
		spec, err := l.plan.spec(c)
		if err != nil {
			return
		}
		known := elements(l.plan, value)
		for _, e := range spec.Argv {
			if !slices.Contains(known, e) {
				t.Fatalf("%q is neither a literal nor an argument\n%s\n%s", e, text, args)
			}
		}
	})
}

// elements is everything that may stand in a command line.
func elements(p *plan, args map[string]any) []string {
	var out []string
	for _, piece := range p.argv {
		out = append(out, piece.literal, piece.flag)
		values, list := args[piece.arg].([]any)
		if !list {
			values = []any{args[piece.arg]}
		}
		for _, v := range values {
			text, _ := v.(string)
			if n, ok := v.(float64); ok {
				text = strconv.FormatFloat(n, 'f', -1, 64)
			}
			out = append(out, text, piece.flag+text)
		}
	}
	return out
}
