package sshagent

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHFiles implements sandbox.Agent. No server but those that it is for is in them.
func (a *Agent) SSHFiles() map[string][]byte {
	var known strings.Builder
	for _, l := range a.logins {
		for _, k := range l.known.Keys {
			fmt.Fprintln(&known, knownhosts.Line([]string{knownhosts.Normalize(l.Address)}, k))
		}
		for _, k := range l.known.Authorities {
			fmt.Fprintln(&known, "@cert-authority", knownhosts.Line([]string{knownhosts.Normalize(l.Address)}, k))
		}
	}
	return map[string][]byte{"ssh_config": []byte(a.config()), "ssh_known_hosts": []byte(known.String())}
}

// config has ssh be the user that the key is for, at the port of the server, and ask nobody.
func (a *Agent) config() string {
	var b strings.Builder
	said := map[string]bool{}
	for _, l := range a.logins {
		host, port, err := net.SplitHostPort(l.Address)
		if err != nil || said[host] { // ssh tells hosts apart by name alone: the first is what is meant without a port
			continue
		}
		said[host] = true
		fmt.Fprintf(&b, "Host %s\n  User %s\n  Port %s\n", host, l.User, port)
	}
	b.WriteString(`Host *
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile /dev/null
  UpdateHostKeys no
  ForwardAgent no
`)
	return b.String()
}
