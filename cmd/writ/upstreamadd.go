package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/upstream"
)

// adding is what the flags of add say.
type adding struct {
	url, dir, prefix  string
	readAction        string
	yes               bool
	read, write       []string
	hosts             []string
	env, headers      []string
	enabled, disabled []string
}

func (a *app) upstreamAdd() *cobra.Command {
	var o adding
	c := &cobra.Command{
		Use: "add NAME [-- PROGRAM ARGUMENT…]", Short: "Put an MCP server behind the gateway",
		Long: `Put an MCP server behind the gateway: a program, which runs in a box that reaches the
system's programs, --read, --write and --host and nothing else; or a server at a URL. It is
written to upstreams/NAME.yaml beside the configuration, which may hold secrets and is
for its owner alone, and a daemon that runs takes it up. Its tools are suspended until
a person accepts them. The exit code is 1 if it is written and does not come up.`,
		Example: `  writ upstream add files --write /data -- /opt/mcp/files-server /data
  writ upstream add notes --read ~/notes --env LEVEL=debug -- node ~/notes/server.js
  writ upstream add weather --host api.weather.example -- /opt/mcp/weather
  writ upstream add tracker --url https://tracker.example.com/mcp --header 'Authorization: Bearer …'
  writ upstream add search --url https://search.example.com/mcp --enabled query --prefix none`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case len(args) == 0 || dash == 0 || args[0] == "":
				return usagef("expected a name for the server, and after -- its program; or --url")
			case dash < 0 && len(args) > 1 || dash > 1:
				return usagef("put -- before the program: writ upstream add %s -- %s", args[0], strings.Join(args[1:], " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := o.server(cmd, args[1:])
			if err != nil {
				return err
			}
			if err := upstream.CheckServerName(args[0]); err != nil {
				return usageError{err}
			}
			path, err := config.Path(a.configFlag)
			if err != nil {
				return err
			}
			plans := []planned{{args[0], u}}
			cfg, err := checked(path, plans)
			if err != nil {
				return err
			}
			if err := a.warned(cmd.Context(), cfg, plans, o.yes); err != nil {
				return err
			}
			if err := writeServers(path, plans); err != nil {
				return err
			}
			return a.added(cmd.Context(), path, cfg, plans)
		},
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	f := c.Flags()
	f.StringVar(&o.url, "url", "", "the server's address: https, or http of this machine")
	f.StringArrayVar(&o.headers, "header", nil, "'Name: value' that goes with every request; may be given several times")
	f.StringArrayVar(&o.read, "read", nil, "a path that its box may read; may be given several times")
	f.StringArrayVar(&o.write, "write", nil, "a path that its box may write; may be given several times")
	f.StringArrayVar(&o.hosts, "host", nil, "a host that its box may reach: HOST, HOST:PORT or *.DOMAIN; may be given several times")
	f.StringArrayVar(&o.env, "env", nil, "NAME=VALUE in its environment; may be given several times")
	f.StringVar(&o.dir, "dir", "", "the directory that it starts in")
	f.StringVar(&o.prefix, "prefix", "name", "what stands before its tools' names: name or none")
	f.StringSliceVar(&o.enabled, "enabled", nil, "only these of its tools, by its own names")
	f.StringSliceVar(&o.disabled, "disabled", nil, "not these of its tools")
	f.StringVar(&o.readAction, "read-action", "", "the action type of its tools that a person accepts as reading only, such as code:read (default comms:external)")
	f.BoolVar(&o.yes, "yes", false, "do not ask where open requests end by it")
	a.flagWords(c, "prefix", []string{"name", "none"})
	return c
}

// server is the server that the flags and the command make.
func (o *adding) server(cmd *cobra.Command, command []string) (config.Upstream, error) {
	u := config.Upstream{Command: command, URL: o.url, Enabled: o.enabled, Disabled: o.disabled, ReadAction: action.Type(o.readAction)}
	if flag := anyChanged(cmd, "read", "write", "host", "env", "dir"); o.url != "" && flag != "" {
		return u, usagef("--%s is for a program in a box, and --url names a server elsewhere; leave one out", flag)
	}
	switch {
	case o.url != "" && len(command) > 0:
		return u, usagef("give a program or --url, not both")
	case o.url == "" && len(command) == 0:
		return u, usagef("say what the server is: a program after --, or --url")
	case o.url == "" && len(o.headers) > 0:
		return u, usagef("--header is for a server with --url")
	case o.prefix != "name" && o.prefix != "none":
		return u, usagef("--prefix %q: write name or none", o.prefix)
	case o.prefix == "none":
		u.Prefix = "none"
	}
	var err error
	if u.Env, err = split(o.env, "=", "--env", "NAME=VALUE"); err != nil {
		return u, err
	}
	if u.Headers, err = split(o.headers, ":", "--header", "'Name: value'"); err != nil {
		return u, err
	}
	for into, paths := range map[*[]string][]string{&u.Read: o.read, &u.Write: o.write} {
		for _, p := range paths {
			if *into = append(*into, full(p)); p == "" {
				return u, usagef("--read and --write take a path")
			}
		}
	}
	for _, text := range o.hosts {
		p, err := host.ParsePattern(text)
		if err != nil {
			return u, usagef("--host: %v", err)
		}
		u.Hosts = append(u.Hosts, p.String())
	}
	if o.dir != "" {
		u.Dir = full(o.dir)
	}
	startable(&u)
	return u, nil
}

// split reads NAME and VALUE out of flags. The error names the flag alone: the value may
// be a secret.
func split(texts []string, by, flag, form string) (map[string]string, error) {
	out := map[string]string{}
	for _, t := range texts {
		k, v, ok := strings.Cut(t, by)
		k = strings.TrimSpace(k)
		if _, twice := out[k]; !ok || k == "" || twice {
			return nil, usagef("%s is written %s, each name once", flag, form)
		}
		if out[k] = v; by == ":" {
			out[k] = strings.TrimSpace(v)
		}
		if out[k] == "" {
			return nil, usagef("%s %s has no value; give one, or leave it out", flag, k)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// full is a path that means the same wherever it is read.
func full(p string) string {
	if strings.HasPrefix(p, "~/") {
		return p
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return p // the check of the configuration refuses it
	}
	return abs
}

// startable makes a program's path absolute and lets its box read the program itself,
// and where it starts: without those nothing would run.
func startable(u *config.Upstream) {
	if len(u.Command) == 0 {
		return
	}
	reaches := func(p string) bool {
		return slices.ContainsFunc(slices.Concat(sandbox.Programs(), u.Read, u.Write), func(dir string) bool { return policy.Below(p, dir) })
	}
	if u.Dir != "" && !reaches(u.Dir) {
		u.Read = append(u.Read, u.Dir)
	}
	u.Command = slices.Clone(u.Command)
	if strings.Contains(u.Command[0], "/") {
		if u.Command[0] = full(u.Command[0]); !reaches(u.Command[0]) {
			u.Read = append(u.Read, u.Command[0])
		}
	}
}
