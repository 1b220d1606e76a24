package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/wire"
)

// Upstream is an MCP server whose tools agents may use: a program that speaks on
// standard input and output, in a box, or one that is reached over HTTP.
type Upstream struct {
	Command []string          `yaml:"command"` // a program and its arguments
	Dir     string            `yaml:"dir"`     // where it starts; empty: the first directory it may write, or /
	Env     map[string]string `yaml:"env"`     // added to its environment
	// SecretEnv is variables whose values are kept elsewhere, and looked up when it starts.
	SecretEnv map[string]secret.Ref `yaml:"secret_env"`
	Read      []string              `yaml:"read"`  // what its box may read besides the system
	Write     []string              `yaml:"write"` // and write
	Hosts     []string              `yaml:"hosts"` // and reach; empty: it has no network

	URL     string            `yaml:"url"` // https, or http of this machine
	Headers map[string]string `yaml:"headers"`
	Auth    Auth              `yaml:"auth"` // as a connection has it

	Prefix         Prefix   `yaml:"prefix"`
	Enabled        []string `yaml:"enabled"`  // of its tools, by its own names; empty: all
	Disabled       []string `yaml:"disabled"` // beats enabled
	Cacheable      []string `yaml:"cacheable"`
	Relay          []Relay  `yaml:"relay"` // what it may ask of the client in the middle of a call
	CallTimeout    Duration `yaml:"call_timeout"`
	ConnectTimeout Duration `yaml:"connect_timeout"`

	// ReadAction is the action type of those of its tools that a person accepted as
	// reading only. Any other tool of it is of the type that servers' tools have.
	ReadAction action.Type `yaml:"read_action"`
}

// InForce is the server with what holds where nothing is written.
func (u Upstream) InForce() Upstream {
	u.Prefix, u.Auth.Type = cmp.Or(u.Prefix, "name"), cmp.Or(u.Auth.Type, "none")
	u.CallTimeout = cmp.Or(u.CallTimeout, Duration(30*time.Second))
	u.ConnectTimeout = cmp.Or(u.ConnectTimeout, Duration(10*time.Second))
	u.ReadAction = cmp.Or(u.ReadAction, action.MCP.Default())
	return u
}

// Prefix says what stands before the names of a server's tools: its own name, or none.
type Prefix string

// Relay is a request of a server to a client.
type Relay string

func (p *Prefix) UnmarshalText(b []byte) error { return word(p, "prefix", b, "name", "none") }

func (r *Relay) UnmarshalText(b []byte) error {
	return word(r, "request to relay", b, "elicitation", "sampling", "roots")
}

var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*(_[a-z0-9-]+)*$`) })

func (c *Config) checkUpstreams(d *strict.File) {
	for _, name := range slices.Sorted(maps.Keys(c.File.Upstreams)) {
		c.File.Upstreams[name] = c.checkUpstream(d, strict.Member("upstreams", name), name, c.File.Upstreams[name])
	}
}

// checkUpstream checks one server, which stands at a key of a file or is the whole of
// one, and resolves its paths.
func (c *Config) checkUpstream(d *strict.File, key, name string, u Upstream) Upstream {
	switch {
	case len(name) > 32 || !serverName().MatchString(name):
		d.Reject(key, "use a-z, 0-9, - and single _ between them, at most 32, such as my_server")
	case name == "builtin" || strings.HasPrefix(name, "writ"):
		d.Reject(key, "the name is writ's own; choose another")
	case (len(u.Command) == 0) == (u.URL == ""):
		if !d.Unread(key) && !d.Unread(strict.Member(key, "command")) && !d.Unread(strict.Member(key, "url")) {
			d.Reject(key, "give either command, a program to run in a box, or url")
		}
	case u.URL != "":
		c.checkRemote(d, key, u)
	default:
		c.checkProgram(d, key, u)
	}
	for _, k := range []string{"read", "write"} {
		paths := map[string]*[]string{"read": &u.Read, "write": &u.Write}[k]
		for i, p := range *paths {
			at := fmt.Sprintf("%s[%d]", strict.Member(key, k), i)
			if real, ok := c.path(d, at, p); ok {
				(*paths)[i] = real
				c.reachable(d, at, real)
			}
		}
	}
	for i, text := range u.Hosts {
		p, err := host.ParsePattern(text)
		if err != nil {
			d.Reject(fmt.Sprintf("%s[%d]", strict.Member(key, "hosts"), i), "%v", err)
			continue
		}
		u.Hosts[i] = p.String()
	}
	if u.Dir != "" {
		u.Dir, _ = c.path(d, strict.Member(key, "dir"), u.Dir)
	}
	if len(u.Command) > 0 {
		u.Command = slices.Clone(u.Command)
		for i, a := range u.Command {
			u.Command[i] = AtHome(a)
		}
	}
	if u.ReadAction != "" && !c.Types.Has(u.ReadAction) {
		d.Reject(strict.Member(key, "read_action"), "%s", strict.Describe(&action.UnknownError{What: "action type", Got: string(u.ReadAction), Known: typeNames(c.Types), Form: "a type such as code:read"}))
	}
	for k, v := range map[string]*Duration{"call_timeout": &u.CallTimeout, "connect_timeout": &u.ConnectTimeout} {
		if *v < 0 || time.Duration(*v) > 10*time.Minute {
			d.Reject(strict.Member(key, k), "must be over 0 and at most 10m")
		}
	}
	return u
}

// AtHome is an argument with ~/ at its beginning as a shell would have it. A program gets
// no shell, and would look for a directory of that name.
func AtHome(arg string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(arg, "~/"); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return arg
}

func typeNames(r *action.Registry) []string {
	return mapped(r.Types(), func(t action.Type) string { return string(t) })
}

func (c *Config) checkRemote(d *strict.File, key string, u Upstream) {
	if _, err := Endpoint(u.URL); err != nil {
		d.Reject(strict.Member(key, "url"), "%v", err)
	}
	c.checkAuth(d, strict.Member(key, "auth"), u.Auth)
	for name := range u.Headers {
		if slices.ContainsFunc(u.Auth.sends(), func(h string) bool { return strings.EqualFold(h, name) }) {
			d.Reject(strict.Member(strict.Member(key, "headers"), name), "auth sends this header; keep one")
		}
	}
	for k, given := range map[string]bool{"dir": u.Dir != "", "env": len(u.Env) > 0, "secret_env": len(u.SecretEnv) > 0, "read": len(u.Read) > 0, "write": len(u.Write) > 0, "hosts": len(u.Hosts) > 0} {
		if given {
			d.Reject(strict.Member(key, k), "is for a program in a box, and this server is reached by its url; remove it")
		}
	}
}

// Proof is how a server at a url is proven: a connection of which nothing but that is used.
func (u Upstream) Proof(name string) (external.Connection, error) {
	canonical, err := wire.Marshal(map[string]any{"upstream": name, "auth": u.InForce().Auth})
	return external.Connection{Name: strict.Member("upstreams", name), Digest: wire.Digest(canonical), Auth: u.InForce().Auth.made()}, err
}

// sends are the headers that credentials go in.
func (a Auth) sends() []string {
	switch a.Type {
	case "api_key":
		return []string{a.Header}
	case "headers":
		return sorted(a.Headers)
	case "", "none":
		return nil
	}
	return []string{"Authorization"}
}

func (c *Config) checkProgram(d *strict.File, key string, u Upstream) {
	if u.Auth.Type != "" || u.Auth.Secret != (secret.Ref{}) || len(u.Auth.Headers) > 0 {
		d.Reject(strict.Member(key, "auth"), "is for a server that is reached by its url; a program gets credentials as variables: secret_env: {NAME: \"store:NAME\"}")
	}
	for _, name := range sorted(u.SecretEnv) {
		at := strict.Member(strict.Member(key, "secret_env"), name)
		if _, twice := u.Env[name]; twice {
			d.Reject(at, "env says this variable, too; keep one")
		}
		if !secret.ValidVariable(name) {
			d.Reject(at, "this is no name of a variable; write letters, digits and _")
		}
		c.secretFile(d, at, u.SecretEnv[name])
	}
}

// reachable refuses what no box reaches: a server that is given it does not start.
func (c *Config) reachable(d *strict.File, key, path string) {
	for _, own := range c.Own() {
		if own != "" && policy.Below(path, own) {
			d.Reject(key, "%s is writ's own, which no box reaches; name another directory", path)
			return
		}
	}
}
