package restrict

import "github.com/writ-run/writ/sandbox/reach"

// HostTree are the grants of a box that sees the tree of the host: only what the plan
// names, and what every box has.
func HostTree(p *reach.Plan) []Grant {
	var out []Grant
	add := func(paths []string, g Grant) {
		for _, g.Path = range paths {
			out = append(out, g)
		}
	}
	any := !p.Listed
	add(reach.GlobAll(reach.SystemFiles), Grant{Read: true})
	add(reach.SystemDevices, Grant{Device: true})
	add(p.System, Grant{Read: true, Exec: any})
	add(reach.PrivateDirs, Grant{Write: true, Exec: any})
	add(p.Read, Grant{Read: true, Exec: any, Strict: true})
	add(p.Write, Grant{Write: true, Exec: any, Strict: true})
	if p.List {
		add([]string{"/"}, Grant{List: true})
	}
	if p.Listed {
		add(p.Programs, Grant{Read: true, Exec: true})
		add(reach.GlobAll(reach.Loaders), Grant{Read: true, Exec: true})
	}
	return out
}
