package config

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/strict"
)

// Same reports whether two say the same; OAuth's maps leave no ==.
func (l Listen) Same(other Listen) bool { return reflect.DeepEqual(l, other) }

// own are the paths that are writ's: the key, whom it takes certificates from, and the
// directory of the socket, which a box of a listed user could otherwise open.
func (l Listen) own() []string {
	if l.Socket == "" {
		return []string{l.Key, l.ClientCA}
	}
	return []string{l.Key, l.ClientCA, filepath.Dir(l.Socket)}
}

func (c *Config) checkClientCA(d *strict.File) {
	const key = "listen.client_ca"
	l := &c.File.Listen
	if l.ClientCA == "" {
		return
	}
	var ok bool
	if l.ClientCA, ok = c.path(d, key, l.ClientCA); !ok {
		return
	}
	pem, err := os.ReadFile(l.ClientCA)
	if err != nil {
		d.Reject(key, "it cannot be read: %v", err)
		return
	}
	if info, err := os.Stat(l.ClientCA); err == nil && info.Mode().Perm()&0o022 != 0 {
		d.Reject(key, "others can write to it (mode %04o), and whoever can makes agents; run: chmod go-w %s", info.Mode().Perm(), l.ClientCA)
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		d.Reject(key, "there is no certificate in it; give a PEM file")
	}
}

// checkSocket wants a directory that only the daemon's user can change, or others could
// put their own socket there, and with nothing else in it, since boxes do not see it.
func (c *Config) checkSocket(d *strict.File) {
	const key, longest = "listen.socket", 100
	l := &c.File.Listen
	if l.Socket == "" {
		return
	}
	if runtime.GOOS != "linux" {
		d.Reject(key, "whose a connection is can be asked on Linux only; remove it, and let agents use the address with a token")
		return
	}
	var ok bool
	if l.Socket, ok = c.path(d, key, l.Socket); !ok {
		return
	}
	dir := filepath.Dir(l.Socket)
	info, err := os.Stat(dir)
	switch {
	case len(l.Socket) > longest:
		d.Reject(key, "%s is longer than the %d bytes that a socket's path may have; choose a shorter one", l.Socket, longest)
	case err != nil || !info.IsDir():
		d.Reject(key, "there is no directory %s; make it first: mkdir -m 755 %s", dir, dir)
	case info.Mode().Perm()&0o022 != 0:
		d.Reject(key, "others can write to %s (mode %04o) and put a socket of their own there; run: chmod go-w %s", dir, info.Mode().Perm(), dir)
	case !holdsOnly(dir, filepath.Base(l.Socket)):
		d.Reject(key, "%s holds more than the socket, and is hidden from boxes whole; name a directory of its own", dir)
	}
}

// holdsOnly reports whether a directory is empty, or has a socket of that name alone.
func holdsOnly(dir, name string) bool {
	in, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(in, func(e fs.DirEntry) bool { return e.Name() != name || e.Type() != fs.ModeSocket })
}

// certificates takes what an agent is known by in certificates: a URI, a DNS name, or
// the fingerprint of one certificate. Each is one agent's.
func (b *builder) certificates(agent, key string, list []string) {
	if len(list) > 0 && b.File.Listen.ClientCA == "" && !b.d.Unread("listen") {
		b.fail(key+".certificates", "nobody is asked for a certificate; set listen.client_ca")
		return
	}
	for i, text := range list {
		at := fmt.Sprintf("%s.certificates[%d]", key, i)
		name, ok := certificateName(text)
		if !ok {
			b.fail(at, "%q is not what a certificate is known by; write a URI, a DNS name, or sha256: and 64 hexadecimal digits", text)
			continue
		}
		if other, taken := b.certified[name]; taken {
			b.fail(at, "%q is agent %s's already; a certificate is one agent's", text, other)
			continue
		}
		if b.certified == nil {
			b.certified = map[string]string{}
		}
		b.certified[name] = agent
	}
}

// certificateName is how a name is compared, with what kind it is: a URI to the letter,
// a DNS name in small letters, a fingerprint in small digits.
func certificateName(text string) (string, bool) {
	if digits, ok := strings.CutPrefix(text, "sha256:"); ok {
		sum, err := hex.DecodeString(digits)
		return "sha256:" + hex.EncodeToString(sum), err == nil && len(sum) == sha256.Size
	}
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		return "uri:" + text, err == nil && u.Host != "" && u.String() == text
	}
	h, err := host.Parse(text)
	name, ok := h.Name()
	return "dns:" + name, err == nil && ok
}

// AgentsOf are the agents that a certificate stands for: by its URIs, its DNS names,
// which are not patterns here, and its fingerprint. Never by its common name, which any
// CA lets people choose.
func (c *Config) AgentsOf(leaf *x509.Certificate) []string {
	sum := sha256.Sum256(leaf.Raw)
	names := []string{"sha256:" + hex.EncodeToString(sum[:])}
	for _, u := range leaf.URIs {
		names = append(names, "uri:"+u.String())
	}
	for _, n := range leaf.DNSNames {
		names = append(names, "dns:"+strings.ToLower(n))
	}
	var out []string
	for _, n := range names {
		if agent, ok := c.certified[n]; ok {
			out = append(out, agent)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// users takes the people of this machine who may be an agent: names, or numbers of
// users whom the user database does not have.
func (b *builder) users(agent, key string, list []string) {
	if len(list) > 0 && b.File.Listen.Socket == "" && !b.d.Unread("listen") {
		b.fail(key+".users", "there is no socket for them; set listen.socket")
		return
	}
	for i, name := range list {
		number := name
		if u, err := user.Lookup(name); err == nil {
			number = u.Uid
		}
		uid, err := strconv.ParseUint(number, 10, 32)
		if err != nil || strconv.FormatUint(uid, 10) != number || uid == 1<<32-1 {
			b.fail(fmt.Sprintf("%s.users[%d]", key, i), "there is no user %q on this machine; write a name or the number of one", name)
			continue
		}
		if b.Config.users == nil {
			b.Config.users = map[uint32][]string{}
		}
		b.Config.users[uint32(uid)] = append(b.Config.users[uint32(uid)], agent)
	}
}

// AgentsOfUser are the agents that a user of this machine may be, sorted.
func (c *Config) AgentsOfUser(uid uint32) []string {
	return slices.Compact(slices.Sorted(slices.Values(c.users[uid])))
}
