// Package define reads tool definitions that people write, as YAML or as TOOL.md
// files, each into a definition and the runner that its calls go to: a command line
// made of typed elements, or a script. Both run in a box, always. No value is ever
// put into a string that something parses again: an argument is one element of the
// command line, a part of the JSON on the standard input, or nothing.
//
// It reads what it is given and decides nothing about calls.
package define

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/exec"
)

const toolFile = "TOOL.md"

// Loaded is a definition that holds.
type Loaded struct {
	Definition tool.Definition
	File       string // the path it was read from
	script     string // the file beside it that is a part of it
	plan       *plan
}

// Tool readies the definition for calls that run in these boxes.
func (l *Loaded) Tool(boxes exec.Starter) (*tool.Tool, error) {
	return tool.New(l.Definition, l.plan.run(boxes))
}

// Load reads one file: NAME.yaml, NAME.yml, NAME.md or NAME/TOOL.md. All errors of
// the file come at once, one a line.
func Load(path string, types *action.Registry) (*Loaded, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("there is no definition at %s; name a file that is there", path)
	}
	defer root.Close()
	return (&place{root: root, path: filepath.Dir(path), types: types}).load(filepath.Base(path))
}

// place is the directory that definitions are read from. Nothing outside it is.
type place struct {
	root  *os.Root
	path  string
	types *action.Registry
}

func (p *place) load(base string) (*Loaded, error) {
	path := filepath.Join(p.path, base)
	shown, name := base, strings.TrimSuffix(base, filepath.Ext(base))
	if base == toolFile {
		name = filepath.Base(p.path)
		shown = name + "/" + toolFile
	}
	f := &strict.File{Name: shown, What: "a definition", Empty: "write name, description, category and runner", NotBuilt: notBuilt}
	text, mode, err := p.read(base, strict.MaxBytes)
	if err != nil {
		f.Reject("", "%v", err)
		return nil, f.Err()
	}
	if why := writable(mode, path); why != "" {
		f.Reject("", "%s", why)
	}
	return p.parse(f, text, name, path)
}

// parse reads the text of a definition, which is YAML or Markdown by its file's name.
func (p *place) parse(f *strict.File, text []byte, name, path string) (*Loaded, error) {
	l := &Loaded{File: path}
	b := &builder{File: f, source: &source{}, types: p.types, beside: func(script string) (string, error) {
		l.script = script
		return p.script(script)
	}}
	var sections func(*tool.Definition)
	switch ext := filepath.Ext(path); ext {
	case ".yaml", ".yml":
		if f.Read(text, b.source) {
			l.Definition, l.plan = b.build(name)
			if b.Permission != nil {
				f.Reject("permission_level", "belongs in a %s; write egress_class", toolFile)
			}
		}
	case ".md":
		front, body, line, ok := f.Split(text)
		if ok && f.Read(front, b.source) {
			l.Definition, l.plan = b.build(name)
			if b.Failures != nil {
				f.Reject("failure_modes", "is the section Failure Modes of this file; remove the key")
			}
		}
		if ok {
			sections = b.sections(body, line)
		}
	default:
		f.Reject("", "is not a definition; name it NAME.yaml or NAME/%s", toolFile)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if sections != nil {
		sections(&l.Definition)
	}
	l.plan.tool = l.Definition.Name
	return l, nil
}

// read gives a file's text, at most one byte more than max, and its mode. A symlink
// is followed inside the directory only.
func (p *place) read(base string, max int64) ([]byte, fs.FileMode, error) {
	info, err := p.root.Stat(base)
	link, lerr := p.root.Lstat(base)
	switch {
	case lerr != nil:
		return nil, 0, errors.New("there is no such file; name one that is there")
	case err != nil && link.Mode()&fs.ModeSymlink != 0:
		return nil, 0, errors.New("is a symlink that leads outside its directory or nowhere; put the file itself there")
	case err != nil:
		return nil, 0, errors.New("cannot be read; check who may read it")
	case !info.Mode().IsRegular(): // a pipe or a device may never end
		return nil, 0, errors.New("is not a file; put a file there")
	}
	file, err := p.root.Open(base)
	if err != nil {
		return nil, 0, errors.New("cannot be read; check who may read it")
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(io.LimitReader(file, max+1))
	return text, info.Mode(), err
}

// script gives the text of a script beside the definition.
func (p *place) script(base string) (string, error) {
	text, mode, err := p.read(base, maxScript)
	if err != nil {
		return "", fmt.Errorf("%s: %w", base, err)
	}
	if why := writable(mode, filepath.Join(p.path, base)); why != "" {
		return "", fmt.Errorf("%s: %s", base, why)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("%s: is empty; write the script", base)
	}
	return string(text), nil
}

// writable says what is wrong with a file that others can change.
func writable(mode fs.FileMode, path string) string {
	if mode.Perm()&0o022 == 0 {
		return ""
	}
	return fmt.Sprintf("others can write to the file (mode %04o); run: chmod go-w %s", mode.Perm(), path)
}
