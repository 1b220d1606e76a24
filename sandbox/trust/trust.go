// Package trust has the programs of a box trust one more authority than the system does.
// There is no one place for that: OpenSSL, GnuTLS and Go read the system's bundle, Java a
// keystore of its own, Node and some libraries neither, but variables of the environment.
package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Change is what a box has to have in place of what the system has.
type Change struct {
	Files map[string][]byte // by path, which the system has
	Env   map[string]string
}

// bundles are where distributions have what the system trusts, and keystores where they
// have the same for Java.
var (
	bundles   = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"}
	keystores = []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts", "/usr/lib/jvm/*/lib/security/cacerts"}
)

// variables name a bundle, for those who do not ask the system.
var variables = []string{
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
}

// Of is the change for an authority, in PEM. A system without a bundle is an error: nothing
// in a box would trust the authority, and everything would fail for reasons that nobody
// could tell.
func Of(authority []byte) (Change, error) {
	return of(authority, real(bundles), real(keystores))
}

// Anywhere is the change for a box that has another system than this one, which nobody has
// looked at: what this system trusts is wherever some system has that.
func Anywhere(authority []byte) (Change, error) {
	fixed := slices.DeleteFunc(slices.Clone(keystores), func(p string) bool { return strings.Contains(p, "*") })
	return of(authority, bundles, fixed)
}

// System is the file of what this system trusts, for a program that others would tell
// another one; empty: it has none.
func System() string {
	if at := real(bundles); len(at) > 0 {
		return at[0]
	}
	return ""
}

func of(authority []byte, to, stores []string) (Change, error) {
	c := Change{Files: map[string][]byte{}, Env: map[string]string{}}
	system := first(real(bundles))
	if system == nil {
		return Change{}, errors.New("this system has no bundle of certificates that it trusts; install ca-certificates")
	}
	for _, name := range variables {
		c.Env[name] = to[0]
	}
	for _, path := range to {
		text, err := os.ReadFile(path)
		if err != nil {
			text = system
		}
		c.Files[path] = slices.Concat(text, []byte("\n"), authority)
	}
	if len(stores) == 0 {
		return c, nil
	}
	store, err := keystore(certificates(slices.Concat(authority, []byte("\n"), system)))
	if err != nil {
		return Change{}, err
	}
	for _, path := range stores {
		c.Files[path] = store
	}
	return c, nil
}

// first is the first of files that can be read.
func first(paths []string) []byte {
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			return text
		}
	}
	return nil
}

// Over is an environment with the variables of the change in place of its own.
func (c Change) Over(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return c.Env[name] != ""
	})
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		out = append(out, name+"="+c.Env[name])
	}
	return out
}

// real are the files that patterns come to, without symlinks.
func real(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // the patterns are ours
		for _, path := range found {
			at, err := filepath.EvalSymlinks(path)
			if err == nil && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// certificates are those of a bundle.
func certificates(bundle []byte) [][]byte {
	var out [][]byte
	for rest := bytes.TrimSpace(bundle); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			return out
		}
		if rest = more; block.Type == "CERTIFICATE" {
			out = append(out, block.Bytes)
		}
	}
}
