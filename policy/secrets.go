package policy

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ/host"
)

// ssh is what a tool names in its secrets to sign in by ssh: alone wherever the caller may,
// or with a server, on port 22 unless said.
const ssh = "ssh"

// CheckSecret refuses what no tool can be lent.
func CheckSecret(text string) error {
	at, ok := strings.CutPrefix(text, ssh+":")
	if text == ssh || ok && server(at) != "" {
		return nil
	}
	return fmt.Errorf("%q is nothing that a tool can be lent; write ssh, or ssh:HOST for one server", clip(text))
}

// server is the normal form of a server of ssh; empty: it is none.
func server(text string) string {
	if !strings.Contains(text, ":") {
		text += ":22"
	}
	e, err := host.ParseEndpoint(text)
	if err != nil {
		return ""
	}
	return e.String()
}

// SignsIn reports whether the tool declares that it signs in at a server of ssh, by its
// normal form.
func (p Policy) SignsIn(normal string) bool {
	for _, s := range p.Secrets {
		if at, one := strings.CutPrefix(s, ssh+":"); s == ssh || one && server(at) == normal {
			return true
		}
	}
	return false
}
