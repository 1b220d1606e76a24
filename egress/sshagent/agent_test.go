package sshagent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/writ-run/writ/egress"
)

func newKey(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var raw any
	var err error
	switch kind {
	case "rsa":
		raw, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		raw, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, raw, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// scene is an agent for two servers, of which one has a key of each kind, and a third
// server that it is not for.
type scene struct {
	agent                *Agent
	first, second, other ssh.Signer // keys of servers
	old                  ssh.Signer // of the first, by RSA
	revoked              ssh.Signer // of the first, once
	mine, rsa, forSecond ssh.Signer // keys of users
	mu                   sync.Mutex
	events               []egress.Event
	session, anotherOne  []byte
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{session: []byte(strings.Repeat("s", 32)), anotherOne: []byte(strings.Repeat("t", 32))}
	for _, k := range []*ssh.Signer{&s.first, &s.second, &s.other, &s.mine, &s.forSecond, &s.revoked} {
		*k = newKey(t, "ed25519")
	}
	s.old, s.rsa = newKey(t, "rsa"), newKey(t, "rsa")
	line := func(host string, k ssh.Signer) string {
		return knownhosts.Line([]string{knownhosts.Normalize(host)}, k.PublicKey()) + "\n"
	}
	known := filepath.Join(t.TempDir(), "known")
	text := line("first.test:22", s.first) + line("first.test:22", s.old) + line("second.test:2222", s.second) + line("third.test:22", s.other) +
		line("first.test:22", s.revoked) + "@revoked * " + string(ssh.MarshalAuthorizedKey(s.revoked.PublicKey()))
	if err := os.WriteFile(known, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := func(all ...ssh.Signer) func(context.Context) ([]ssh.Signer, error) {
		return func(context.Context) ([]ssh.Signer, error) { return all, nil }
	}
	var err error
	s.agent, err = New(Options{KnownHosts: []string{known}, Logins: []Login{
		{Address: "first.test:22", User: "deploy", Keys: keys(s.mine, s.rsa), At: "here"}, {Address: "second.test:2222", User: "git", Keys: keys(s.forSecond)},
	}, Log: func(e egress.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// line is a program that talks to the agent.
func (s *scene) line(t testing.TB) net.Conn {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); s.agent.Talk(t.Context(), theirs); theirs.Close() }()
	t.Cleanup(func() { ours.Close(); <-done })
	return ours
}

// ask sends a request and gives the answer; nil: the agent hung up.
func ask(c net.Conn, request []byte) []byte {
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil
	}
	return b
}

func bindTo(t testing.TB, server ssh.Signer, session []byte, forwards bool) []byte {
	sig, err := server.Sign(rand.Reader, session)
	if k, ok := server.(ssh.AlgorithmSigner); ok && server.PublicKey().Type() == ssh.KeyAlgoRSA {
		sig, err = k.SignWithAlgorithm(rand.Reader, session, ssh.KeyAlgoRSASHA256)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bindWith(server, session, sig, forwards)
}

func bindWith(server ssh.Signer, session []byte, sig *ssh.Signature, forwards bool) []byte {
	return ssh.Marshal(struct {
		Kind                    byte
		Name                    string
		Key, Session, Signature []byte
		Forwards                bool
	}{askBind, bindName, server.PublicKey().Marshal(), session, ssh.Marshal(sig), forwards})
}

// login is what a client has signed to sign in.
type userauth struct {
	Session               []byte
	Kind                  byte
	User, Service, Method string
	Signed                bool
	Algorithm             string
	Key                   []byte
}

func (s *scene) auth(change func(*userauth)) userauth {
	u := userauth{s.session, userAuth, "deploy", "ssh-connection", "publickey", true, ssh.KeyAlgoED25519, s.mine.PublicKey().Marshal()}
	if change != nil {
		change(&u)
	}
	return u
}

func signing(key ssh.Signer, data []byte) []byte {
	return ssh.Marshal(struct {
		Kind      byte
		Key, Data []byte
		Flags     uint32
	}{askSign, key.PublicKey().Marshal(), data, 0})
}

// TestSigns: it signs that a program is whom the operator said, in a session with a server
// that showed a key which is known of it, and nothing besides.
func TestSigns(t *testing.T) {
	s := newScene(t)
	hostbound := func(to ssh.Signer) func(*userauth) []byte {
		return func(u *userauth) []byte {
			u.Method = "publickey-hostbound-v00@openssh.com"
			return append(ssh.Marshal(*u), ssh.Marshal(struct{ Key []byte }{to.PublicKey().Marshal()})...)
		}
	}
	for _, tt := range []struct {
		name   string
		server ssh.Signer // that is shown; nil: none
		key    ssh.Signer // that signs; nil: mine
		change func(*userauth)
		data   func(*userauth) []byte
		want   string // why it does not; empty: it does
	}{
		{name: "as it should be", server: s.first},
		{name: "bound to the server", server: s.first, data: hostbound(s.first)},
		{name: "by another key of the server", server: s.old},
		{name: "by RSA", server: s.first, key: s.rsa, change: func(u *userauth) { u.Algorithm = ssh.KeyAlgoRSASHA512 }},
		{name: "at the other server", server: s.second, key: s.forSecond, change: func(u *userauth) { u.User = "git" }},

		{name: "with a certificate of the key", server: s.first, change: func(u *userauth) { u.Algorithm, u.Key = ssh.CertAlgoED25519v01, certificateOf(t, s.mine, ssh.UserCert) }},
		{name: "with a certificate of RSA", server: s.first, key: s.rsa, change: func(u *userauth) {
			u.Algorithm, u.Key = ssh.CertAlgoRSASHA512v01, certificateOf(t, s.rsa, ssh.UserCert)
		}},

		{name: "with a certificate, by SHA-1", server: s.first, key: s.rsa, change: func(u *userauth) { u.Algorithm, u.Key = ssh.CertAlgoRSAv01, certificateOf(t, s.rsa, ssh.UserCert) }, want: "SHA-1"},
		{name: "with a certificate of another key", server: s.first, change: func(u *userauth) {
			u.Algorithm, u.Key = ssh.CertAlgoED25519v01, certificateOf(t, s.forSecond, ssh.UserCert)
		}, want: "no signing in"},
		{name: "with a server's certificate", server: s.first, change: func(u *userauth) { u.Algorithm, u.Key = ssh.CertAlgoED25519v01, certificateOf(t, s.mine, ssh.HostCert) }, want: "no signing in"},
		{name: "a long user", server: s.first, change: func(u *userauth) { u.User = strings.Repeat("u", 5000) }, want: strings.Repeat("u", 100) + `" there`},
		{name: "not shown", want: "shows first whom it talks to"},
		{name: "a server that it is not for", server: s.other, want: "whom the agent is not for"},
		{name: "by a key that was revoked", server: s.revoked, want: "whom the agent is not for"},
		{name: "the key of another server", server: s.second, want: `wants to be "deploy" there`},
		{name: "the key of another server, as its user", server: s.second, change: func(u *userauth) { u.User = "git" }, want: "by a key that is not for that"},
		{name: "a user", server: s.first, change: func(u *userauth) { u.User = "root" }, want: `wants to be "root" there`},
		{name: "the user of the other server", server: s.first, change: func(u *userauth) { u.User = "git" }, want: `wants to be "git" there`},
		{name: "no user", server: s.first, change: func(u *userauth) { u.User = "" }, want: `wants to be "" there`},
		{name: "another session", server: s.first, change: func(u *userauth) { u.Session = s.anotherOne }, want: "not in the session that it showed"},
		{name: "no session", server: s.first, change: func(u *userauth) { u.Session = nil }, want: "not in the session that it showed"},
		{name: "a service", server: s.first, change: func(u *userauth) { u.Service = "ssh-userauth" }, want: "no signing in"},
		{name: "a method", server: s.first, change: func(u *userauth) { u.Method = "hostbased" }, want: "otherwise than by a public key"},
		{name: "a message", server: s.first, change: func(u *userauth) { u.Kind = 90 }, want: "no signing in"},
		{name: "not to be signed", server: s.first, change: func(u *userauth) { u.Signed = false }, want: "no signing in"},
		{name: "about another key", server: s.first, change: func(u *userauth) { u.Key = s.rsa.PublicKey().Marshal() }, want: "no signing in"},
		{name: "an algorithm of another kind", server: s.first, change: func(u *userauth) { u.Algorithm = ssh.KeyAlgoRSASHA512 }, want: "that the key does not make"},
		{name: "SHA-1", server: s.first, key: s.rsa, change: func(u *userauth) { u.Algorithm = ssh.KeyAlgoRSA }, want: "SHA-1"},
		{name: "bound to another server", server: s.first, data: hostbound(s.second), want: "at the server that it showed"},
		{name: "bound, and nobody named", server: s.first, change: func(u *userauth) { u.Method = "publickey-hostbound-v00@openssh.com" }, want: "at the server that it showed"},
		{name: "more behind it", server: s.first, data: func(u *userauth) []byte { return append(ssh.Marshal(*u), 'x') }, want: "otherwise than by a public key"},
		{name: "anything", server: s.first, data: func(*userauth) []byte { return []byte("anything") }, want: "no signing in"},
		{name: "a signature of files", server: s.first, data: func(*userauth) []byte { return []byte("SSHSIG\x00\x00\x00\x04file") }, want: "no signing in"},
		{name: "nothing", server: s.first, data: func(*userauth) []byte { return nil }, want: "no signing in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.events, s.agent.shown = nil, map[string]bool{}
			c := s.line(t)
			if tt.server != nil {
				ask(c, bindTo(t, tt.server, s.session, false))
			}
			key := tt.key
			if key == nil {
				key = s.mine
			}
			u := s.auth(func(u *userauth) { u.Key = key.PublicKey().Marshal() })
			if tt.change != nil {
				tt.change(&u)
			}
			data := ssh.Marshal(u)
			if tt.data != nil {
				data = tt.data(&u)
			}
			got := ask(c, signing(key, data))
			last := s.events[len(s.events)-1]
			if tt.want != "" {
				if !bytes.Equal(got, []byte{failure}) || last.Verdict != egress.NotSigned || !strings.Contains(last.Detail, tt.want) {
					t.Errorf("%v %+v", got, last)
				}
				return
			}
			var m struct {
				Kind      byte
				Signature []byte
			}
			var sig ssh.Signature
			if ssh.Unmarshal(got, &m) != nil || m.Kind != saysSigned || ssh.Unmarshal(m.Signature, &sig) != nil || key.PublicKey().Verify(data, &sig) != nil {
				t.Fatalf("not signed: %v %+v", got, s.events)
			}
			if last.Verdict != egress.Allowed || last.Kind != "ssh" || !strings.HasPrefix(last.Detail, "signed in as "+u.User+" with the key "+ssh.FingerprintSHA256(key.PublicKey())) {
				t.Errorf("%+v", last)
			}
		})
	}
}

// certificateOf is a certificate of a key, as it is sent.
func certificateOf(t testing.TB, key ssh.Signer, kind uint32) []byte {
	c := &ssh.Certificate{Key: key.PublicKey(), CertType: kind, ValidPrincipals: []string{"deploy"}, ValidBefore: ssh.CertTimeInfinity}
	if err := c.SignCert(rand.Reader, newKey(t, "ed25519")); err != nil {
		t.Fatal(err)
	}
	return c.Marshal()
}

// TestShows: whom a program talks to is what that server signed, once, for itself.
func TestShows(t *testing.T) {
	s := newScene(t)
	sha1, err := s.old.Sign(rand.Reader, s.session) // as servers of old do
	if err != nil {
		t.Fatal(err)
	}
	byOther, err := s.other.Sign(rand.Reader, s.session)
	if err != nil {
		t.Fatal(err)
	}
	ofAnother, err := s.first.Sign(rand.Reader, s.anotherOne)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		before []byte // asked on a line of its own
		asks   [][]byte
		want   string // of the last; empty: it is taken
	}{
		{"a server", nil, [][]byte{bindTo(t, s.first, s.session, false)}, ""},
		{"one that it is not for", nil, [][]byte{bindTo(t, s.other, s.session, false)}, "not one of those that are known"},
		{"signed by another", nil, [][]byte{bindWith(s.first, s.session, byOther, false)}, "is not signed by that server"},
		{"signed for another session", nil, [][]byte{bindWith(s.first, s.session, ofAnother, false)}, "is not signed by that server"},
		{"signed with SHA-1", nil, [][]byte{bindWith(s.old, s.session, sha1, false)}, "is not signed by that server"},
		{"no session", nil, [][]byte{bindTo(t, s.first, nil, false)}, "is not signed by that server"},
		{"to forward", nil, [][]byte{bindTo(t, s.first, s.session, true)}, "it is not forwarded"},
		{"twice", nil, [][]byte{bindTo(t, s.first, s.session, false), bindTo(t, s.first, s.anotherOne, false)}, "showed a server already"},
		{"another first", nil, [][]byte{bindTo(t, s.other, s.session, false), bindTo(t, s.first, s.anotherOne, false)}, "showed a server already"},
		{"to forward first", nil, [][]byte{bindTo(t, s.second, s.session, true), bindTo(t, s.first, s.anotherOne, false)}, "showed a server already"},
		{"captured from another program", bindTo(t, s.first, s.session, false), [][]byte{bindTo(t, s.first, s.session, false)}, "was shown before"},
		{"cut short", nil, [][]byte{bindTo(t, s.first, s.session, false)[:60]}, "no extension but"},
		{"another extension", nil, [][]byte{ssh.Marshal(struct {
			Kind byte
			Name string
		}{askBind, "query"})}, "no extension but"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.events, s.agent.shown = nil, map[string]bool{}
			if tt.before != nil {
				if got := ask(s.line(t), tt.before); !bytes.Equal(got, []byte{success}) {
					t.Fatalf("the first: %v", got)
				}
			}
			c := s.line(t)
			var got []byte
			for _, a := range tt.asks {
				got = ask(c, a)
			}
			if tt.want == "" {
				if !bytes.Equal(got, []byte{success}) || len(s.events) > 0 {
					t.Errorf("%v %+v", got, s.events)
				}
				return
			}
			if !bytes.Equal(got, []byte{failure}) || !strings.Contains(s.events[len(s.events)-1].Detail, tt.want) {
				t.Errorf("%v %+v", got, s.events)
			}
			// Nothing is signed after that but what was shown first, if that was taken.
			if signed := ask(c, signing(s.mine, ssh.Marshal(s.auth(nil)))); tt.name != "twice" && !bytes.Equal(signed, []byte{failure}) {
				t.Errorf("signed all the same: %v", signed)
			}
		})
	}
}

// TestOnlyThat: it does nothing else, for as long as a program asks; and lists the keys of
// the server that was shown.
func TestOnlyThat(t *testing.T) {
	s := newScene(t)
	keys := func(c net.Conn) int {
		b := ask(c, []byte{askKeys})
		if len(b) < 5 || b[0] != saysKeys {
			return -1
		}
		return int(binary.BigEndian.Uint32(b[1:]))
	}
	c := s.line(t)
	if n := keys(c); n != 3 {
		t.Errorf("%d keys", n)
	}
	if got := ask(c, bindTo(t, s.second, s.session, false)); !bytes.Equal(got, []byte{success}) || keys(c) != 1 {
		t.Errorf("of the server that was shown: %v", got)
	}
	for kind := range 256 {
		if kind == askKeys {
			continue
		}
		if got := ask(s.line(t), []byte{byte(kind)}); !bytes.Equal(got, []byte{failure}) {
			t.Errorf("%d: %v", kind, got)
		}
	}
	if len(s.events) != 255 {
		t.Errorf("%d were told", len(s.events))
	}
	for name, b := range map[string][]byte{"empty": {0, 0, 0, 0}, "too long": {0, 1, 0, 1, 11}, "far too long": {255, 255, 255, 255}} {
		c := s.line(t)
		c.Write(b)
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d %v", name, n, err)
		}
		if last := s.events[len(s.events)-1]; last.Verdict != egress.NotSigned || !strings.Contains(last.Detail, "of a length that no request") {
			t.Errorf("%s: %+v", name, last)
		}
	}
	c = s.line(t)
	for range mostRequests {
		ask(c, []byte{askKeys})
	}
	if n := keys(c); n != -1 {
		t.Error("a program may ask for ever")
	}
	for range mostUsed {
		ask(s.line(t), []byte{25})
	}
	if n := keys(s.line(t)); n != -1 || s.events[len(s.events)-1].Verdict == egress.Allowed || len(s.events) > mostUsed+1 {
		t.Errorf("a box may ask for ever: %d %d", n, len(s.events))
	}
}

// TestFiles: ssh is told of the servers that there are keys for, and of no others.
func TestFiles(t *testing.T) {
	s := newScene(t)
	files := s.agent.SSHFiles()
	known := string(files["ssh_known_hosts"])
	for _, want := range []string{"first.test ssh-ed25519 ", "first.test ssh-rsa ", "[second.test]:2222 ssh-ed25519 "} {
		if !strings.Contains(known, want) {
			t.Errorf("%q is missing:\n%s", want, known)
		}
	}
	if strings.Contains(known, "third.test") || strings.Count(known, "\n") != 3 {
		t.Errorf("there is more:\n%s", known)
	}
	if c := string(files["ssh_config"]); !strings.HasPrefix(c, "Host first.test\n  User deploy\n  Port 22\nHost second.test\n  User git\n  Port 2222\nHost *\n") {
		t.Errorf("%s", c)
	}
	if _, err := New(Options{KnownHosts: s.agent.opts.KnownHosts, Logins: []Login{{Address: "unknown.test:22"}}}); !errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), "the key of unknown.test:22 is not known") {
		t.Errorf("a server that is not known: %v", err)
	}
}
