package git

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/trust"
)

// ofHTTP is what a repository can say of a URL, or of a part of one, and what would count
// more than a setting for all of them. Said of the whole URL it beats them all.
var ofHTTP = [][2]string{
	{"followRedirects", "false"}, {"proxy", ""}, {"curloptResolve", ""}, {"sslVerify", "true"}, {"extraHeader", ""}, {"cookieFile", ""}, {"saveCookies", "false"},
}

// bound is the environment by which git goes to the URL and nowhere else. remote is a name
// that nobody can guess: a repository's url.*.insteadOf and pushInsteadOf lead every URL
// that they know the beginning of elsewhere, and the longest of them counts, or the first of
// those as long. Empty: there is no repository yet, and the URL is its own name.
//
// By ssh, git asks in its plain protocol at the same host and port: what it says there the
// daemon says to the server, by ssh, since there is no key in a box. The repository
// remembers the URL as it is.
func (u URL) bound(remote string) []string {
	protocol, to, called := "https", u.String(), u.String()
	if u.ssh {
		protocol, to = "git", "git://"+u.at.String()+"/"+strings.TrimPrefix(u.path, "/")
	}
	var pairs [][2]string
	if remote != "" {
		called = remote
		pairs = append(pairs, [2]string{"remote." + remote + ".url", remote}, [2]string{"remote." + remote + ".pushurl", remote}) // pushInsteadOf is not for a pushurl
	}
	if to != called {
		pairs = append(pairs, [2]string{"url." + to + ".insteadOf", called})
	}
	for _, s := range ofHTTP { // of every URL as well: one that git cannot make out matches none
		pairs = append(pairs, [2]string{"http." + s[0], s[1]}, [2]string{"http." + to + "." + s[0], s[1]})
	}
	return slices.Concat(trusting(), []string{"GIT_ALLOW_PROTOCOL=" + protocol}, configured(pairs))
}

// configured is the environment that sets names to values: not with -c, which takes an = in
// a URL for the end of the name.
func configured(pairs [][2]string) []string {
	out := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pairs))}
	for i, p := range pairs {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, p[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, p[1]))
	}
	return out
}

// trusting has git believe the certificates that the system does, whatever a repository
// says of http.sslCAInfo and http.sslCAPath, for which there is no value that means none.
func trusting() []string {
	bundle := trust.System()
	if bundle == "" {
		return nil
	}
	return []string{"GIT_SSL_CAINFO=" + bundle, "GIT_SSL_CAPATH=" + filepath.Dir(bundle)}
}
