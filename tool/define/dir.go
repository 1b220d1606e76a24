package define

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/action"
)

// maxEntries bounds what is read of one directory.
const maxEntries = 1000

// Dir reads every definition of a directory, in the order of their files: *.yaml,
// *.yml and *.md in it, and TOOL.md in the directories in it. What is there besides
// has to be a script that some definition names, or a README.md: a definition that is
// overlooked for its file's name would be missed without a word. All errors of all
// files come at once.
func Dir(dir string, types *action.Registry) ([]*Loaded, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is not a directory that can be read; make it first: mkdir -p %s", dir, dir)
	}
	defer root.Close()
	found, errs := (&place{root: root, path: dir, types: types}).all(true)
	errs = append(errs, twice(found)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return found, nil
}

// all reads the definitions of the directory, at the top also those one level down.
func (p *place) all(top bool) (found []*Loaded, errs []error) {
	fail := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", filepath.Join(p.path, name), fmt.Sprintf(format, args...)))
	}
	entries, mode, err := p.entries()
	if err != nil {
		fail("", "%v", err)
		return nil, errs
	}
	if mode.Perm()&0o022 != 0 {
		fail("", "others can write to the directory (mode %04o); run: chmod go-w %s", mode.Perm(), p.path)
	}
	var rest []string
	for _, name := range entries {
		info, err := p.root.Stat(name)
		switch {
		case err != nil:
			fail(name, "is a symlink that leads outside its directory or nowhere; put the file itself there")
		case info.IsDir() && top:
			below, failed := p.below(name)
			found, errs = append(found, below...), append(errs, failed...)
		case name == "README.md":
		case top && name != toolFile && slices.Contains([]string{".yaml", ".yml", ".md"}, filepath.Ext(name)), !top && name == toolFile:
			l, err := p.load(name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			found = append(found, l)
		default:
			rest = append(rest, name)
		}
	}
	if len(errs) > 0 {
		return found, errs // a definition that does not hold may be the one that names them
	}
	for _, name := range rest {
		if !slices.ContainsFunc(found, func(l *Loaded) bool { return filepath.Dir(l.File) == p.path && l.script == name }) {
			fail(name, "is neither a definition nor a script that one names; remove it")
		}
	}
	return found, errs
}

func (p *place) entries() ([]string, fs.FileMode, error) {
	dir, err := p.root.Open(".")
	if err != nil {
		return nil, 0, errors.New("cannot be read; check who may read it")
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return nil, 0, err
	}
	names, err := dir.Readdirnames(maxEntries + 1)
	if len(names) > maxEntries {
		return nil, 0, fmt.Errorf("holds more than %d files; split it", maxEntries)
	}
	if len(names) == 0 {
		err = nil // the end of the directory
	}
	slices.Sort(names)
	return names, info.Mode(), err
}

// below reads the definition of a directory in the directory.
func (p *place) below(name string) ([]*Loaded, []error) {
	path := filepath.Join(p.path, name)
	root, err := p.root.OpenRoot(name)
	if err != nil {
		return nil, []error{fmt.Errorf("%s: cannot be read; check who may read it", path)}
	}
	defer root.Close()
	if _, err := root.Lstat(toolFile); err != nil {
		return nil, []error{fmt.Errorf("%s: holds no %s; add one or remove the directory", path, toolFile)}
	}
	return (&place{root: root, path: path, types: p.types}).all(false)
}

// twice finds definitions whose names differ at most by case.
func twice(found []*Loaded) []error {
	var errs []error
	first := map[string]string{}
	for _, l := range found {
		key := strings.ToLower(l.Definition.Name)
		if other, taken := first[key]; taken {
			errs = append(errs, fmt.Errorf("%s: the tool %s is defined in %s too; keep one", l.File, l.Definition.Name, other))
			continue
		}
		first[key] = l.File
	}
	return errs
}
