package engine

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/sshagent"
	"github.com/writ-run/writ/host"
)

// signIns are what deciding needs of the servers at which commands sign in.
func (r *rules) signIns() map[string]decide.SignIn {
	out := map[string]decide.SignIn{}
	for at, l := range r.cfg.SSH.Hosts {
		out[at.String()] = decide.SignIn{Reach: reachOf(at, l), Agents: l.Agents}
	}
	return out
}

func reachOf(at host.Endpoint, l config.Login) writ.SignIn {
	return writ.SignIn{Host: at.String(), User: l.User, Key: l.Key.String()}
}

// signer is the agent of ssh for the box of a call: for the servers that it was decided
// with, as they are said in the rules in force or in the ones just before.
func (e *Engine) signer(w writ.Writ, t *told) (*sshagent.Agent, error) {
	o := sshagent.Options{Log: func(ev egress.Event) {
		ev.Call, ev.Agent = t.call, t.agent
		t.add(ev)
	}}
	for _, decided := range w.Confinement().SSH {
		l, known, ok := e.login(decided)
		if !ok {
			return nil, writ.Fail(writ.Changed, "how "+decided.Host+" is signed in at changed since the call was decided; make it again", nil)
		}
		o.KnownHosts = []string{known}
		o.Logins = append(o.Logins, sshagent.Login{Address: decided.Host, User: l.User, At: l.At, Keys: sshagent.Text(func(ctx context.Context) (string, error) {
			v, err := e.secrets().Resolve(ctx, l.Key)
			return v.Reveal(), err
		})})
	}
	a, err := sshagent.New(o)
	if err != nil {
		return nil, writ.Fail(writ.Denied, "denied: "+err.Error(), err)
	}
	return a, nil
}

// login is what the operator says of a server, where it is what was decided with.
func (e *Engine) login(decided writ.SignIn) (l config.Login, known string, ok bool) {
	for _, r := range []*rules{e.rules.Load(), e.prior.Load()} {
		if r == nil {
			continue
		}
		for at, l := range r.cfg.SSH.Hosts {
			if reachOf(at, l) == decided {
				return l, r.cfg.SSH.KnownHosts, true
			}
		}
	}
	return l, "", false
}
