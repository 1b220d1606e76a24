package define

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Definitions of every kind are found, sorted; readmes and scripts beside them are
// no definitions.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	document{text: `name: b
description: A test.
category: other
runner: {script: {language: bash, file: b.sh}}
<< file b.sh 600
echo b
<< file README.md 600
x
<< file a/TOOL.md 600
---
name: a
description: A test.
category: other
runner: {script: {language: python, file: a.py}}
---
<< sections
<< file a/a.py 600
pass
<< file a/README.md 600
x
<< file c.md 600
---
name: c
description: A test.
category: other
<< run
---
<< sections
<< file d.yml 600
name: d
description: A test.
category: other
<< run
`}.files(t, dir, "b.yaml")
	must(t, os.Symlink("d.yml", filepath.Join(dir, "e.sh")))
	document{text: "name: e\ndescription: A test.\ncategory: other\nrunner: {script: {language: bash, file: e.sh}}\n"}.files(t, dir, "e.yaml")
	found, err := Dir(dir, registry(t))
	must(t, err)
	var got []string
	for _, l := range found {
		rel, err := filepath.Rel(dir, l.File)
		must(t, err)
		got = append(got, l.Definition.Name+" "+rel)
	}
	if diff := cmp.Diff([]string{"a a/TOOL.md", "b b.yaml", "c c.md", "d d.yml", "e e.yaml"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDirWithoutDefinitions(t *testing.T) {
	if found, err := Dir(t.TempDir(), registry(t)); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	missing := filepath.Join(t.TempDir(), "x")
	if _, err := Dir(missing, registry(t)); err == nil || err.Error() != missing+" is not a directory that can be read; make it first: mkdir -p "+missing {
		t.Error(err)
	}
}

func TestDirTooLarge(t *testing.T) {
	dir := t.TempDir()
	for i := range maxEntries + 1 {
		must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	if _, err := Dir(dir, registry(t)); err == nil || err.Error() != dir+": holds more than 1000 files; split it" {
		t.Error(err)
	}
}
