package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/secret"
)

// serverFlags are what is said of a server on the command line.
type serverFlags struct {
	url, dir, prefix, readAction string
	callTimeout, connectTimeout  string
	read, write, hosts           []string
	env, secretEnv               []string
	headers, secretHeaders       []string
	bearer                       string
	enabled, disabled            []string
	cacheable, relay             []string
}

// boxFlags are those of a program in a box, webFlags those of a server at a URL, and
// ruleFlags say what holds of either.
var (
	ruleFlags = []string{"prefix", "enabled", "disabled", "cacheable", "relay", "call-timeout", "connect-timeout", "read-action"}
	boxFlags  = []string{"read", "write", "host", "env", "secret-env", "dir"}
	webFlags  = []string{"header", "secret-header", "bearer"}
)

const aURL = "the server's address: https, or http of this machine"

func (a *App) serverFlags(c *cobra.Command, o *serverFlags) {
	f := c.Flags()
	f.StringArrayVar(&o.headers, "header", nil, "'Name: value' that goes with every request; may be given several times")
	f.StringVar(&o.bearer, "bearer", "", "where the token is kept that proves it: store:NAME, env:NAME, file:/abs/path, …")
	f.StringArrayVar(&o.secretHeaders, "secret-header", nil, "'Name: store:NAME', a header and where its value is kept; may be given several times")
	f.StringArrayVar(&o.read, "read", nil, "a path that its box may read; may be given several times")
	f.StringArrayVar(&o.write, "write", nil, "a path that its box may write; may be given several times")
	f.StringArrayVar(&o.hosts, "host", nil, "a host that its box may reach: HOST, HOST:PORT or *.DOMAIN; may be given several times")
	f.StringArrayVar(&o.env, "env", nil, "NAME=VALUE in its environment, or NAME with the value that it has here; may be given several times")
	f.StringArrayVar(&o.secretEnv, "secret-env", nil, "NAME=store:NAME, a variable and where its value is kept; may be given several times")
	f.StringVar(&o.dir, "dir", "", "the directory that it starts in")
	f.StringVar(&o.prefix, "prefix", "name", "what stands before its tools' names: name or none")
	f.StringSliceVar(&o.enabled, "enabled", nil, "only these of its tools, by its own names")
	f.StringSliceVar(&o.disabled, "disabled", nil, "not these of its tools")
	f.StringSliceVar(&o.cacheable, "cacheable", nil, "tools whose results may be a minute old, of those that only read")
	f.StringSliceVar(&o.relay, "relay", nil, "what it may ask of a client in the middle of a call: elicitation, sampling")
	f.StringVar(&o.callTimeout, "call-timeout", "", "how long a call of it may take, at most 10m (default 30s)")
	f.StringVar(&o.connectTimeout, "connect-timeout", "", "how long it may take to answer at first, at most 10m (default 10s)")
	f.StringVar(&o.readAction, "read-action", "", "the action type of its tools that a person accepts as reading only, such as code:read (default comms:external)")
	a.FlagWords(c, "prefix", []string{"name", "none"})
	a.FlagWords(c, "relay", []string{"elicitation", "sampling"})
	a.FlagWords(c, "read-action", actionTypes())
	a.flagValues(c, "bearer", secretRefs)
}

func actionTypes() []string {
	var out []string
	builtIn, err := action.NewRegistry(nil)
	if err != nil {
		return nil
	}
	for _, t := range builtIn.Types() {
		out = append(out, string(t))
	}
	return out
}

// onto puts what the flags say onto a server: lists grow, variables and headers are set by
// name, and all else is replaced.
func (o *serverFlags) onto(cmd *cobra.Command, u *config.Upstream) error {
	if u.URL = cmp.Or(o.url, u.URL); o.dir != "" {
		u.Dir = full(o.dir)
	}
	switch flag := anyChanged(cmd, boxFlags...); {
	case u.URL != "" && flag != "":
		return Usagef("--%s is for a program in a box, and a server with a URL is elsewhere; leave one out", flag)
	case u.URL == "" && anyChanged(cmd, webFlags...) != "":
		return Usagef("--%s is for a server with --url; a program gets credentials as variables: --secret-env NAME=store:NAME", anyChanged(cmd, webFlags...))
	case o.prefix != "name" && o.prefix != "none":
		return Usagef("--prefix %q: write name or none", o.prefix)
	}
	if cmd.Flags().Changed("prefix") {
		u.Prefix = map[string]config.Prefix{"none": "none"}[o.prefix]
	}
	u.ReadAction = cmp.Or(action.Type(o.readAction), u.ReadAction)
	for list, more := range map[*[]string][]string{&u.Enabled: o.enabled, &u.Disabled: o.disabled, &u.Cacheable: o.cacheable} {
		*list = grown(*list, more...)
	}
	for _, text := range o.relay {
		var r config.Relay
		if err := r.UnmarshalText([]byte(text)); err != nil {
			return Usagef("--relay: %v", err)
		}
		u.Relay = grown(u.Relay, r)
	}
	for flag, into := range map[string]*config.Duration{"call-timeout": &u.CallTimeout, "connect-timeout": &u.ConnectTimeout} {
		if text := map[string]string{"call-timeout": o.callTimeout, "connect-timeout": o.connectTimeout}[flag]; text != "" {
			if err := into.UnmarshalText([]byte(text)); err != nil {
				return Usagef("--%s: %v", flag, err)
			}
		}
	}
	if err := o.reach(u); err != nil {
		return err
	}
	return o.values(u)
}

// reach puts on what a box reaches.
func (o *serverFlags) reach(u *config.Upstream) error {
	for flag, paths := range map[string][]string{"--read": o.read, "--write": o.write, "--dir": {o.dir}} {
		for _, p := range paths {
			switch _, err := os.Stat(config.AtHome(full(p))); {
			case p == "" && flag != "--dir":
				return Usagef("%s takes a path", flag)
			case p != "" && err != nil:
				return fmt.Errorf("%s %s: there is no such file or directory; make it first, or correct it", flag, p)
			case flag == "--read":
				u.Read = grown(u.Read, full(p))
			case flag == "--write":
				u.Write = grown(u.Write, full(p))
			}
		}
	}
	for _, text := range o.hosts {
		p, err := host.ParsePattern(text)
		if err != nil {
			return Usagef("--host: %v", err)
		}
		u.Hosts = grown(u.Hosts, p.String())
	}
	return nil
}

// values puts on variables and headers, as they are and by reference.
func (o *serverFlags) values(u *config.Upstream) error {
	env, err := variables(o.env)
	if err != nil {
		return err
	}
	headers, err := split(o.headers, ":", "--header", "'Name: value'")
	if err != nil {
		return err
	}
	if err := meant(env, headers); err != nil {
		return err
	}
	secretEnv, err := refs(o.secretEnv, "=", "--secret-env", "NAME=store:NAME")
	if err != nil {
		return err
	}
	secretHeaders, err := refs(o.secretHeaders, ":", "--secret-header", "'Name: store:NAME'")
	if err != nil {
		return err
	}
	for name := range env {
		delete(u.SecretEnv, name)
	}
	for name := range secretEnv {
		delete(u.Env, name)
	}
	u.Env, u.Headers, u.SecretEnv = joined(u.Env, env), joined(u.Headers, headers), joined(u.SecretEnv, secretEnv)
	return o.proof(u, secretHeaders)
}

// proof puts on how a server at a URL is proven.
func (o *serverFlags) proof(u *config.Upstream, headers map[string]secret.Ref) error {
	switch {
	case o.bearer != "" && len(headers) > 0:
		return Usagef("give --bearer or --secret-header, not both; a header may be 'Authorization: store:NAME' with the whole value kept there")
	case o.bearer != "":
		ref, err := secret.ParseRef(o.bearer)
		if err != nil {
			return Usagef("--bearer: %v", err)
		}
		u.Auth = config.Auth{Type: "bearer", Secret: ref}
	case len(headers) > 0:
		if u.Auth.Type != "headers" {
			u.Auth = config.Auth{Type: "headers"}
		}
		u.Auth.Headers = joined(u.Auth.Headers, headers)
	}
	for name := range u.Headers { // one that was written there as it is
		if _, now := headers[name]; now || o.bearer != "" && strings.EqualFold(name, "Authorization") {
			delete(u.Headers, name)
		}
	}
	return nil
}

func grown[T comparable](list []T, more ...T) []T {
	out := slices.Clone(list)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func joined[V any](m, more map[string]V) map[string]V {
	out := maps.Clone(m)
	if out == nil && len(more) > 0 {
		out = map[string]V{}
	}
	maps.Copy(out, more)
	return out
}
