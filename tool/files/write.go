package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/writ-run/writ"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mkdirs  bool   `json:"create_directories"`
}

func writeFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	var a writeArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if len(a.Content) > writeLimit {
		return result("", nil, failf("the content has %d bytes; at most %d are written", len(a.Content), writeLimit))
	}
	roots := w.Confinement().Write
	if a.Mkdirs {
		if err := makeParents(w, roots); err != nil {
			return result("", nil, err)
		}
	}
	p, err := at(w, "/path", roots)
	if err != nil {
		return result("", nil, withHint(err, a.Mkdirs))
	}
	defer p.close()
	made, err := p.replace([]byte(a.Content))
	if err != nil {
		return result("", nil, cannot("write", p.path, err))
	}
	verb := "replaced"
	if made {
		verb = "created"
	}
	return result(fmt.Sprintf("%s %s (%d bytes)", verb, p.path, len(a.Content)), map[string]any{"bytes": len(a.Content), "created": made}, nil)
}

func withHint(err error, mkdirs bool) error {
	var f failure
	if errors.As(err, &f) && !mkdirs && strings.Contains(f.text, "no such file") {
		return failure{f.text + "; set create_directories to make the directories"}
	}
	return err
}

// replace puts content in the file's place at once: a reader sees the old file or
// the new one, and after a crash one of them is there.
func (p place) replace(content []byte) (made bool, err error) {
	mode := fs.FileMode(0o644)
	like, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made = true
		if like, err = p.dir.Stat("."); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case !like.Mode().IsRegular():
		return false, fmt.Errorf("it is a %s", kind(like))
	default:
		mode = like.Mode().Perm()
	}
	temp := ".writ-" + strings.ToLower(rand.Text()) + ".tmp"
	f, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	_, err = f.Write(content)
	err = errors.Join(err, adopt(f, like), f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = p.dir.Rename(temp, p.name)
	}
	if err != nil {
		return false, errors.Join(err, p.dir.Remove(temp))
	}
	return made, syncDir(p.dir)
}

// syncDir makes the new name durable. Some filesystems cannot, and say so.
func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// makeParents makes the directories above the file, one step at a time from its
// root, going through no symlink.
func makeParents(w writ.Writ, roots []string) error {
	for _, t := range w.Call().Targets {
		if t.Pointer != "/path" {
			continue
		}
		root, err := holding(t.Path, roots)
		if err != nil {
			return err
		}
		dir, err := os.OpenRoot(root)
		if err != nil {
			return cannot("open", t.Value, err)
		}
		parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(t.Path, root), "/"), "/")
		for _, part := range parts[:len(parts)-1] {
			next, err := makeStep(dir, part)
			dir.Close()
			if err != nil {
				return cannot("make the directories of", t.Value, err)
			}
			dir = next
		}
		dir.Close()
	}
	return nil
}

func makeStep(dir *os.Root, name string) (*os.Root, error) {
	if _, err := dir.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		like, err := dir.Stat(".")
		if err != nil {
			return nil, err
		}
		if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := give(dir, name, like); err != nil {
			return nil, err
		}
	}
	return step(dir, name)
}

type edit struct {
	Old string `json:"old_text"`
	New string `json:"new_text"`
	All bool   `json:"replace_all"`
}

type editArgs struct {
	Path  string `json:"path"`
	Edits []edit `json:"edits"`
	edit
}

func editFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	var a editArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	edits := a.Edits
	if a.Old != "" || a.New != "" {
		if len(edits) > 0 {
			return result("", nil, failf("give old_text and new_text, or edits, not both"))
		}
		edits = []edit{a.edit}
	}
	if len(edits) == 0 {
		return result("", nil, failf("there is nothing to edit; give old_text and new_text, or edits"))
	}
	p, err := at(w, "/path", w.Confinement().Write)
	if err != nil {
		return result("", nil, err)
	}
	defer p.close()
	text, err := p.editable()
	if err != nil {
		return result("", nil, cannot("edit", p.path, err))
	}
	count := 0
	for i, e := range edits {
		n := strings.Count(text, e.Old)
		switch {
		case e.Old == "":
			return result("", nil, failf("edit %d: old_text is empty", i+1))
		case e.Old == e.New:
			return result("", nil, failf("edit %d: old_text and new_text are the same", i+1))
		case n == 0:
			return result("", nil, failf("edit %d: old_text is not in %q; nothing was changed", i+1, p.path))
		case n > 1 && !e.All:
			return result("", nil, failf("edit %d: old_text occurs %d times in %q; make it unique or set replace_all; nothing was changed", i+1, n, p.path))
		}
		text = strings.ReplaceAll(text, e.Old, e.New)
		if count += n; len(text) > writeLimit {
			return result("", nil, failf("edit %d would make the file larger than %d bytes; nothing was changed", i+1, writeLimit))
		}
	}
	if _, err := p.replace([]byte(text)); err != nil {
		return result("", nil, cannot("edit", p.path, err))
	}
	return result(fmt.Sprintf("edited %s (%d replacements)", p.path, count), map[string]any{"replacements": count}, nil)
}

func (p place) editable() (string, error) {
	f, info, err := p.regular()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() > writeLimit {
		return "", fmt.Errorf("it has %d bytes; at most %d are edited", info.Size(), writeLimit)
	}
	b, err := io.ReadAll(io.LimitReader(f, writeLimit+1))
	if err != nil {
		return "", err
	}
	return string(b), isText(b)
}

func deleteFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	p, err := at(w, "/path", w.Confinement().Write)
	if err != nil {
		return result("", nil, err)
	}
	defer p.close()
	info, err := p.dir.Lstat(p.name)
	if err != nil {
		return result("", nil, cannot("delete", p.path, err))
	}
	if info.IsDir() {
		return result("", nil, failf("cannot delete %q: it is a directory; only files are deleted", p.path))
	}
	if err := p.dir.Remove(p.name); err != nil {
		return result("", nil, cannot("delete", p.path, err))
	}
	return result("deleted "+p.path, nil, nil)
}

type moveArgs struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Overwrite   bool   `json:"overwrite"`
}

func moveFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	var a moveArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	roots := w.Confinement().Write
	from, err := at(w, "/source", roots)
	if err != nil {
		return result("", nil, err)
	}
	defer from.close()
	to, err := at(w, "/destination", roots)
	if err != nil {
		return result("", nil, err)
	}
	defer to.close()
	info, err := from.dir.Lstat(from.name)
	if err != nil {
		return result("", nil, cannot("move", from.path, err))
	}
	if !info.Mode().IsRegular() && !info.IsDir() || from.name == "." {
		return result("", nil, failf("cannot move %q: only files and directories inside the workspace are moved", from.path))
	}
	if there, err := to.dir.Lstat(to.name); err == nil && (!a.Overwrite || !there.Mode().IsRegular() || info.IsDir()) {
		return result("", nil, failf("%q is there already; set overwrite to replace a file", to.path))
	}
	if err := rename(from, to); err != nil {
		return result("", nil, cannot("move", from.path, err))
	}
	return result(fmt.Sprintf("moved %s to %s", from.path, to.path), nil, nil)
}
