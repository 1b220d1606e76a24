package config

import (
	"os"
	"strings"

	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
)

// EgressSSH is how git's tools get to servers by ssh. The daemon speaks it for them: no
// key and no way to use one is in a box.
type EgressSSH struct {
	KnownHosts string             `yaml:"known_hosts"` // which keys servers have; the system's file unless said
	Hosts      map[string]SSHHost `yaml:"hosts"`       // by host, or host:port where that is not 22
}

// SSHHost is whom the daemon is on a server.
type SSHHost struct {
	Key  secret.Ref `yaml:"key"`  // a private key
	User string     `yaml:"user"` // git unless said
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
		at := text
		if !strings.Contains(text, ":") {
			at += ":22"
		}
		e, err := host.ParseEndpoint(at)
		if err != nil {
			d.Reject(key, "%v", err)
			continue
		}
		if other, twice := c.SSH.Hosts[e]; twice {
			d.Reject(key, "says of %s what is said at %s already; keep one", e, other.At)
		}
		if l, ok := c.login(d, key, raw.Hosts[text]); ok {
			c.SSH.Hosts[e] = l
		}
	}
}

func (c *Config) login(d *strict.File, key string, raw SSHHost) (Login, bool) {
	l := Login{User: "git", At: c.At(key)}
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
	case info.Mode().Perm()&0o077 != 0:
		d.Reject(key+".key", "others can get at it (mode %04o); run: chmod 600 %s", info.Mode().Perm(), l.Key.Name)
	default:
		return l, true
	}
	return l, false
}
