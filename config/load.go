package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/wire"
)

// Config is a configuration that holds: decoded, checked and resolved.
type Config struct {
	Path     string // of the file
	File     *File
	Digest   writ.Digest // of every effective value
	Warnings []string    // things that hold but are probably not meant

	Types      *action.Registry
	Agents     []access.Agent
	Presets    map[access.Autonomy]access.Set[action.Lists]
	StatePath  string // resolved store.path
	Witness    string
	lines      map[string]int
	workspaces map[string]access.Workspace
}

// Path is where the configuration is: the flag, else $WRIT_CONFIG, else the
// user's configuration directory.
func Path(flag string) (string, error) {
	for _, p := range []string{flag, os.Getenv("WRIT_CONFIG")} {
		if p != "" {
			return filepath.Abs(p)
		}
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no configuration directory: %w; name the file with --config", err)
	}
	return filepath.Join(dir, "writ", "writ.yaml"), nil
}

// Load reads and checks the file. tools are the names of the tools there are.
// All errors of the file come at once, one a line.
func Load(path string, tools []string) (*Config, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration at %s; 'writ init' writes a starting one", path)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s: the file has %d bytes; at most %d are read", path, info.Size(), maxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text, tools, info.Mode())
}

func parse(path string, text []byte, tools []string, mode os.FileMode) (*Config, error) {
	d := &decoder{name: filepath.Base(path), lines: map[string]int{}}
	c := &Config{Path: path, File: defaults(), lines: d.lines, workspaces: map[string]access.Workspace{}}
	if mode.Perm()&0o022 != 0 {
		d.fail(0, "", "others can write to the file (mode %04o); run: chmod go-w %s", mode.Perm(), path)
	}
	d.file(text, c.File)
	if len(d.errs) == 0 {
		c.check(d, tools)
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	canonical, err := wire.Marshal(c.Effective())
	if err != nil {
		return nil, err
	}
	c.Digest = wire.Digest(canonical)
	return c, nil
}

// At is where a key was written, as file:line, or "built in".
func (c *Config) At(path string) string {
	if n, ok := c.lines[path]; ok {
		return filepath.Base(c.Path) + ":" + strconv.Itoa(n)
	}
	return access.BuiltIn
}

func (c *Config) check(d *decoder, tools []string) {
	f := c.File
	if f.Version != 1 {
		d.fail(c.lines["version"], "version", "must be 1")
	}
	if err := loopback(f.Listen); err != nil {
		d.fail(c.lines["listen"], "listen", "%v", err)
	}
	c.checkStore(d)
	c.checkWorkspaces(d)
	c.checkSandboxing(d)
	if len(d.errs) > 0 {
		return
	}
	c.build(d, tools)
}

// loopback refuses any address but loopback, since there is no TLS.
func loopback(listen string) error {
	h, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not an address; write 127.0.0.1:7323", listen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no valid port; write 127.0.0.1:7323", listen)
	}
	if a, err := netip.ParseAddr(h); err != nil || !a.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address; without TLS only 127.0.0.1 or [::1] can be listened on", listen)
	}
	return nil
}

func (c *Config) checkStore(d *decoder) {
	s := &c.File.Store
	if s.Path == "" {
		s.Path = StateHome()
	}
	var ok bool
	if c.StatePath, ok = c.absolute(d, "store.path", s.Path); !ok {
		return
	}
	c.StatePath = resolved(c.StatePath)
	if s.Witness == "" {
		s.Witness = filepath.Join(s.Path, "witness.jsonl")
	}
	if c.Witness, ok = c.absolute(d, "store.witness", s.Witness); ok {
		c.Witness = resolved(c.Witness)
	}
}

// StateHome is the default directory of writ's state.
func StateHome() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "writ")
}

// absolute takes absolute paths and ~/ paths; a relative one would mean something
// else in each process that reads it.
func (c *Config) absolute(d *decoder, key, p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			d.fail(c.lines[key], key, "%q: there is no home directory; write the path out", p)
			return "", false
		}
		p = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
		d.fail(c.lines[key], key, "%q is not an absolute path; begin it with / or ~/", p)
		return "", false
	}
	return filepath.Clean(p), true
}

// resolved follows the symlinks of the deepest existing ancestor.
func resolved(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	dir, base := filepath.Split(p)
	if dir = filepath.Clean(dir); dir == p {
		return p
	}
	return filepath.Join(resolved(dir), base)
}

func (c *Config) checkWorkspaces(d *decoder) {
	own := map[string]string{"the configuration": resolved(c.Path), "the store": c.StatePath, "the witness": c.Witness}
	for _, name := range sorted(c.File.Workspaces) {
		key := "workspaces." + name
		w := c.File.Workspaces[name]
		if w.Path == "" {
			d.fail(c.lines[key], key, "has no path")
			continue
		}
		path, ok := c.directory(d, key+".path", w.Path)
		if !ok {
			continue
		}
		project := path
		if w.Project != "" {
			if project, ok = c.directory(d, key+".project", w.Project); !ok {
				continue
			}
			if !policy.Below(path, project) {
				d.fail(c.lines[key+".project"], key+".project", "%s does not contain the workspace %s", project, path)
				continue
			}
		}
		for _, what := range sorted(own) {
			if policy.Below(own[what], project) {
				d.fail(c.lines[key], key, "%s (%s) lies inside it, where agents write; move one of them", what, own[what])
			}
		}
		c.workspaces[name] = access.Workspace{Name: name, Path: path, Project: project}
	}
}

func (c *Config) directory(d *decoder, key, p string) (string, bool) {
	p, ok := c.absolute(d, key, p)
	if !ok {
		return "", false
	}
	p = resolved(p)
	if info, err := os.Stat(p); err != nil || !info.IsDir() {
		d.fail(c.lines[key], key, "%s is not a directory; make it first: mkdir -p %s", p, p)
		return "", false
	}
	if p == "/" {
		d.fail(c.lines[key], key, "the root directory cannot be a workspace")
		return "", false
	}
	return p, true
}

func (c *Config) checkSandboxing(d *decoder) {
	s := c.File.Sandboxing.Subprocess
	key := "sandboxing.subprocess."
	if s.TimeoutSeconds < 1 || s.TimeoutSeconds > 600 {
		d.fail(c.lines[key+"timeout_seconds"], key+"timeout_seconds", "must be 1 to 600")
	}
	if s.KillGraceSeconds < 1 || s.KillGraceSeconds > 60 {
		d.fail(c.lines[key+"kill_grace_seconds"], key+"kill_grace_seconds", "must be 1 to 60")
	}
	for i, p := range s.ExtraSafePathPrefixes {
		at := fmt.Sprintf("%sextra_safe_path_prefixes[%d]", key, i)
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00:") {
			d.fail(c.lines[at], at, "%q is not an absolute, clean directory other than /", p)
		}
	}
	if !s.WorkspaceOnly {
		c.Warnings = append(c.Warnings, c.At(key+"workspace_only")+": workspace_only is false: commands may start in any readable directory")
	}
	if !s.RestrictedPath {
		c.Warnings = append(c.Warnings, c.At(key+"restricted_path")+": restricted_path is false: commands are looked up in the whole PATH of the daemon")
	}
}
