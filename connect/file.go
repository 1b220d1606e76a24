package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFile bounds what is read; Claude Code's file grows to a few megabytes.
const maxFile = 64 << 20

// File is a configuration file as it was read.
type File struct {
	Path string // where it really is
	Link string // the link that leads there, or ""
	Data []byte // nil: there is none yet

	info os.FileInfo
}

// Read reads a file, or finds that there is none. A link is followed to a regular file,
// below within unless that is empty: the link stays, and what it leads to is edited.
// Who can write in a project must not choose which file of its owner's is changed.
func Read(path, within string) (*File, error) {
	f := &File{Path: path}
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("%s is a link that leads nowhere; remove it, then run this again", path)
		}
		if within != "" && !below(real, within) {
			return nil, fmt.Errorf("%s is a link to %s, outside the project, which is not edited; replace the link by a file, then run this again", path, real)
		}
		f.Path, f.Link = real, path
	}
	f.Data, f.info, err = readRegular(f.Path)
	return f, err
}

func below(path, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(real, path)
	return err == nil && filepath.IsLocal(rel)
}

func readRegular(path string) ([]byte, os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a file; move it away, then run this again", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d MiB; that is no configuration", path, maxFile>>20)
	}
	if data == nil {
		data = []byte{} // empty is not absent
	}
	return data, info, err
}

// unchanged refuses a file that is not what was read and shown any more.
func (f *File) unchanged() error {
	data, info, err := readRegular(f.Path)
	switch {
	case f.Data == nil && errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && f.Data != nil && bytes.Equal(data, f.Data) && os.SameFile(info, f.info):
		return nil
	case err == nil || errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s changed in the meantime, and was left as it is; run this again", f.Path)
	}
	return err
}

const backupMark = ".writ-backup-"

// Backups are the contents of the file's backups, the newest first. At most ten are
// read; one that cannot be read is none.
func (f *File) Backups() [][]byte {
	names, _ := filepath.Glob(globbed(f.Path) + backupMark + "*")
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	var out [][]byte
	for _, name := range names[:min(len(names), 10)] {
		if data, _, err := readRegular(name); err == nil {
			out = append(out, data)
		}
	}
	return out
}

func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Write makes the file hold after, or removes it where that is nil, and says where the
// backup is; a file that connect made whole leaves none. On an error the file is as it
// was. fresh is the mode of a file that is new.
func (f *File) Write(after []byte, fresh os.FileMode, now time.Time) (backup string, err error) {
	if err := f.unchanged(); err != nil {
		return "", err
	}
	if after == nil {
		return "", os.Remove(f.Path)
	}
	if f.Data == nil {
		if err := os.MkdirAll(filepath.Dir(f.Path), madeMode); err != nil {
			return "", err
		}
		return "", f.replace(after, fresh)
	}
	if f.info.Mode().Perm()&0o200 == 0 {
		return "", fmt.Errorf("%s is read-only, and was left as it is; chmod u+w it, then run this again", f.Path)
	}
	if backup, err = f.backUp(now); err != nil {
		return "", fmt.Errorf("back up %s: %w; it was left as it is", f.Path, err)
	}
	return backup, f.replace(after, f.info.Mode().Perm())
}

// backUp keeps what was read, for its owner alone: such files hold tokens.
func (f *File) backUp(now time.Time) (string, error) {
	base := f.Path + backupMark + now.UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.info.Mode().Perm()&0o600)
		if errors.Is(err, os.ErrExist) && n < 100 {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, f.fill(file, f.Data, f.info.Mode().Perm()&0o600)
	}
}

// replace writes beside the file and renames, so that nobody ever reads half of it.
func (f *File) replace(after []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".writ-connect-*")
	if err != nil {
		return err
	}
	if err := f.fill(file, after, mode); err != nil {
		return err
	}
	if err := f.unchanged(); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), f.Path); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(filepath.Dir(f.Path))
}

// fill writes a new file to the disk, with the owner of the one it stands for, or
// removes it.
func (f *File) fill(file *os.File, data []byte, mode os.FileMode) error {
	_, err := file.Write(data)
	if err == nil && f.info != nil {
		err = sameOwner(file, f.info)
	}
	if err == nil {
		err = file.Chmod(mode) // after the owner, which takes bits away
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
