// Package profile reads an agent's profile: which role it has, which tools it asks
// for and which servers it names. It is a Markdown file with front matter, as agent
// runtimes keep them, or YAML. It reads strictly and gives every entry with its line;
// what roles and entries mean is for whoever builds agents of them, and a profile
// alone grants nothing.
package profile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-run/writ/strict"
)

// Profile is a profile that was read.
type Profile struct {
	Name        string // as written; the base name of the file where nothing is
	Description string
	Role        Entry    // the zero Entry: none was written
	Allowed     *[]Entry // nil: no list was written, which is not the empty list
	Denied      []Entry
	Servers     []Entry // the names of its MCP servers; nothing else of them is used
	Body        string  // the Markdown after the front matter
	File        string  // the path it was read from
}

// Entry is one word of a profile and the line it stands on.
type Entry struct {
	Text string
	Line int
}

type source struct {
	Name        string       `yaml:"name"`
	Description strict.Block `yaml:"description"`
	Role        string       `yaml:"role"`
	Allowed     *[]string    `yaml:"allowedTools"`
	Denied      []string     `yaml:"disallowedTools"`
	Servers     servers      `yaml:"mcpServers"`
}

// servers is a list of names, or a mapping of names to how the agent's runtime starts
// them.
type servers struct {
	list   []string
	byName map[string]server
}

func (s *servers) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.List:
		return &s.list, ""
	case strict.Mapping:
		return &s.byName, ""
	}
	return nil, "a list of names or a mapping of names to servers"
}

// server is checked and not used: writ starts its own.
type server struct {
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Type    string            `yaml:"type"`
	Headers map[string]string `yaml:"headers"`
}

// Load reads one file: NAME.md, NAME.yaml or NAME.yml. All errors of the file come at
// once, one a line.
func Load(path string) (*Profile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	text, mode, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &strict.File{Name: filepath.Base(path), What: "a profile", Empty: "write role, allowedTools or disallowedTools"}
	if mode.Perm()&0o022 != 0 {
		f.Reject("", "others can write to the file (mode %04o); run: chmod go-w %s", mode.Perm(), path)
	}
	return parse(f, text, path)
}

func parse(f *strict.File, text []byte, path string) (*Profile, error) {
	p := &Profile{File: path}
	s := &source{}
	ok := true
	switch ext := filepath.Ext(path); ext {
	case ".yaml", ".yml":
	case ".md":
		text, p.Body, _, ok = f.Split(text)
	default:
		f.Reject("", "is not a profile; name it NAME.md or NAME.yaml")
		ok = false
	}
	if ok && f.Read(text, s) {
		p.fill(f, s)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// read gives at most one byte more than a profile may have.
func read(path string) ([]byte, os.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, errors.New("there is no such file; name a profile that is there")
	}
	if err != nil {
		return nil, 0, errors.New("cannot be read; check who may read it")
	}
	if !info.Mode().IsRegular() { // a pipe or a device may never end
		return nil, 0, errors.New("is not a file; name a profile")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, errors.New("cannot be read; check who may read it")
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(io.LimitReader(file, strict.MaxBytes+1))
	return text, info.Mode(), err
}

func base(path string) string { return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) }
