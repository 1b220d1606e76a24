package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/gitssh"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/tool/external"
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

// lent is the connection of which the repository that a call names gets credentials: of
// those that are for the agent the one whose address says most of the repository's. None is
// no problem, since the repository may be everybody's.
func (r *rules) lent(call *writ.Call) []writ.Target {
	if !slices.Contains(git.Outward, call.Tool) {
		return nil
	}
	for _, t := range call.Targets {
		u, err := git.ParseURL(t.Value)
		if t.Kind != writ.TargetHost || t.Pointer != "/url" || err != nil {
			continue
		}
		path, ok := u.HTTPS()
		if !ok {
			return nil
		}
		best, most := "", -1
		for _, name := range sortedNames(r.cfg.Connections) {
			c := r.cfg.Connections[name]
			if said, ok := c.Covers(t.Host, path); ok && said > most && r.usedBy(name, call.Root()) {
				best, most = name, said
			}
		}
		if best != "" {
			return []writ.Target{{Pointer: t.Pointer, Value: best, Kind: writ.TargetConnection, Host: t.Host}}
		}
	}
	return nil
}

// ofGit is what holds of a host besides when one of git's tools goes there. What is
// reached by ssh the daemon speaks to, and by https it adds the credentials that the call
// was decided with.
func (e *Engine) ofGit(w writ.Writ, rule egress.Rule) (egress.Rule, error) {
	c := w.Call()
	if !slices.Contains(git.Outward, c.Tool) {
		return rule, nil
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
			rule.Via = e.repository(cfg.SSH, u.Endpoint(), user, path, c.Tool == git.Push).Speak
		}
		if path, ok := u.HTTPS(); ok && w.Confinement().Connection != nil {
			over, err := outside{e}.Connection(w)
			if err != nil {
				return egress.Rule{}, err
			}
			rule.Over = e.external.Lend(over, external.Repository{Path: path, Push: c.Tool == git.Push})
		}
	}
	return rule, nil
}

// repository is what is spoken to by ssh, with what the operator gave for its server.
func (e *Engine) repository(said config.SSH, at host.Endpoint, user, path string, push bool) gitssh.Repository {
	r := gitssh.Repository{Address: at.String(), User: user, Path: path, Push: push, KnownHosts: said.KnownHosts}
	// A key is for one user: as another it is nobody's to use.
	if login, ok := said.Hosts[at]; ok && (user == "" || user == login.User) {
		r.User, r.Key = login.User, func(ctx context.Context) (string, error) {
			v, err := e.secrets().Resolve(ctx, login.Key)
			return v.Reveal(), err
		}
	}
	return r
}
