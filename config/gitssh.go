package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
)

// EgressSSH is how servers of ssh are got to. For git's tools the daemon speaks it; commands
// of the agents that are named sign in by an agent of ssh. No key is in a box either way.
type EgressSSH struct {
	KnownHosts string             `yaml:"known_hosts"` // which keys servers have; the system's file unless said
	Hosts      map[string]SSHHost `yaml:"hosts"`       // by host, or host:port where that is not 22
}

// SSHHost is whom the daemon is on a server.
type SSHHost struct {
	Key  secret.Ref `yaml:"key"`  // a private key
	User string     `yaml:"user"` // git unless said
	// Agents are those, with all below them, whose commands sign in there; empty: nobody's do.
	Agents []string `yaml:"agents"`
}

// SSH is an EgressSSH that was read.
type SSH struct {
	KnownHosts string
	Hosts      map[host.Endpoint]Login
}

// Login is one SSHHost that was read.
type Login struct {
	User, At string
	Key      secret.Ref
	Agents   access.Set[[]string]
}

// systemKnownHosts is where an operator of the machine says which keys servers have.
const systemKnownHosts = "/etc/ssh/ssh_known_hosts"

func (c *Config) checkSSH(d *strict.File) {
	raw := c.File.Egress.SSH
	c.SSH = SSH{KnownHosts: systemKnownHosts, Hosts: map[host.Endpoint]Login{}}
	if raw.KnownHosts != "" {
		const key = "egress.ssh.known_hosts"
		at, ok := c.path(d, key, raw.KnownHosts)
		if info, err := os.Stat(at); ok && (err != nil || !info.Mode().IsRegular()) {
			d.Reject(key, "%s is not a file; make one: ssh-keyscan HOST, and compare what it says with what the server's operator publishes", at)
		} else if ok && info.Mode().Perm()&0o022 != 0 {
			d.Reject(key, "others can write to it (mode %04o), and whoever can chooses the servers; run: chmod go-w %s", info.Mode().Perm(), at)
		}
		c.SSH.KnownHosts = at
	}
	for _, text := range sorted(raw.Hosts) {
		key := strict.Member("egress.ssh.hosts", text)
		e, err := host.ParseServer(text)
		if err != nil {
			d.Reject(key, "%v", err)
			continue
		}
		if other, twice := c.SSH.Hosts[e]; twice {
			d.Reject(key, "says of %s what is said at %s already; keep one", e, other.At)
		}
		if l, ok := c.login(d, key, raw.Hosts[text]); ok {
			c.SSH.Hosts[e] = l
			c.warnUnasked(e, l)
		}
	}
}

// warnUnasked says where a word about clones is one about commands as well.
func (c *Config) warnUnasked(e host.Endpoint, l Login) {
	for _, s := range c.Egress {
		if !s.Host.Match(e) {
			continue
		}
		if len(l.Agents.V) > 0 && s.Class == writ.ClassReadOnly {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: commands of %s sign in at %s without asking anybody, and may do there whatever the key may: %s says read_only", l.Agents.At, strings.Join(l.Agents.V, ", "), e, s.At))
		}
		return // the narrowest counts
	}
}

func (c *Config) login(d *strict.File, key string, raw SSHHost) (Login, bool) {
	l := Login{User: "git", At: c.At(key), Agents: access.Set[[]string]{V: raw.Agents, At: c.At(key + ".agents")}}
	if len(raw.Agents) == 0 { // which somebody who misses them writes there
		l.Agents.At = l.At
	}
	for i, agent := range raw.Agents {
		c.checkUser(d, fmt.Sprintf("%s.agents[%d]", key, i), agent)
	}
	if raw.User != "" {
		l.User = raw.User
	}
	if strings.Trim(l.User, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || l.User[0] == '-' {
		d.Reject(key+".user", "%q is not the name of a user; write one such as git", l.User)
	}
	if l.Key = raw.Key; l.Key == (secret.Ref{}) {
		if !d.Unread(key + ".key") {
			d.Reject(key+".key", "is missing; write where a private key is kept, such as file:/etc/writ/deploy_key or store:deploy-key")
		}
		return l, false
	}
	c.secretFile(d, key+".key", l.Key)
	if l.Key.Backend != "file" {
		return l, true
	}
	info, err := os.Stat(l.Key.Name)
	switch {
	case err != nil || !info.Mode().IsRegular():
		d.Reject(key+".key", "%s is not a file; make a key: ssh-keygen -t ed25519 -N '' -f %s", l.Key.Name, l.Key.Name)
	case strings.HasSuffix(l.Key.Name, ".pub"):
		d.Reject(key+".key", "%s is the public half of a key; name the private one, beside it without .pub", l.Key.Name)
	case info.Mode().Perm()&0o077 != 0:
		d.Reject(key+".key", "others can get at it (mode %04o); run: chmod 600 %s", info.Mode().Perm(), l.Key.Name)
	default:
		return l, true
	}
	return l, false
}
