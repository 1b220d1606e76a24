package gitssh

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		callback, kinds, err := knownKeys(file("known"), "forge.test:22", nowhere{})
		if (err == nil) != known || known && (len(kinds) != 1 || kinds[0] != ssh.KeyAlgoED25519 || callback("forge.test:22", nowhere{}, signer.PublicKey()) != nil) {
			t.Errorf("%q: %v %v", text, kinds, err)
		}
		if err != nil && (!errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), "ssh-keyscan")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := knownKeys(file("none"), "forge.test:22", nowhere{}); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("no file: %v", err)
	}
}

// nowhere is the address of a server by which nothing is known.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "192.0.2.1:22" }
