package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/files"
	"github.com/writ-run/writ/tool/git"
)

// place is a directory with everything that configurations in testdata name.
// $DIR stands for it, in texts and in errors.
type place string

func newPlace(t testing.TB) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, d := range []string{"conf", "ws", "project/ws", "project/bin", "state/inner", "home", "tools", "run", "open"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Chmod(filepath.Join(dir, "open"), 0o777))
	for link, to := range map[string]string{
		"into-state": "state/inner", "dangling": "ws/not-there", "loop": "loop", "via-ws": "ws/link", "ws/link": "../conf", "to-tools": "project/bin",
	} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	certificate(t, filepath.Join(dir, "tls"))
	must(t, os.MkdirAll(filepath.Join(dir, "conf/profiles"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "conf/profiles/careful.md"), []byte("---\nrole: reviewer\nallowedTools: [fs_read]\n---\nLook, do not touch.\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "conf/profiles/bold.yaml"), []byte("allowedTools: ['fs_*']\ndisallowedTools: [delete_file]\n"), 0o600))
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "xdg"))
	return place(dir)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p place) config() string { return filepath.Join(string(p), "conf", "writ.yaml") }

// load writes a text as the configuration and loads it.
func (p place) load(t testing.TB, text string, mode os.FileMode) (*Config, error) {
	t.Helper()
	path := p.config()
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "$DIR", string(p))), 0o600))
	must(t, os.Chmod(path, mode))
	return Load(path, named(toolNames(t)...))
}

func (p place) mustLoad(t testing.TB, text string) *Config {
	t.Helper()
	c, err := p.load(t, text, 0o600)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func builtins(t testing.TB) []*tool.Tool {
	t.Helper()
	a, err := files.Tools()
	must(t, err)
	b, err := exec.Tools(exec.Options{})
	must(t, err)
	c, err := git.Tools(git.Options{})
	must(t, err)
	return slices.Concat(a, b, c)
}

func toolNames(t testing.TB) []string {
	var names []string
	for _, x := range builtins(t) {
		names = append(names, x.Name)
	}
	return names
}

// named is the tools there are, by name.
func named(names ...string) Tools {
	return func(*action.Registry) ([]string, error) { return names, nil }
}

// certificate makes a certificate for localhost, and its key.
func certificate(t testing.TB, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for name, b := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: der}} {
		must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600))
	}
}
