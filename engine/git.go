package engine

import (
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/gitssh"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/tool/git"
)

// gitEndpoint is the host and port of a URL as git's tools read it. What is wrong with it
// is said without repeating it, since there may be a password in it (I7).
func gitEndpoint(text string) (string, error) {
	u, err := git.ParseURL(text)
	if err != nil {
		_, msg := writ.Public(err)
		return "", fmt.Errorf("%s", msg)
	}
	return u.Endpoint().String(), nil
}

// ofGit is what holds of a host besides when one of git's tools goes there. What is
// reached by ssh the daemon speaks to.
func (e *Engine) ofGit(c writ.Call, rule egress.Rule) egress.Rule {
	if !slices.Contains(git.Outward, c.Tool) {
		return rule
	}
	cfg := e.at().cfg
	rule.Steady = !cfg.Git.Varies
	for _, t := range c.Targets {
		u, err := git.ParseURL(t.Value)
		if t.Kind != writ.TargetHost || t.Pointer != "/url" || err != nil {
			continue
		}
		rule.Inner = slices.Contains(cfg.Git.Inner, u.Endpoint().Host)
		if user, path, ok := u.SSH(); ok {
			rule.Via = repository(cfg.SSH, u.Endpoint(), user, path, c.Tool == git.Push).Speak
		}
	}
	return rule
}

// repository is what is spoken to by ssh, with what the operator gave for its server.
func repository(said config.SSH, at host.Endpoint, user, path string, push bool) gitssh.Repository {
	r := gitssh.Repository{Address: at.String(), User: user, Path: path, Push: push, KnownHosts: said.KnownHosts}
	// A key is for one user: as another it is nobody's to use.
	if login, ok := said.Hosts[at]; ok && (user == "" || user == login.User) {
		r.User, r.KeyFile = login.User, login.Key
	}
	return r
}

// usable refuses keys that could not be used when they are needed.
func usable(said config.SSH) error {
	for _, l := range said.Hosts {
		if _, err := gitssh.Key(l.Key); err != nil {
			return fmt.Errorf("%s: the key %s: %w", l.At, l.Key, err)
		}
	}
	return nil
}
