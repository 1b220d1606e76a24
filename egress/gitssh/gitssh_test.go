package gitssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/need"
)

func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

func TestReadRequest(t *testing.T) {
	for text, want := range map[string]request{
		packet("git-upload-pack /x\x00host=h\x00"):                       {"git-upload-pack", "/x", ""},
		packet("git-upload-pack /x\x00host=h:22\x00\x00version=2\x00"):   {"git-upload-pack", "/x", "version=2"},
		packet("git-receive-pack /a b\x00\x00version=7\x00LD_PRELOAD=x"): {"git-receive-pack", "/a b", ""},
	} {
		rest := strings.NewReader(text + "0000")
		got, err := readRequest(rest)
		if err != nil || got != want || rest.Len() != 4 {
			t.Errorf("%q: %+v %v, %d left", text, got, err, rest.Len())
		}
	}
	for _, text := range []string{"", "0000", "0004", "0003x", "ffff", "zzzz", "+010git-upload-p", packet("git-upload-pack"), "0030git-upload-pack /x", packet(strings.Repeat("a ", maxRequest))} {
		if got, err := readRequest(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// What is run on a server is one command for the repository that was decided on, whatever
// a box asks for.
func TestCommand(t *testing.T) {
	reads, writes := Repository{Path: "/org/x.git"}, Repository{Path: "org/x.git", Push: true}
	for _, c := range []struct {
		of    Repository
		wants request
		want  string
	}{
		{reads, request{"git-upload-pack", "/org/x.git", ""}, "git-upload-pack '/org/x.git'"},
		{writes, request{"git-receive-pack", "/org/x.git", ""}, "git-receive-pack 'org/x.git'"},
		{reads, request{"git-receive-pack", "/org/x.git", ""}, ""},
		{writes, request{"git-upload-pack", "/org/x.git", ""}, ""},
		{reads, request{"git-upload-archive", "/org/x.git", ""}, ""},
		{reads, request{"git-upload-pack", "/org/y.git", ""}, ""},
		{reads, request{"git-upload-pack", "/org/x.git'; touch x; '", ""}, ""},
		{reads, request{"git-upload-pack", "", ""}, ""},
		{Repository{Path: "/a'b"}, request{"git-upload-pack", "/a'b", ""}, ""},
	} {
		got, err := c.of.command(c.wants)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%+v %q: %q %v", c.of, c.wants, got, err)
		}
	}
}

func TestKeys(t *testing.T) {
	need.Programs(t, "ssh-keygen")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, with := range map[string]string{"plain": "", "locked": "hunter2"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", with, "-f", file(name)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	text := func(name string) string {
		b, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(b), "\n") // as a secret has it
	}
	signer, err := ParseKey(text("plain"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseKey(text("locked")); err == nil || !strings.Contains(err.Error(), "it has a passphrase") {
		t.Errorf("locked: %v", err)
	}
	if _, err := ParseKey(text("plain.pub")); err == nil || !strings.Contains(err.Error(), "not a private key") {
		t.Errorf("public: %v", err)
	}
	line := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	for text, known := range map[string]bool{
		"forge.test " + line: true, "[forge.test]:22 " + line: true, "forge.test,other.test " + line: true, "*.test " + line: true,
		"": false, "other.test " + line: false, "[forge.test]:2222 " + line: false, "!forge.test,*.test " + line: false, "@revoked forge.test " + line: false,
	} {
		if err := os.WriteFile(file("known"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := KnownOf("forge.test:22", file("known"))
		if kinds := k.kinds(); (err == nil) != known || known && (len(kinds) != 1 || kinds[0] != ssh.KeyAlgoED25519 || k.Shows(signer.PublicKey()) != nil) {
			t.Errorf("%q: %v %v", text, kinds, err)
		}
		if err != nil && (!errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), "ssh-keyscan")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := KnownOf("forge.test:22", file("none")); !errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), "what ssh-keyscan forge.test says") {
		t.Errorf("no file: %v", err)
	}
	if _, err := KnownOf("forge.test:2222", file("none")); err == nil || !strings.Contains(err.Error(), "what ssh-keyscan -p 2222 forge.test says") {
		t.Errorf("no file, at another port: %v", err)
	}
	if err := os.WriteFile(file("known"), []byte("# ours\nforge.test what is this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := KnownOf("forge.test:22", file("known")); !errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), file("known")+":2 is not a line of servers' keys") {
		t.Errorf("a line that is none: %v", err)
	}
}

// A server of which an authority is known shows a certificate by it that is for that server,
// now; the authority's own key is nobody's.
func TestAuthorities(t *testing.T) {
	newKey := func() ssh.Signer {
		_, raw, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		k, err := ssh.NewSignerFromKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	authority, server, another := newKey(), newKey(), newKey()
	file := filepath.Join(t.TempDir(), "known")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known := func() Known {
		t.Helper()
		k, err := KnownOf("forge.test:22", file)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	certificate := func(change func(*ssh.Certificate), by ssh.Signer) ssh.PublicKey {
		c := &ssh.Certificate{Key: server.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"forge.test"}, ValidBefore: ssh.CertTimeInfinity}
		if change != nil {
			change(c)
		}
		if err := c.SignCert(rand.Reader, by); err != nil {
			t.Fatal(err)
		}
		return c
	}
	line := string(ssh.MarshalAuthorizedKey(authority.PublicKey()))
	write("@cert-authority *.test " + line)
	k := known()
	if len(k.Keys) != 0 || len(k.Authorities) != 1 || !slices.Contains(k.kinds(), ssh.CertAlgoED25519v01) {
		t.Errorf("%d keys, %d authorities, %v", len(k.Keys), len(k.Authorities), k.kinds())
	}
	for _, tt := range []struct {
		name string
		key  ssh.PublicKey
		ok   bool
	}{
		{"certified", certificate(nil, authority), true},
		{"by somebody else", certificate(nil, another), false},
		{"for another server", certificate(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"other.test"} }, authority), false},
		{"a user's", certificate(func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, authority), false},
		{"of the past", certificate(func(c *ssh.Certificate) { c.ValidBefore = 1 }, authority), false},
		{"the authority's own", authority.PublicKey(), false},
		{"without a certificate", server.PublicKey(), false},
	} {
		if err := k.Shows(tt.key); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	write("@cert-authority *.test " + line + "@revoked * " + string(ssh.MarshalAuthorizedKey(server.PublicKey())))
	if known().Shows(certificate(nil, authority)) == nil {
		t.Error("a key that was revoked passes by its certificate")
	}
	write("@cert-authority *.test " + line + "@revoked * " + line)
	if _, err := KnownOf("forge.test:22", file); err == nil {
		t.Error("an authority that was revoked is known")
	}
}
