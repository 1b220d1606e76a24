package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/profile"
)

// profile reads the agent's profile, lays it over the agent, and gives the role to
// use. An allowedTools list stands in for the role's, as a role's does for the
// categories of a level; a disallowedTools list takes away from it.
func (b *builder) profile(a *access.Agent, key string, raw Agent) (role string) {
	if raw.Profile == "" {
		return raw.Role
	}
	key += ".profile"
	if !ValidName(raw.Profile) {
		b.fail(key, "a profile's name %s", nameRule)
		return raw.Role
	}
	p := b.readProfile(key, raw.Profile)
	if p == nil {
		return raw.Role
	}
	file := filepath.Base(p.File)
	list := func(entries []profile.Entry, denies bool) access.List {
		out := access.List{}
		for _, e := range entries {
			at := fmt.Sprintf("%s:%d", file, e.Line)
			out = append(out, access.Set[access.Entry]{V: b.within(at).entry(key, e.Text, denies), At: at})
		}
		return out
	}
	r := &access.Role{Name: "of profile " + p.Name, At: file, Denied: list(p.Denied, true)}
	if p.Allowed != nil {
		r.Allowed = list(*p.Allowed, false)
	}
	if r.Allowed != nil || len(r.Denied) > 0 {
		a.Role = r
	}
	if p.Servers != nil {
		a.Servers = &access.Servers{At: fmt.Sprintf("%s:%d", file, p.Servers[0].Line)}
		for _, s := range p.Servers {
			a.Servers.Names = append(a.Servers.Names, s.Text)
		}
		if lacking := b.lacking(a.Servers.Names); len(lacking) > 0 {
			b.warn(key, "%s declares servers (%s) that upstreams does not have; they have no tools", file, strings.Join(lacking, ", "))
		}
	}
	if raw.Role != "" && p.Role.Text != "" && raw.Role != p.Role.Text {
		b.fail(key, "%s:%d says role %s and the agent says %s; keep one", file, p.Role.Line, p.Role.Text, raw.Role)
	}
	if raw.Role != "" {
		return raw.Role
	}
	return p.Role.Text
}

// within is a builder whose complaints name a place in another file.
func (b *builder) within(at string) *builder {
	w := *b
	w.place = at + ": "
	return &w
}

// readProfile finds profiles/NAME.md or .yaml beside the configuration.
func (b *builder) readProfile(key, name string) *profile.Profile {
	dir := filepath.Join(filepath.Dir(b.Path), "profiles")
	var found []string
	for _, ext := range []string{".md", ".yaml", ".yml"} {
		if _, err := os.Lstat(filepath.Join(dir, name+ext)); err == nil {
			found = append(found, filepath.Join(dir, name+ext))
		}
	}
	if len(found) != 1 {
		b.fail(key, "there has to be exactly one of %s.md, %s.yaml and %s.yml in %s, and there are %d", name, name, name, dir, len(found))
		return nil
	}
	p, err := profile.Load(found[0])
	if err != nil {
		b.fail(key, "%v", err)
		return nil
	}
	return p
}

// lacking are the servers among names that the configuration does not have.
func (b *builder) lacking(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := b.File.Upstreams[name]
		return ok
	})
}
