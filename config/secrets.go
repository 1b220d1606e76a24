package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/strict"
)

// Secrets says where credentials are kept. What is in the environment and in files takes
// no key.
type Secrets struct {
	Store SecretStore `yaml:"store"`
	Vault *Vault      `yaml:"vault"` // nil: there is none
}

// SecretStore is the secrets that are encrypted in the database.
type SecretStore struct {
	KeyFile string     `yaml:"key_file"` // of their key; empty: keys/secrets.key in the store
	Key     secret.Ref `yaml:"key"`      // keyring:NAME of their key, instead of a file
}

// Vault is a Vault or OpenBao server.
type Vault struct {
	Address   string     `yaml:"address"`
	Token     secret.Ref `yaml:"token"` // env:, file: or keyring:
	Namespace string     `yaml:"namespace"`
	Mount     string     `yaml:"mount"`      // of its KV engine; empty: secret
	KVVersion int        `yaml:"kv_version"` // 1 or 2; 0: 2
}

// checkSecrets checks the backends, and resolves the path of the key.
func (c *Config) checkSecrets(d *strict.File) {
	s := &c.File.Secrets
	if s.Store.KeyFile != "" {
		s.Store.KeyFile, _ = c.path(d, "secrets.store.key_file", s.Store.KeyFile)
	}
	if k := s.Store.Key; k != (secret.Ref{}) {
		switch {
		case k.Backend != "keyring":
			d.Reject("secrets.store.key", "the key of the store is kept in a file of its own or in the keyring; write keyring:NAME, or key_file and a path")
		case s.Store.KeyFile != "":
			d.Reject("secrets.store.key", "key_file says where the key is already; keep one")
		}
	}
	v := s.Vault
	if v == nil {
		return
	}
	const key = "secrets.vault"
	if why := baseFault(v.Address); why != "" {
		d.Reject(key+".address", "%s", why)
	}
	switch v.Token.Backend {
	case "env", "keyring":
	case "file":
		c.secretFile(d, key+".token", v.Token)
	default:
		if !d.Unread(key + ".token") {
			d.Reject(key+".token", "the token of the vault is not kept in it; write env:NAME, file:/abs/path or keyring:NAME")
		}
	}
	if !headerValue(v.Namespace) {
		d.Reject(key+".namespace", "it has a space, a control character or what is not ASCII; write it as the vault shows it")
	}
	if m := v.Mount; m != "" {
		if _, err := secret.ParseRef("vault:" + m + "#x"); err != nil {
			d.Reject(key+".mount", "%q is no path of a mount; write one such as secret or team/kv", m)
		}
	}
	if v.KVVersion < 0 || v.KVVersion > 2 || v.KVVersion == 0 && c.written(key+".kv_version") {
		d.Reject(key+".kv_version", "must be 1 or 2")
	}
}

// secretFile notes where a reference to a file leads, so that it is kept from agents. What
// cannot be had as things are is said, and no reason not to load: it may come later.
func (c *Config) secretFile(d *strict.File, key string, r secret.Ref) {
	warn := func(format string, args ...any) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: %s: %s: ", d.Name, d.Lines()[key], key, r)+fmt.Sprintf(format, args...))
	}
	switch {
	case r.Backend == "vault" && c.File.Secrets.Vault == nil:
		warn("there is no vault; write secrets.vault")
	case r.Backend == "file":
		if real, ok := c.path(d, key, r.Name); ok {
			c.secretFiles = append(c.secretFiles, real)
			c.secretKeys = append(c.secretKeys, key)
			for _, name := range sorted(c.workspaces) { // those that were checked before; the others are checked with it
				project := c.workspaces[name].Project
				if sameDirectory(c.trails[key], project) != "" || slices.ContainsFunc(c.trails[key], func(at string) bool { return policy.Below(at, project) }) {
					d.Reject(key, "%s lies in the workspace %s, where agents write; move it", r.Name, name)
				}
			}
			if _, err := os.Stat(real); errors.Is(err, fs.ErrNotExist) {
				warn("there is no such file; make it, with mode 0600")
			}
		}
	}
}

// SecretKeyFile is where the key of the secrets in the store is; empty: it is in the keyring.
func (c *Config) SecretKeyFile() string {
	switch s := c.File.Secrets.Store; {
	case s.KeyFile != "":
		return s.KeyFile
	case s.Key != secret.Ref{}:
		return ""
	}
	return filepath.Join(c.StatePath, "keys", "secrets.key")
}

func (c *Config) written(key string) bool { _, ok := c.lines[key]; return ok }

// baseFault is why a text is no address that everything of a server is below, or "".
func baseFault(text string) string {
	if text == "" {
		return "is missing; write one such as https://api.example.com"
	}
	if strings.ContainsAny(text, "?#") { // where keys are sometimes written, so it is not repeated
		return "it has a query or a fragment; write scheme, host and path alone"
	}
	if _, err := Endpoint(text); err != nil {
		return err.Error()
	}
	_, path, _ := strings.Cut(text[strings.Index(text, "://")+3:], "/")
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if strings.Trim(part, ".") == "" && part != "" || part == "" && path != "" {
			return fmt.Sprintf("%q has a dot segment or an empty one; write it plainly", text)
		}
	}
	if strings.ContainsAny(path, "%;") {
		return fmt.Sprintf("%q has something encoded; write scheme, host and a plain path", text)
	}
	return ""
}

func headerValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
