package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/strict"
)

// serversDir lies beside the configuration. Each NAME.yaml in it is one server, as a
// value of upstreams is, so that one can be added and removed without editing what a
// person wrote.
const serversDir = "upstreams"

// maxServers bounds what is read of the directory.
const maxServers = 1000

// ServerFile is a file of that directory as it is planned to be: a configuration is
// checked with it before it is written.
type ServerFile struct {
	Name string
	Text []byte // nil: it is to be removed
}

// ServerPath is where the file of a server lies, for a configuration at path.
func ServerPath(path, name string) string {
	return filepath.Join(filepath.Dir(path), serversDir, name+".yaml")
}

// servers is where that directory is in the end, for a configuration that may itself be
// reached by a link.
func (c *Config) servers() string {
	dir := filepath.Dir(c.Path)
	for _, p := range []string{filepath.Join(dir, serversDir), dir} {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, strings.TrimPrefix(filepath.Join(dir, serversDir), p))
		}
	}
	return filepath.Join(dir, serversDir)
}

// serverFile is a file as it was read, or is planned.
type serverFile struct {
	text []byte
	mode os.FileMode
}

// readServers reads the servers that have files of their own, and holds them to the
// same rules as those in the configuration. All errors of all files come at once.
func (c *Config) readServers(planned []ServerFile) error {
	files, errs := serverFiles(filepath.Join(filepath.Dir(c.Path), serversDir))
	for _, p := range planned {
		delete(files, p.Name)
		if p.Text != nil {
			files[p.Name] = serverFile{p.Text, 0o600}
		}
	}
	for _, name := range sorted(files) {
		if err := c.readServer(name, files[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) readServer(name string, f serverFile) error {
	d := &strict.File{Name: serversDir + "/" + name + ".yaml", What: "a server's file", Empty: "give a command or a url, or remove the file"}
	if f.mode.Perm()&0o022 != 0 {
		d.Reject("", "others can write to the file (mode %04o); run: chmod go-w %s", f.mode.Perm(), ServerPath(c.Path, name))
	}
	var u Upstream
	if d.Read(f.text, &u) {
		u = c.checkUpstream(d, "", name, u)
	}
	key := strict.Member(serversDir, name)
	if _, twice := c.File.Upstreams[name]; twice {
		d.Reject("", "the server %s is in %s too; keep one", name, c.At(key))
	}
	if err := d.Err(); err != nil {
		return err
	}
	if c.File.Upstreams == nil {
		c.File.Upstreams = map[string]Upstream{}
	}
	c.File.Upstreams[name] = u
	c.placed[key] = d.Name
	for k, line := range d.Lines() {
		c.placed[key+"."+k] = fmt.Sprintf("%s:%d", d.Name, line)
	}
	return nil
}

// serverFiles reads the directory. What lies there and is no server's file is refused:
// a server that is overlooked for its file's name would be missed without a word. Names
// that begin with a dot are editors', and of files that are being written.
func serverFiles(dir string) (map[string]serverFile, []error) {
	files := map[string]serverFile{}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return files, []error{fmt.Errorf("%s is not a directory that can be read; make it one, or remove it", dir)}
	}
	defer root.Close()
	names, err := namesIn(root, dir)
	if err != nil {
		return files, []error{err}
	}
	var errs []error
	for _, file := range names {
		name, ok := strings.CutSuffix(file, ".yaml")
		switch {
		case strings.HasPrefix(file, ".") || file == "README.md":
		case !ok:
			errs = append(errs, fmt.Errorf("%s/%s is not a server's file, which is NAME.yaml; rename or remove it", serversDir, file))
		default:
			f, err := readServerFile(root, file)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s/%s: %w", serversDir, file, err))
				continue
			}
			files[name] = f
		}
	}
	return files, errs
}

// namesIn lists a directory that only its owner changes.
func namesIn(root *os.Root, dir string) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read; check who may read it", dir)
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others can write to %s (mode %04o); run: chmod go-w %s", dir, info.Mode().Perm(), dir)
	}
	names, err := d.Readdirnames(maxServers + 1)
	if len(names) > maxServers {
		return nil, fmt.Errorf("%s holds more than %d files; remove what is not needed", dir, maxServers)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func readServerFile(root *os.Root, file string) (serverFile, error) {
	info, err := root.Stat(file)
	if err != nil {
		return serverFile{}, errors.New("is a symlink that leads outside its directory or nowhere; put the file itself there")
	}
	if !info.Mode().IsRegular() { // a pipe may never end
		return serverFile{}, errors.New("is not a file; remove it")
	}
	f, err := root.Open(file)
	if err != nil {
		return serverFile{}, errors.New("cannot be read; check who may read it")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
	if err == nil && len(text) > strict.MaxBytes {
		err = fmt.Errorf("the file has more than %d bytes; a server's has less", strict.MaxBytes)
	}
	now, statErr := f.Stat()
	if err := cmp.Or(err, statErr); err != nil {
		return serverFile{}, err
	}
	return serverFile{text, now.Mode()}, nil
}
