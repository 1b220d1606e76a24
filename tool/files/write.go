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
	"github.com/writ-run/writ/policy"
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
	defer inTurn(w)()
	if err := obeyed(w, "/path", roots, false); err != nil {
		return result("", nil, err)
	}
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
	made, err := p.replace([]byte(a.Content), unlessObeyed(w, roots))
	if err != nil {
		return result("", nil, cannot("write", p.path, err))
	}
	verb := "replaced"
	if made {
		verb = "created"
	}
	return result(fmt.Sprintf("%s %s (%d bytes)", verb, shown(p.path), len(a.Content)), map[string]any{"bytes": len(a.Content), "created": made}, nil)
}

func withHint(err error, mkdirs bool) error {
	var f failure
	if errors.As(err, &f) && !mkdirs && strings.Contains(f.text, "no such file") {
		return failure{f.text + "; set create_directories to make the directories"}
	}
	return err
}

// unlessObeyed is asked directly before and after a change of what could be a part of a
// repository, since a box may make one of its directory meanwhile; nil of anything else.
func unlessObeyed(w writ.Writ, roots []string) func() error {
	if !namesGit(w) {
		return nil
	}
	return func() error { return obeyed(w, "/path", roots, false) }
}

// replace puts content in the file's place at once: a reader sees the old file or
// the new one, and after a crash one of them is there. unless says why it may not be.
func (p place) replace(content []byte, unless func() error) (made bool, err error) {
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
		err = p.exchange(temp, made, unless)
	}
	if err != nil {
		return false, errors.Join(err, p.dir.RemoveAll(temp)) // which it is not any more, where that was undone
	}
	return made, syncDir(p.dir)
}

// exchange gives the file its new content, and its old one again where it may not have that.
func (p place) exchange(temp string, made bool, unless func() error) error {
	if unless == nil {
		return p.dir.Rename(temp, p.name)
	}
	if err := unless(); err != nil {
		return err
	}
	was := temp + ".was"
	if !made {
		if err := p.dir.Link(p.name, was); err != nil {
			return p.dir.Rename(temp, p.name) // a filesystem where a file has one name
		}
		defer p.dir.Remove(was)
	}
	if err := p.dir.Rename(temp, p.name); err != nil {
		return err
	}
	err := unless()
	switch {
	case err == nil:
		return nil
	case made:
		return errors.Join(err, p.dir.Remove(p.name))
	}
	return errors.Join(err, p.dir.Rename(was, p.name))
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
	t, root, err := reach(w, "/path", roots)
	if err != nil {
		return err
	}
	dir, err := openRoot(root)
	if err != nil {
		return cannot("open", t.Value, err)
	}
	parts := between(root, t.Path)
	for _, part := range parts[:len(parts)-1] {
		next, err := makeStep(dir, part)
		dir.Close()
		if err != nil {
			return cannot("make the directories of", t.Value, err)
		}
		dir = next
	}
	return dir.Close()
}

func makeStep(dir *os.Root, name string) (*os.Root, error) {
	like, err := dir.Stat(".")
	if err != nil {
		return nil, err
	}
	err = dir.Mkdir(name, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	made := err == nil
	next, err := step(dir, name)
	if err != nil || !made {
		return next, err
	}
	if err := give(next, like); err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
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
	edits, err := a.all()
	if err != nil {
		return result("", nil, err)
	}
	roots := w.Confinement().Write
	if err := obeyed(w, "/path", roots, false); err != nil {
		return result("", nil, err)
	}
	p, err := at(w, "/path", roots)
	if err != nil {
		return result("", nil, err)
	}
	defer p.close()
	text, was, err := p.editable()
	if err != nil {
		return result("", nil, cannot("edit", p.path, err))
	}
	count := 0
	for i, e := range edits {
		n, why := e.check(text, p.path)
		if why != "" {
			return result("", nil, failf("edit %d%s; nothing was changed", i+1, why))
		}
		text = strings.ReplaceAll(text, e.Old, e.New)
		count += n
	}
	defer inTurn(w)() // not before: many edits of a large file take seconds
	if now, err := p.dir.Lstat(p.name); err != nil || !os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		return result("", nil, failf("%q was changed by somebody else meanwhile; nothing was changed, read it again", p.path))
	}
	if _, err := p.replace([]byte(text), unlessObeyed(w, roots)); err != nil {
		return result("", nil, cannot("edit", p.path, err))
	}
	return result(fmt.Sprintf("edited %s (%d replacements)", shown(p.path), count), map[string]any{"replacements": count}, nil)
}

// all is the one edit, or the several.
func (a editArgs) all() ([]edit, error) {
	one := a.Old != "" || a.New != ""
	switch {
	case one && len(a.Edits) > 0:
		return nil, failf("give old_text and new_text, or edits, not both")
	case a.All && len(a.Edits) > 0:
		return nil, failf("give replace_all inside each of edits, not beside them")
	case one:
		return []edit{a.edit}, nil
	case len(a.Edits) == 0:
		return nil, failf("there is nothing to edit; give old_text and new_text, or edits")
	}
	return a.Edits, nil
}

// check counts what an edit will replace, or says why it cannot be made. The size
// is worked out before the text is: a short file can ask for terabytes.
func (e edit) check(text, path string) (n int, why string) {
	n = strings.Count(text, e.Old)
	if n == 1 && strings.Index(text, e.Old) != strings.LastIndex(text, e.Old) {
		n = 2 // they overlap: which one was meant?
	}
	switch {
	case e.Old == "":
		return 0, ": old_text is empty"
	case e.Old == e.New:
		return 0, ": old_text and new_text are the same"
	case n == 0:
		return 0, fmt.Sprintf(": old_text is not in %q", path)
	case n > 1 && !e.All:
		return 0, fmt.Sprintf(": old_text occurs %d times in %q; make it unique or set replace_all", n, path)
	case len(text)+n*(len(e.New)-len(e.Old)) > writeLimit:
		return 0, fmt.Sprintf(" would make the file larger than %d bytes", writeLimit)
	}
	return strings.Count(text, e.Old), ""
}

func (p place) editable() (text string, was fs.FileInfo, err error) {
	f, info, err := p.regular()
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if info.Size() > writeLimit {
		return "", nil, fmt.Errorf("it has %d bytes; at most %d are edited", info.Size(), writeLimit)
	}
	b, err := io.ReadAll(io.LimitReader(f, writeLimit+1))
	if err != nil {
		return "", nil, err
	}
	return string(b), info, isText(b)
}

func deleteFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	defer inTurn(w)()
	if err := held(w, "/path", w.Confinement().Write); err != nil {
		return result("", nil, err)
	}
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
	return result("deleted "+shown(p.path), nil, nil)
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
	turns.Lock() // whatever it is called: what is in it goes along
	defer turns.Unlock()
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
	if holdsHidden(w, from.full) || holdsHidden(w, to.full) {
		return writ.Result{}, writ.Fail(writ.Denied, fmt.Sprintf("%q holds what this call may not reach", from.path), nil)
	}
	info, err := from.dir.Lstat(from.name)
	if err != nil {
		return result("", nil, cannot("move", from.path, err))
	}
	if !info.Mode().IsRegular() && !info.IsDir() || from.name == "." {
		return result("", nil, failf("cannot move %q: only files and directories inside the workspace are moved", from.path))
	}
	if from.full != to.full && policy.Below(to.full, from.full) {
		return result("", nil, failf("cannot move %q into itself", from.path))
	}
	if there, err := to.dir.Lstat(to.name); err == nil {
		if err := replaceable(info, there, to.path, a.Overwrite); err != nil {
			return result("", nil, err)
		}
	}
	if err := held(w, "/source", roots); err != nil {
		return result("", nil, err)
	}
	if err := obeyed(w, "/destination", roots, info.IsDir()); err != nil {
		return result("", nil, err)
	}
	if info.IsDir() {
		if err := from.carries(); err != nil {
			return result("", nil, err)
		}
	}
	if err := rename(from, to, a.Overwrite && info.Mode().IsRegular()); err != nil {
		return result("", nil, cannot("move", from.path, err))
	}
	if info.IsDir() { // a box may have put something in since
		if err := to.carries(); err != nil {
			return result("", nil, errors.Join(err, rename(to, from, false)))
		}
	}
	return result(fmt.Sprintf("moved %s to %s", shown(from.path), shown(to.path)), nil, nil)
}

// replaceable says why what stands at the destination is not replaced, if so.
func replaceable(from, there fs.FileInfo, path string, overwrite bool) error {
	switch {
	case there.IsDir():
		return failf("%q is there already and is a directory; give the whole new path", path)
	case from.IsDir():
		return failf("%q is there already; a directory replaces nothing", path)
	case !there.Mode().IsRegular():
		return failf("%q is there already and is a %s; only a file is replaced", path, kind(there))
	case !overwrite:
		return failf("%q is there already; set overwrite to replace a file", path)
	}
	return nil
}
