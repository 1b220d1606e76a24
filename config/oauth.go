package config

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/strict"
)

// OAuth says whose access tokens are taken at the agents' door, and which agents they
// stand for.
type OAuth struct {
	Issuer    string            `yaml:"issuer"`     // as the tokens have it, to the letter
	Audience  string            `yaml:"audience"`   // what they must be meant for; also the name of this server in its metadata
	Scopes    map[string]string `yaml:"scopes"`     // agents by scope
	Subjects  map[string]string `yaml:"subjects"`   // agents by sub
	JWKSHosts []string          `yaml:"jwks_hosts"` // where keys may come from beside the issuer's host
}

func (c *Config) checkOAuth(d *strict.File) {
	o := c.File.Listen.OAuth
	if o == nil {
		return
	}
	const key = "listen.oauth"
	checkEndpoint(d, key+".issuer", o.Issuer)
	checkEndpoint(d, key+".audience", o.Audience)
	if len(o.Scopes)+len(o.Subjects) == 0 && !d.Unread(key+".scopes") && !d.Unread(key+".subjects") {
		d.Reject(key, "no token would stand for an agent; give scopes or subjects")
	}
	for _, scope := range sorted(o.Scopes) {
		at := strict.Member(key+".scopes", scope)
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r > '~' }) {
			d.Reject(at, "%q is not a scope; use printable ASCII without spaces, quotes and backslashes", scope)
		}
		c.checkAgent(d, at, o.Scopes[scope])
	}
	for _, sub := range sorted(o.Subjects) {
		at := strict.Member(key+".subjects", sub)
		if sub == "" {
			d.Reject(at, "is empty; write the sub of a token")
		}
		c.checkAgent(d, at, o.Subjects[sub])
	}
	for i, text := range o.JWKSHosts {
		if _, err := host.ParseEndpoint(text); err != nil {
			d.Reject(fmt.Sprintf("%s.jwks_hosts[%d]", key, i), "%v", err)
		}
	}
}

func (c *Config) checkAgent(d *strict.File, key, name string) {
	if _, ok := c.File.Agents[name]; !ok && !d.Unread("agents") {
		d.Reject(key, "there is no agent %q%s", name, strict.Hint(name, sorted(c.File.Agents)))
	}
}

func checkEndpoint(d *strict.File, key, text string) {
	if text == "" {
		if !d.Unread(key) {
			d.Reject(key, "is missing; write an https address")
		}
		return
	}
	_, err := Endpoint(text)
	if err == nil && strings.Contains(text, "?") {
		err = fmt.Errorf("%q has a query; leave it out", text)
	}
	if err != nil {
		d.Reject(key, "%v", err)
	}
}

// Endpoint is where an address leads that tokens or their keys rest on: https, or http
// of this machine, in plain ASCII and with nothing that readers could differ about.
func Endpoint(text string) (host.Endpoint, error) {
	e, err := host.ParseURL(text)
	switch {
	case err != nil:
		return host.Endpoint{}, err
	case strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r == '"' || r == '#' }):
		return host.Endpoint{}, fmt.Errorf("%q has a fragment or what is not ASCII; leave it out", text)
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://") && loopback(e.Host):
		return e, nil
	}
	return host.Endpoint{}, fmt.Errorf("%q is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without", text)
}

// Hosts are those that keys may come from.
func (o *OAuth) Hosts() ([]host.Endpoint, error) {
	issuer, err := Endpoint(o.Issuer)
	if err != nil {
		return nil, err
	}
	out := []host.Endpoint{issuer}
	for _, text := range o.JWKSHosts {
		e, err := host.ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func loopback(h host.Host) bool {
	a, ok := h.Addr()
	return h.String() == "localhost" || ok && a.IsLoopback()
}
