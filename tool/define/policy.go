package define

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/strict"
)

type policySource struct {
	Risk        action.Risk   `yaml:"risk"`
	Files       filesSource   `yaml:"filesystem"`
	Network     networkSource `yaml:"network"`
	Environment envSource     `yaml:"environment"`
	Exec        execStance    `yaml:"exec"`
	Secrets     []string      `yaml:"secrets"`
}

type filesSource struct {
	Read  globs `yaml:"read"`
	Write globs `yaml:"write"`
}

// globs is the word none, or a list.
type globs struct {
	word noneWord
	list []string
}

func (g *globs) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &g.word, ""
	case strict.List:
		return &g.list, ""
	}
	return nil, "none or a list of globs"
}

type noneWord bool

func (n *noneWord) UnmarshalText(b []byte) error {
	if *n = string(b) == "none"; !*n {
		return fmt.Errorf("%q is not a stance; write none, or a list of globs", b)
	}
	return nil
}

type networkSource struct {
	word networkWord
	spec struct {
		Hosts []string `yaml:"hosts"`
	}
	given bool
}

func (n *networkSource) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &n.word, ""
	case strict.Mapping:
		n.given = true
		return &n.spec, ""
	}
	return nil, "denyAll, allowAll or a mapping with hosts"
}

type networkWord policy.Stance

func (n *networkWord) UnmarshalText(b []byte) error {
	i, err := pick("network stance", b, "denyAll", "allowAll")
	*n = networkWord([]policy.Stance{policy.None, policy.All}[i])
	return err
}

type envSource struct {
	word denyWord
	spec struct {
		Vars []string `yaml:"vars"`
	}
	given bool
}

func (e *envSource) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &e.word, ""
	case strict.Mapping:
		e.given = true
		return &e.spec, ""
	}
	return nil, "denyAll or a mapping with vars"
}

type denyWord bool

func (d *denyWord) UnmarshalText(b []byte) error {
	if *d = string(b) == "denyAll"; !*d {
		return fmt.Errorf("%q is not a stance; write denyAll, or a mapping with vars", b)
	}
	return nil
}

func (b *builder) policy() policy.Policy {
	s := b.Policy
	p := policy.Policy{
		Risk:  s.Risk,
		Files: policy.Files{Read: b.globs("policy.filesystem.read", s.Files.Read), Write: b.globs("policy.filesystem.write", s.Files.Write)},
		Exec:  policy.Stance(s.Exec),
	}
	p.Network = b.network(s.Network)
	p.Env = b.environment(s.Environment)
	p.Secrets = b.secrets(s.Secrets, p.Network)
	return p
}

func (b *builder) globs(key string, g globs) policy.Globs {
	switch {
	case bool(g.word):
		return policy.Globs{Stance: policy.None}
	case g.list == nil:
		return policy.Globs{}
	case len(g.list) == 0:
		b.Reject(key, "is an empty list; write none, or name globs")
	}
	for i, glob := range g.list {
		at := fmt.Sprintf("%s[%d]", key, i)
		one := policy.Policy{Files: policy.Files{Read: policy.Paths(glob)}}
		if err := one.Validate(); err != nil {
			b.Reject(at, "%s; write /dir/** or /dir/file", strings.TrimPrefix(err.Error(), "filesystem.read: "))
		} else if strings.ContainsAny(strings.TrimSuffix(glob, "/**"), `*?[{\`) {
			b.Reject(at, "%q is neither a whole directory nor one path, and a box holds only those; write /dir/** or a path without wildcards", glob)
		}
	}
	return policy.Globs{Stance: policy.Listed, Globs: g.list}
}

func (b *builder) network(n networkSource) policy.Network {
	const key = "policy.network"
	out := policy.Network{Stance: policy.Stance(n.word)}
	if n.given {
		out.Stance = policy.Listed
		for i, text := range n.spec.Hosts {
			p, err := host.ParsePattern(text)
			if err != nil {
				b.Reject(fmt.Sprintf("%s.hosts[%d]", key, i), "%v", err)
			}
			out.Hosts = append(out.Hosts, p)
		}
		if len(n.spec.Hosts) == 0 {
			b.Reject(key+".hosts", "names no host; name hosts, or write network: denyAll")
		}
	}
	if out.Stance > policy.None && b.class() == writ.ClassNone {
		b.Reject(key, "reaches hosts, and the class none says that nothing outside is reached; set egress_class: read_only or write")
	}
	return out
}

func (b *builder) environment(e envSource) policy.Env {
	const key = "policy.environment"
	if bool(e.word) {
		return policy.Env{Stance: policy.None}
	}
	if !e.given {
		return policy.Env{}
	}
	for i, name := range e.spec.Vars {
		if !variable(name) {
			b.Reject(fmt.Sprintf("%s.vars[%d]", key, i), "%q is not the name of a variable; use letters, digits and _", name)
		}
	}
	if len(e.spec.Vars) == 0 {
		b.Reject(key+".vars", "names no variable; name some, or write environment: denyAll")
	}
	return policy.Env{Stance: policy.Listed, Vars: e.spec.Vars}
}

// secrets are what it may be lent, which is of use to what goes somewhere.
func (b *builder) secrets(names []string, network policy.Network) []string {
	for i, name := range names {
		key := fmt.Sprintf("policy.secrets[%d]", i)
		if err := policy.CheckSecret(name); err != nil {
			b.Reject(key, "%v", err)
		} else if network.Stance <= policy.None {
			b.Reject(key, "signs in at servers, and the tool declares no network; name the servers in policy.network.hosts")
		}
	}
	return names
}

func variable(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return strings.Trim(s[:1], letters) == "" && strings.Trim(s, letters+"0123456789") == ""
}
