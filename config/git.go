package config

import (
	"fmt"

	"github.com/writ-run/writ/host"
)

// Git is what is said of the servers that git's tools go to.
type Git struct {
	Inner  []host.Host // may have private addresses
	Varies bool        // names may have other addresses from one question to the next
}

// clones is the tool that the keys of Git are written at, which all that go to a server
// obey: what may be cloned may be fetched.
const clones = "git_clone"

func (b *builder) git(key, name string, raw ToolRule) {
	if name != clones {
		if raw.HostnameAllowlist != nil {
			b.fail(key+".hostname_allowlist", "belongs to %s, and holds for git_fetch and git_push too; write it there", clones)
		}
		if raw.Mitigation != nil {
			b.fail(key+".dns_rebinding_mitigation", "belongs to %s, and holds for git_fetch and git_push too; write it there", clones)
		}
		return
	}
	for i, text := range raw.HostnameAllowlist {
		h, err := host.Parse(text)
		if _, isName := h.Name(); err != nil || !isName {
			b.fail(fmt.Sprintf("%s.hostname_allowlist[%d]", key, i), "%q is not the name of a host; write one such as git.example.com, without port", text)
			continue
		}
		b.Git.Inner = append(b.Git.Inner, h)
	}
	b.Git.Varies = raw.Mitigation != nil && !*raw.Mitigation
	if b.Git.Varies {
		b.warn(key+".dns_rebinding_mitigation", "is false: within one call a server's name may lead to another address from one question to the next")
	}
}
