package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/web"
	"github.com/writ-run/writ/wire"
)

// Connection is a service outside that agents use with the operator's credentials.
type Connection struct {
	Type        ConnectionType `yaml:"type"` // empty: http
	BaseURL     string         `yaml:"base_url"`
	Auth        Auth           `yaml:"auth"`
	Sensitive   bool           `yaml:"sensitive"`   // every call over it asks
	RateLimit   int            `yaml:"rate_limit"`  // requests a minute; 0: 60
	Paths       []string       `yaml:"paths"`       // globs; empty: all
	Methods     []Method       `yaml:"methods"`     // empty: GET and HEAD
	Environment Environment    `yaml:"environment"` // empty: nothing said
	Agents      []string       `yaml:"agents"`      // who may use it, with those below them; empty: whoever may use the tool
}

// Auth is how a connection proves itself.
type Auth struct {
	Type     AuthType              `yaml:"type"` // empty: none
	Secret   secret.Ref            `yaml:"secret"`
	Header   string                `yaml:"header"`
	User     string                `yaml:"user"`
	TokenURL string                `yaml:"token_url"`
	ClientID string                `yaml:"client_id"`
	Scopes   []string              `yaml:"scopes"`
	Headers  map[string]secret.Ref `yaml:"headers"`
}

// ConnectionType is http; git, which lends credentials to git's tools; or a search provider,
// whose own way of being asked is spoken.
type ConnectionType string

// AuthType is none, bearer, api_key, basic, oauth2_client or headers.
type AuthType string

// Environment is staging or production.
type Environment string

// Method is a method of HTTP.
type Method string

func (t *ConnectionType) UnmarshalText(b []byte) error {
	return word(t, "type of connection", b, append([]string{external.HTTP, external.Git}, web.Providers()...)...)
}
func (t *AuthType) UnmarshalText(b []byte) error {
	return word(t, "type of authentication", b, external.AuthTypes...)
}
func (e *Environment) UnmarshalText(b []byte) error {
	return word(e, "environment", b, "staging", "production")
}
func (m *Method) UnmarshalText(b []byte) error {
	return word(m, "method", b, "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
}

// InForce is the connection with what holds where nothing is written.
func (n Connection) InForce() Connection {
	n.Type, n.Auth.Type, n.RateLimit = cmp.Or(n.Type, external.HTTP), cmp.Or(n.Auth.Type, "none"), cmp.Or(n.RateLimit, 60)
	if len(n.Paths) == 0 {
		n.Paths = []string{"/**"}
	}
	if len(n.Methods) == 0 {
		n.Methods = []Method{"GET", "HEAD"}
		switch {
		case n.Type == external.Git:
			n.Methods = []Method{"GET", "POST"}
		case web.Posts(string(n.Type)):
			n.Methods = []Method{"POST"}
		}
	}
	return n
}

func (c *Config) checkConnections(d *strict.File) {
	c.Connections = map[string]external.Connection{}
	for _, name := range slices.Sorted(maps.Keys(c.File.Connections)) {
		key, n := strict.Member("connections", name), c.File.Connections[name]
		if !ValidName(name) {
			d.Reject(key, "a connection's name %s", nameRule)
		}
		if why := baseFault(n.BaseURL); why != "" && !d.Unread(key+".base_url") {
			d.Reject(key+".base_url", "%s", why)
		}
		c.checkAuth(d, key+".auth", n.Auth)
		if n.Type == external.Git {
			c.checkLent(d, key, n)
		}
		if n.RateLimit < 0 || n.RateLimit > 6000 || n.RateLimit == 0 && c.written(key+".rate_limit") {
			d.Reject(key+".rate_limit", "must be 1 to 6000, requests a minute")
		}
		for i, glob := range n.Paths {
			if err := policy.CheckGlob(glob); err != nil || !strings.HasPrefix(glob, "/") {
				d.Reject(fmt.Sprintf("%s.paths[%d]", key, i), "%q is not a pattern of paths; write one such as /v1/things/**", glob)
			}
		}
		for i, agent := range n.Agents {
			c.checkUser(d, fmt.Sprintf("%s.agents[%d]", key, i), agent)
		}
		c.File.Connections[name] = n
		made, err := n.InForce().made(name)
		if err != nil {
			d.Reject(key, "%v", err)
		}
		c.Connections[name] = made
	}
}

// checkLent takes of a connection for git's tools what they could use.
func (c *Config) checkLent(d *strict.File, key string, n Connection) {
	if !strings.HasPrefix(n.BaseURL, "https://") && !d.Unread(key+".base_url") {
		d.Reject(key+".base_url", "git's credentials go by https alone; write https://, the host, and a path that its repositories are below")
	}
	if cmp.Or(n.Auth.Type, "none") == "none" && !d.Unread(key+".auth") {
		d.Reject(key, "a connection of type git is there for its credentials; write auth, such as {type: basic, user: NAME, secret: \"store:NAME\"}")
	}
	if c.written(key + ".methods") {
		d.Reject(key+".methods", "git's requests are git's own (GET and POST); remove it, and say with git_push and approvals who may change something")
	}
}

// checkUser takes agents that stand at the top: one below another reaches what that
// one does, and a list could not change it.
func (c *Config) checkUser(d *strict.File, key, agent string) {
	a, ok := c.File.Agents[agent]
	switch {
	case !ok:
		d.Reject(key, "there is no agent %q%s", agent, strict.Hint(agent, sorted(c.File.Agents)))
	case a.Parent != "":
		d.Reject(key, "agent %s stands below %s and reaches what that one does; name the one at the top", agent, a.Parent)
	}
}

// made is the connection as requests are made over it. Its digest covers all of it, and
// of credentials where they are.
func (n Connection) made(name string) (external.Connection, error) {
	canonical, err := wire.Marshal(map[string]any{"name": name, "connection": n})
	to, _ := Endpoint(n.BaseURL) // which was checked
	out := external.Connection{Name: name, Type: string(n.Type), Host: to.String(), Base: strings.TrimSuffix(n.BaseURL, "/"), Paths: n.Paths, Rate: n.RateLimit, Digest: wire.Digest(canonical), Auth: n.Auth.made()}
	for _, m := range n.Methods {
		out.Methods = append(out.Methods, string(m))
	}
	return out, err
}

func (a Auth) made() external.Auth {
	return external.Auth{Type: string(a.Type), Secret: a.Secret, Header: a.Header, User: a.User, TokenURL: a.TokenURL, ClientID: a.ClientID, Scopes: a.Scopes, Headers: a.Headers}
}

// authKeys are what each way to prove oneself takes, all of it but scopes needed.
var authKeys = map[AuthType][]string{
	"none": {}, "bearer": {"secret"}, "api_key": {"secret", "header"}, "basic": {"secret", "user"},
	"oauth2_client": {"secret", "token_url", "client_id", "scopes"}, "headers": {"headers"},
}

func (c *Config) checkAuth(d *strict.File, key string, a Auth) {
	kind := cmp.Or(a.Type, "none")
	given := map[string]bool{
		"secret": a.Secret != secret.Ref{}, "header": a.Header != "", "user": a.User != "", "token_url": a.TokenURL != "",
		"client_id": a.ClientID != "", "scopes": len(a.Scopes) > 0, "headers": len(a.Headers) > 0,
	}
	for _, k := range sorted(given) {
		takes := slices.Contains(authKeys[kind], k)
		switch {
		case d.Unread(key+"."+k) || d.Unread(key+".type"):
		case given[k] && !takes:
			d.Reject(key+"."+k, "auth of type %s does not take it; remove it, or write another type", kind)
		case !given[k] && takes && k != "scopes":
			d.Reject(key, "auth of type %s needs %s; write it", kind, k)
		}
	}
	c.secretFile(d, key+".secret", a.Secret)
	if a.Header != "" {
		if err := external.CheckHeader(a.Header); err != nil {
			d.Reject(key+".header", "%v", err)
		}
	}
	if !headerValue(a.User) || strings.Contains(a.User, ":") {
		d.Reject(key+".user", "a user has no colon, no space and nothing but ASCII; write it so")
	}
	if a.TokenURL != "" {
		if _, err := Endpoint(a.TokenURL); err != nil {
			d.Reject(key+".token_url", "%v", err)
		}
	}
	for i, s := range a.Scopes {
		if s == "" || !headerValue(s) || strings.ContainsAny(s, `"\`) {
			d.Reject(fmt.Sprintf("%s.scopes[%d]", key, i), "%q is not a scope; write each by itself", s)
		}
	}
	seen := map[string]bool{}
	for _, name := range sorted(a.Headers) {
		k := strict.Member(key+".headers", name)
		if err := external.CheckHeader(name); err != nil {
			d.Reject(k, "%v", err)
		}
		if low := strings.ToLower(name); seen[low] {
			d.Reject(k, "the header is there twice, in other letters; keep one")
		} else {
			seen[low] = true
		}
		c.secretFile(d, k, a.Headers[name])
	}
}

// Sensitivity is whether calls over a connection ask each time, and where that stands.
func (c *Config) Sensitivity(name string) access.Set[bool] {
	return access.Set[bool]{V: c.File.Connections[name].Sensitive, At: c.At(strict.Member("connections", name) + ".sensitive")}
}

// Users are the agents that a connection is for.
func (c *Config) Users(name string) access.Set[[]string] {
	return access.Set[[]string]{V: c.File.Connections[name].Agents, At: c.At(strict.Member("connections", name) + ".agents")}
}

// Searches says whether a connection leads to a search provider, and Requests whether
// external_api takes one.
func (c *Config) Searches() bool {
	return c.connects(func(kind string) bool { return slices.Contains(web.Providers(), kind) })
}

func (c *Config) Requests() bool {
	return c.connects(func(kind string) bool { return kind == external.HTTP })
}

func (c *Config) connects(kind func(string) bool) bool {
	for _, n := range c.Connections {
		if kind(n.Type) {
			return true
		}
	}
	return false
}
