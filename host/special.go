package host

import "strings"

// SpecialName reports whether a name is not public whatever it resolves to, and
// why, in one word that is also a metric label. Such names are answered by this
// machine, this network or this cluster; some resolver somewhere answers them
// differently, so the address alone is not asked. Addresses are never special;
// the zero Host is.
//
// .test and .example are left to the resolver.
func SpecialName(h Host) (reason string, ok bool) {
	name, isName := h.Name()
	if !isName {
		_, isAddr := h.Addr()
		if isAddr {
			return "", false
		}
		return "empty", true
	}
	switch {
	case name == "metadata.google.internal":
		return "metadata", true
	case under(name, "localhost"):
		return "loopback", true
	case under(name, "docker.internal"):
		return "docker", true
	// The API server, under whatever domain the cluster was given.
	case name == "kubernetes", name == "kubernetes.default", strings.HasPrefix(name, "kubernetes.default."):
		return "kubernetes", true
	case under(name, "svc"), under(name, "cluster.local"):
		return "kubernetes", true
	case under(name, "local"):
		return "mdns", true
	case under(name, "internal"):
		return "internal", true
	case under(name, "home.arpa"):
		return "home_network", true
	case under(name, "onion"):
		return "onion", true
	case under(name, "invalid"):
		return "invalid", true
	}
	return "", false
}

// under reports whether name is domain or below it, by whole labels.
func under(name, domain string) bool {
	rest, ok := strings.CutSuffix(name, domain)
	return ok && (rest == "" || rest[len(rest)-1] == '.')
}
