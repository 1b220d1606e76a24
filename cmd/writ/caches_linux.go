package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/writ-run/writ"
)

// cache is what one package manager keeps, and the variables that tell it where.
type cache struct {
	own  string            // the variable that says where it is
	at   []string          // where it is otherwise, below the home
	env  map[string]string // besides own, where the cache is there
	made map[string]string // variables for directories of the build cache
}

var caches = []cache{
	{own: "GOMODCACHE", at: []string{"go/pkg/mod"}, env: map[string]string{"GOPROXY": "off", "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local"}, made: map[string]string{"GOCACHE": "go"}},
	{own: "npm_config_cache", at: []string{".npm"}, env: map[string]string{"npm_config_offline": "true", "npm_config_update_notifier": "false", "npm_config_logs_max": "0"}},
	{own: "PIP_CACHE_DIR", at: []string{".cache/pip"}},
	{own: "CARGO_HOME", at: []string{".cargo"}, env: map[string]string{"CARGO_NET_OFFLINE": "true"}},
}

// addCaches lets a command read the package caches that there are, and gives it a build
// cache that it shares with other commands in the same directory only.
func addCaches(c *writ.Confinement, env map[string]string, dir string) (own []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil // then there are none
	}
	build := ""
	for _, k := range caches {
		at := os.Getenv(k.own)
		if at == "" {
			at = filepath.Join(home, filepath.FromSlash(k.at[0]))
		}
		real, err := filepath.EvalSymlinks(at)
		if info, err2 := os.Stat(real); err == nil && err2 == nil && info.IsDir() && real != home {
			c.Read = append(c.Read, real)
			env[k.own] = real
			for name, value := range k.env {
				env[name] = value
			}
		}
		for name, sub := range k.made {
			if build == "" {
				if build, err = buildCache(dir); err != nil {
					return nil, err
				}
				c.Write, own = append(c.Write, build), append(own, build)
			}
			env[name] = filepath.Join(build, sub)
		}
	}
	return own, nil
}

// buildCache is a directory's own, made where it is not there. It belongs to whom the
// command runs as: the owner of the directory.
func buildCache(dir string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir))
	at := filepath.Join(base, "writ", "build", hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	var st syscall.Stat_t
	if os.Geteuid() == 0 && syscall.Stat(dir, &st) == nil {
		if err := os.Lchown(at, int(st.Uid), int(st.Gid)); err != nil {
			return "", err
		}
	}
	return filepath.EvalSymlinks(at)
}

// gitIdentity is a configuration for git with the name and the address of the one at
// hand, and nothing else of theirs: other keys can run programs.
func gitIdentity() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	var name, email string
	for _, path := range []string{filepath.Join(home, ".config/git/config"), filepath.Join(home, ".gitconfig")} {
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 1<<20 {
			continue
		}
		in := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				in = strings.EqualFold(strings.ReplaceAll(line, " ", ""), "[user]")
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !in || !ok {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "name":
				name = plainValue(value)
			case "email":
				email = plainValue(value)
			}
		}
	}
	if name == "" && email == "" {
		return ""
	}
	return "[user]\n\tname = \"" + name + "\"\n\temail = \"" + email + "\"\n"
}

// plainValue is a value without what could end it and begin something else.
func plainValue(v string) string {
	v = strings.Trim(strings.TrimSpace(v), `"`)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			return -1
		}
		return r
	}, v)
}
