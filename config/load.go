package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool/external"
)

// Config is a configuration that holds: decoded, checked and resolved.
type Config struct {
	Path       string // of the file
	File       *File
	Digest     writ.Digest       // of every effective value
	Disclosure disclose.Settings // which tools a model is shown at once
	Warnings   []string          // things that hold but are probably not meant

	Types       *action.Registry
	Agents      []access.Agent
	Presets     map[access.Autonomy]access.Set[action.Lists]
	Limits      map[string]Limits // by tool
	StatePath   string            // resolved store.path
	Witness     string
	lines       map[string]int
	trails      map[string][]string // by key, what a path leads through
	workspaces  map[string]access.Workspace
	levels      map[access.Level]access.Constraints
	roles       map[string]access.Role
	certified   map[string]string   // agents by what their certificates have
	users       map[uint32][]string // agents by user
	tools       []string            // names of the tools there are
	toolsErr    error               // why they could not be read
	placed      map[string]string   // by key, where what is in files of their own was written
	Egress      []Said              // what is said of hosts
	Git         Git                 // what git's tools may reach besides
	DockerHosts host.Patterns       // all that containers reach; none: what agents may
	SSH         SSH                 // how git's tools get to servers by ssh
	serversErr  error               // what is wrong with those files

	Connections map[string]external.Connection
	secretFiles []string // where references to files lead
	secretKeys  []string // and where each of them is written
}

// Limits are what the operator adds to a tool's own constraints.
type Limits struct {
	Quotas    []writ.Quota
	OnlyAfter []string
}

// Tools names the tools there are, given the action types that a configuration
// knows: definitions on disk may use its custom ones.
type Tools func(*action.Registry) ([]string, error)

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

// Load reads and checks the file against the tools there are, and the files of servers
// beside it, with those that are planned. All errors come at once, one a line.
func Load(path string, tools Tools, planned ...ServerFile) (*Config, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration at %s; 'writ init' writes a starting one", path)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe or a device may never end
		return nil, fmt.Errorf("%s is not a file; name the configuration file with --config", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > strict.MaxBytes {
		return nil, fmt.Errorf("%s: the file has more than %d bytes; a configuration has less", path, strict.MaxBytes)
	}
	return parse(path, text, tools, info.Mode(), planned...)
}

// Defaults is the configuration of somebody who has written none.
func Defaults(path string) (*Config, error) {
	return parse(path, []byte("version: 1\n"), func(*action.Registry) ([]string, error) { return nil, nil }, 0o600)
}

func parse(path string, text []byte, tools Tools, mode os.FileMode, planned ...ServerFile) (*Config, error) {
	d := source(filepath.Base(path))
	c := &Config{Path: path, File: defaults(), lines: d.Lines(), trails: map[string][]string{}, placed: map[string]string{}, workspaces: map[string]access.Workspace{}}
	if mode.Perm()&0o022 != 0 {
		d.Reject("", "others can write to the file (mode %04o); run: chmod go-w %s", mode.Perm(), path)
	}
	if d.Read(text, c.File) {
		c.check(d, tools, planned)
	}
	err := errors.Join(d.Err(), c.serversErr, c.toolsErr)
	if err != nil {
		return nil, err
	}
	c.Digest, err = c.digest()
	return c, err
}

func source(name string) *strict.File {
	return &strict.File{Name: name, What: "a configuration", Empty: "'writ init' writes a starting one", NotBuilt: notBuilt}
}

// At is where a key was written, as file:line, or "built in".
func (c *Config) At(path string) string {
	if _, ok := c.lines[path]; !ok && path == "listen.address" {
		path = "listen" // an address alone
	}
	if at, ok := c.placed[path]; ok {
		return at
	}
	if n, ok := c.lines[path]; ok {
		return filepath.Base(c.Path) + ":" + strconv.Itoa(n)
	}
	return access.BuiltIn
}

func (c *Config) check(d *strict.File, tools Tools, planned []ServerFile) {
	f := c.File
	if f.Version != 1 {
		d.Reject("version", "must be 1; write version: 1")
	}
	c.checkListen(d)
	c.checkStore(d)
	c.checkSecrets(d)
	c.checkConnections(d)
	c.checkWebhooks(d)
	c.checkWorkspaces(d) // which hold none of what is above
	c.checkSandboxing(d)
	c.checkApprovals(d)
	c.checkDisclosure(d)
	c.checkEgress(d)
	c.checkSSH(d)
	b := &builder{Config: c, d: d}
	b.actions() // which servers name, too
	c.checkUpstreams(d)
	c.serversErr = c.readServers(planned)
	b.build(tools)
}

func (c *Config) checkStore(d *strict.File) {
	s := c.File.Store
	if s.Path == "" {
		s.Path = StateHome()
	}
	var ok bool
	if c.StatePath, ok = c.path(d, "store.path", s.Path); !ok {
		return
	}
	if info, err := os.Stat(c.StatePath); c.StatePath == "/" || err == nil && !info.IsDir() {
		d.Reject("store.path", "%s cannot be the store; name a directory of its own", c.StatePath)
	}
	if s.Witness == "" {
		s.Witness = filepath.Join(c.StatePath, "witness.jsonl")
	}
	if c.Witness, ok = c.path(d, "store.witness", s.Witness); !ok {
		return
	}
	if info, err := os.Stat(c.Witness); c.Witness == c.StatePath || err == nil && info.IsDir() {
		d.Reject("store.witness", "%s is a directory; name a file", c.Witness)
	}
}

// Own is what no box reaches at any level: store, keys, socket, witness, configuration, and
// the definitions, profiles and servers beside it, as they resolve. A configuration directory of
// writ's own is hidden whole, so that nothing can be put beside the file either.
func (c *Config) Own() []string {
	path := c.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	own := []string{path, filepath.Join(dir, "tools"), filepath.Join(dir, "profiles"), filepath.Join(dir, serversDir)}
	if filepath.Base(dir) == "writ" {
		own = []string{dir}
	}
	if at := filepath.Dir(c.Path); at != dir { // of a file that is a symlink, these are looked for beside that
		if filepath.Base(at) == "writ" {
			own = append(own, at)
		} else {
			own = append(own, filepath.Join(at, "tools"), filepath.Join(at, "profiles"))
		}
	}
	if p := c.servers(); !slices.ContainsFunc(own, func(o string) bool { return policy.Below(p, o) }) {
		own = append(own, p)
	}
	for _, p := range c.File.Listen.own() {
		if p != "" && !policy.Below(p, own[0]) {
			own = append(own, p)
		}
	}
	for _, p := range append([]string{c.File.Secrets.Store.KeyFile}, c.secretFiles...) {
		if p != "" && !policy.Below(p, c.StatePath) && !slices.Contains(own, p) {
			own = append(own, p)
		}
	}
	hide := []string{c.StatePath}
	if !policy.Below(c.Witness, c.StatePath) {
		hide = append(hide, c.Witness)
	}
	return append(hide, own...)
}

// OwnOf is Own of a configuration that may not hold, or not be there.
func OwnOf(path string) []string { return leniently(path).Own() }

// LinksOf are the symlinks by which all that is found, where a configuration says it is: whoever
// can replace one chooses what is found.
func LinksOf(path string) []string {
	c := leniently(path)
	var out []string
	add := func(way []string, to string) {
		if way == nil {
			way = []string{to, to} // more than are followed
		}
		out = append(out, way[:len(way)-1]...)
	}
	dir := filepath.Dir(c.Path)
	places := []string{c.Path, filepath.Join(dir, "tools"), filepath.Join(dir, "profiles"), filepath.Join(dir, serversDir), StateHome(), c.File.Secrets.Store.KeyFile}
	for _, p := range append(places, c.File.Listen.own()...) {
		if p = AtHome(p); filepath.IsAbs(p) {
			add(Trail(p), p)
		}
	}
	for _, way := range c.trails {
		add(way, c.Path)
	}
	return out
}

// StateOf finds the state directory of a configuration that may not hold: a
// daemon that runs must be reachable, above all to be stopped, while somebody is
// editing the file.
func StateOf(path string) string { return leniently(path).StatePath }

func leniently(path string) *Config {
	d := source(filepath.Base(path))
	c := &Config{Path: path, File: defaults(), lines: d.Lines(), trails: map[string][]string{}}
	if text, err := os.ReadFile(path); err == nil {
		d.Read(text, c.File) // what cannot be read leaves the default
	}
	if c.checkStore(d); c.StatePath == "" {
		c.File.Store = Store{}
		c.checkStore(d)
	}
	return c
}

// StateHome is the default directory of writ's state.
func StateHome() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "writ")
}

// path takes absolute paths and ~/ paths; a relative one would mean something
// else in each process that reads it. It gives where the path ends.
func (c *Config) path(d *strict.File, key, p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			d.Reject(key, "%q: there is no home directory; write the path out", p)
			return "", false
		}
		p = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
		d.Reject(key, "%q is not an absolute path; begin it with / or ~/", p)
		return "", false
	}
	stops := Trail(p)
	if stops == nil {
		d.Reject(key, "%q leads through too many symlinks; write the path out", p)
		return "", false
	}
	c.trails[key] = stops
	return stops[len(stops)-1], true
}

// Trail is every symlink on the way to p and, last, where p ends, whether that
// exists or not: whoever writes through a dangling link makes its target. It is
// nil when there are more links than the kernel follows, or p does not begin at the root.
func Trail(p string) []string {
	if !filepath.IsAbs(p) {
		return nil // it would be another one for each who asks
	}
	var stops []string
	at, rest := "/", strings.Split(p, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part) // Join cleans: "", "." and ".." are walked too
		to, err := os.Readlink(next)
		if err != nil || next == at {
			at = next
			continue
		}
		if stops = append(stops, next); len(stops) > 40 {
			return nil
		}
		if strings.HasPrefix(to, "/") {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return append(stops, at)
}

func (c *Config) checkWorkspaces(d *strict.File) {
	for _, name := range sorted(c.File.Workspaces) {
		key := strict.Member("workspaces", name)
		if !ValidName(name) {
			d.Reject(key, "a workspace's name %s", nameRule)
			continue
		}
		w := c.File.Workspaces[name]
		if w.Path == "" {
			d.Reject(key+".path", "is missing; name a directory")
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
				d.Reject(key+".project", "%s does not contain the workspace %s", project, path)
				continue
			}
		}
		c.apart(d, key, project)
		c.workspaces[name] = access.Workspace{Name: name, Path: path, Project: project}
	}
}

// apart keeps writ's own files out of where agents write, and every symlink on
// the way to them: whoever can replace a link chooses the configuration.
func (c *Config) apart(d *strict.File, key, project string) {
	beside := func(name string) []string { return Trail(filepath.Join(filepath.Dir(c.Path), name)) }
	if c.outside(d, key, project, "the configuration", Trail(c.Path)) { // else so are these
		c.outside(d, key, project, "the directory of tool definitions", beside("tools"))
		c.outside(d, key, project, "the directory of profiles", beside("profiles"))
		c.outside(d, key, project, "the directory of servers", beside(serversDir))
	}
	c.outside(d, key, project, "the store", c.trails["store.path"])
	c.outside(d, key, project, "the witness", c.trails["store.witness"])
	c.outside(d, key, project, "the client CA", c.trails["listen.client_ca"])
	c.outside(d, key, project, "the agents' socket", c.trails["listen.socket"])
	c.outside(d, key, project, "the key of the secrets", c.trails["secrets.store.key_file"])
	for _, at := range c.secretKeys {
		c.outside(d, key, project, "the file of a secret", c.trails[at])
	}
	if self, err := os.Executable(); err == nil { // an agent that replaces it runs outside every box
		c.outside(d, key, project, "the writ program", Trail(self))
	}
	if c.StatePath != "" && project != c.StatePath && policy.Below(project, c.StatePath) {
		d.Reject(key, "it lies inside the store (%s), which no agent reaches; move one of them", c.StatePath)
	}
}

// outside says when one of the paths that lead to something lies in a project.
func (c *Config) outside(d *strict.File, key, project, what string, trail []string) bool {
	if at := sameDirectory(trail, project); at != "" {
		d.Reject(key, "%s lies inside it, where agents write: %s is the same directory under another name; move one of them", what, at)
		return false
	}
	if i := slices.IndexFunc(trail, func(at string) bool { return policy.Below(at, project) }); i >= 0 {
		d.Reject(key, "%s (%s) lies inside it, where agents write; move one of them", what, trail[i])
		return false
	}
	return true
}

// sameDirectory finds a directory above one of the paths that is project itself
// under another name, such as a second mount of it.
func sameDirectory(paths []string, project string) string {
	want, err := os.Stat(project)
	if err != nil {
		return ""
	}
	for _, p := range paths {
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err == nil && dir != project && os.SameFile(info, want) && !policy.Below(p, project) {
				return dir
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

// system directories are no place to work in: what lies there is run or obeyed by
// everything else.
var system = []string{"/proc", "/sys", "/dev", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin", "/usr/local/sbin"}

func (c *Config) directory(d *strict.File, key, p string) (string, bool) {
	p, ok := c.path(d, key, p)
	if !ok {
		return "", false
	}
	info, err := os.Stat(p)
	switch {
	case err != nil:
		d.Reject(key, "%s is not a directory; make it first: mkdir -p %s", p, p)
	case !info.IsDir():
		d.Reject(key, "%s is not a directory; name one", p)
	case slices.ContainsFunc(system, func(s string) bool { return policy.Below(p, s) || policy.Below(s, p) && p != "/" }):
		d.Reject(key, "%s is a part of the system and cannot be a workspace; name another directory", p)
	case p == "/":
		d.Reject(key, "the root directory cannot be a workspace; name a directory below it")
	default:
		return p, true
	}
	return "", false
}

func (c *Config) checkSandboxing(d *strict.File) {
	s := c.File.Sandboxing.Subprocess
	key := "sandboxing.subprocess."
	if s.TimeoutSeconds < 1 || s.TimeoutSeconds > 600 {
		d.Reject(key+"timeout_seconds", "must be 1 to 600")
	}
	if s.KillGraceSeconds < 1 || s.KillGraceSeconds > 60 {
		d.Reject(key+"kill_grace_seconds", "must be 1 to 60")
	}
	for i, p := range s.ExtraSafePathPrefixes {
		c.checkPrefix(d, fmt.Sprintf("%sextra_safe_path_prefixes[%d]", key, i), p)
	}
	c.checkDocker(d)
	c.checkLogShipping(d)
	c.warnLoose("sandboxing.default_backend", c.File.Sandboxing.DefaultBackend)
	for _, category := range slices.Sorted(maps.Keys(c.File.Sandboxing.Overrides)) {
		c.warnLoose("sandboxing.overrides."+string(category), c.File.Sandboxing.Overrides[category])
	}
	if !s.WorkspaceOnly {
		c.Warnings = append(c.Warnings, c.At(key+"workspace_only")+": workspace_only is false: commands may start in any readable directory")
	}
	if !s.RestrictedPath {
		c.Warnings = append(c.Warnings, c.At(key+"restricted_path")+": restricted_path is false: commands are looked up in the whole PATH of the daemon")
	}
}

// warnLoose says what a driver that the operator chose does not keep.
func (c *Config) warnLoose(key string, b Backend) {
	if slices.Contains(looseBackends, b) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: driver %s does not keep protected names (.git/hooks, .envrc, .env …) from commands that may write the workspace; native does", c.At(key), b))
	}
}

// checkPrefix refuses, besides what is no directory's name, one that agents can
// write programs into.
func (c *Config) checkPrefix(d *strict.File, key, p string) {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00:") {
		d.Reject(key, "%q is not an absolute, clean directory other than /", p)
		return
	}
	stops := Trail(p)
	if stops == nil {
		d.Reject(key, "%q leads through too many symlinks; write the path out", p)
		return
	}
	for _, name := range sorted(c.workspaces) {
		for _, at := range stops {
			if w := c.workspaces[name].Project; policy.Below(at, w) || policy.Below(w, at) {
				d.Reject(key, "%s and workspace %s (%s) overlap, so agents could put programs there; name another directory", p, name, w)
				break
			}
		}
	}
}
