package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/sshagent"
	"github.com/writ-run/writ/host"
)

// signsIn are the servers at which a command may be a person, by that person's own agent
// of ssh: [USER@]HOST[:PORT], each.
func (c *confined) signsIn() ([]writ.SignIn, error) {
	var out []writ.SignIn
	for _, text := range c.ssh {
		s, err := parseSignIn(text)
		if err != nil {
			return nil, Usagef("--ssh %q: %v", text, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func parseSignIn(text string) (writ.SignIn, error) {
	if _, _, url := strings.Cut(text, "://"); url {
		return writ.SignIn{}, errors.New("it is a URL; write the server alone, such as git@github.com or deploy@build.example:2222")
	}
	name, at, named := strings.Cut(text, "@")
	if !named {
		u, err := user.Current()
		if err != nil {
			return writ.SignIn{}, fmt.Errorf("who you are is not known; write USER@%s", text)
		}
		name, at = u.Username, text
	}
	if name == "" || name[0] == '-' || strings.ContainsAny(name, " \t\n\"'\\#=%$:/") {
		return writ.SignIn{}, fmt.Errorf("%q is not the name of a user; write one such as git@github.com", name)
	}
	e, err := host.ParseServer(at)
	return writ.SignIn{Host: e.String(), User: name, Key: "of your own agent of ssh"}, err
}

// signer is the agent of ssh of the box; nil: it signs in nowhere. It asks the person's own,
// which has the keys.
func signer(to []writ.SignIn, log func(egress.Event)) (*sshagent.Agent, error) {
	if len(to) == 0 {
		return nil, nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, writ.Fail(writ.Invalid, "--ssh signs by your own agent of ssh, and you have none (SSH_AUTH_SOCK is empty); start one: eval $(ssh-agent) && ssh-add", nil)
	}
	if c, err := net.DialTimeout("unix", socket, 5*time.Second); err != nil {
		return nil, writ.Fail(writ.Invalid, "--ssh signs by your own agent of ssh, and nothing answers at "+Visible(socket)+" (SSH_AUTH_SOCK); start one: eval $(ssh-agent) && ssh-add", err)
	} else if err := c.Close(); err != nil {
		return nil, err
	}
	o := sshagent.Options{KnownHosts: knownHosts(), Log: log}
	for _, s := range to {
		o.Logins = append(o.Logins, sshagent.Login{Address: s.Host, User: s.User, Keys: sshagent.Theirs(socket), At: "--ssh " + s.User + "@" + s.Host})
	}
	a, err := sshagent.New(o)
	if err != nil {
		return nil, writ.Fail(writ.Invalid, "--ssh: "+err.Error(), err)
	}
	return a, nil
}

// knownHosts are the files in which a person has the keys of servers.
func knownHosts() []string {
	files := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".ssh/known_hosts"))
	}
	var out []string
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			out = append(out, f)
		}
	}
	if out == nil { // what is said of none names one
		return files[len(files)-1:]
	}
	return out
}

// outSigning is the way out of a box whose programs sign in. It implements sandbox.Agent.
type outSigning struct {
	outOf
	*sshagent.Agent
}
