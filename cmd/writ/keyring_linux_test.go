package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// session is a session of a desktop: a bus, and on it a keyring that is open.
type session struct {
	t         *testing.T
	env       []string
	bus, ring *exec.Cmd
}

func newSession(t *testing.T) *session {
	t.Helper()
	need.Programs(t, "dbus-daemon", "gnome-keyring-daemon", "secret-tool", "dbus-send")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, env: []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}}
	// A bus that starts nobody: what is on it is what is started here.
	config := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>unix:dir=`+dir+`</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.bus = exec.Command("dbus-daemon", "--nofork", "--print-address", "--config-file="+config)
	s.bus.Env = s.env
	out, err := s.bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.start(s.bus)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS="+strings.TrimSpace(line))
	s.open()
	return s
}

// open starts the keyring as a desktop does that somebody logs in to.
func (s *session) open() {
	s.t.Helper()
	if s.ring != nil {
		s.ring.Process.Kill()
		s.ring.Wait()
	}
	s.ring = exec.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	s.ring.Env, s.ring.Stdin = s.env, strings.NewReader("its password")
	s.start(s.ring)
	waitFor(s.t, func() bool {
		out, _ := s.run("", "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets/collection/login",
			"org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection", "string:Locked")
		return strings.Contains(out, "boolean false")
	})
}

func (s *session) start(c *exec.Cmd) {
	s.t.Helper()
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Process.Kill(); c.Wait() })
}

func (s *session) address() string { return s.env[len(s.env)-1] }

func (s *session) run(stdin string, args ...string) (string, error) {
	c := exec.Command(args[0], args[1:]...)
	c.Env, c.Stdin = s.env, strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s *session) must(stdin string, args ...string) string {
	s.t.Helper()
	out, err := s.run(stdin, args...)
	if err != nil {
		s.t.Fatalf("%v: %v %s", args, err, out)
	}
	return out
}

func (s *session) lock() {
	s.t.Helper()
	s.must("", "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login")
}

// Secrets are looked up in the keyring of the daemon's user, and so is the key of those in
// the store. One that is locked, silent or not there is said, soon, and opens nothing.
func TestKeyring(t *testing.T) {
	s, e := newSession(t), newEcho(t)
	w := newWorld(t, free, fmt.Sprintf(`secrets: {store: {key: "keyring:store-key"}}
connections:
  ring: {base_url: %[1]q, auth: {type: bearer, secret: "keyring:canary"}}
  store: {base_url: %[1]q, auth: {type: bearer, secret: "store:canary"}}
`, e.URL))
	w.more = []string{s.address()} // which the daemon that a command starts takes over
	w.init()
	check := func(ref, want string) {
		t.Helper()
		began := time.Now()
		o := w.run("", "secret", "check", ref)
		if took := time.Since(began); (o.code == 0) != (want == "") || !strings.Contains(o.err, want) || leaks(o.out+o.err) != "" || took > 15*time.Second {
			t.Errorf("%s after %v: %+v, want %q", ref, took, o, want)
		}
	}
	uses := func(connection string) {
		t.Helper()
		if o := w.api(map[string]any{"connection": connection, "path": "/v1"}); o.code != 0 || leaks(o.out+o.err) != "" {
			t.Errorf("%s: %+v", connection, o)
		}
		if got := e.last(t).Header.Get("Authorization"); got != "Bearer "+canary {
			t.Errorf("%s: the server got %q", connection, got)
		}
	}

	// It is not there, and then put there as the error says.
	const add = "secret-tool store --label=canary service writ username canary"
	check("keyring:canary", "secret keyring:canary: the keyring has no such item; add it: "+add)
	s.must(canary, strings.Fields(add)...)
	check("keyring:canary", "")
	uses("ring")

	// The key of the store is made in the keyring, and nowhere else; it opens over restarts.
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	key := s.must("", "secret-tool", "lookup", "service", "writ", "username", "store-key")
	if len(key) != 44 {
		t.Errorf("the keyring has %d characters as the key", len(key))
	}
	if files, err := filepath.Glob(w.state("keys", "*secrets*")); err != nil || len(files) > 0 {
		t.Errorf("there is a file: %v %v", files, err)
	}
	uses("store")
	w.must("", "serve", "--stop")
	w.daemonGone()
	uses("store")

	// Locked: nobody is asked anything, nothing opens, nothing is made anew.
	before := e.count()
	s.lock()
	for _, ref := range []string{"keyring:canary", "store:canary"} {
		check(ref, "the keyring is locked; unlock it")
	}
	if o := w.by("alice", []string{"another value"}, "secret", "set", "canary"); o.code == 0 || !strings.Contains(o.err, "the keyring is locked") {
		t.Errorf("set, locked: %+v", o)
	}
	if o := w.api(map[string]any{"connection": "store", "path": "/v1"}); o.code == 0 || !strings.Contains(o.err, "an operator finds out why with: writ connection test store") || e.count() != before {
		t.Errorf("used, locked: %+v", o)
	}
	s.open()
	if again := s.must("", "secret-tool", "lookup", "service", "writ", "username", "store-key"); again != key {
		t.Error("another key was made")
	}
	uses("store")

	// One that does not answer is not waited for, and is asked again when it does.
	s.ring.Process.Signal(syscall.SIGSTOP)
	check("keyring:canary", "the keyring does not answer")
	check("store:canary", "the keyring does not answer")
	s.ring.Process.Signal(syscall.SIGCONT)
	waitFor(t, func() bool { return w.run("", "secret", "check", "keyring:canary").code == 0 })
	uses("ring")

	// A key that is no key, or gone, opens nothing.
	s.must("not a key", "secret-tool", "store", "--label=k", "service", "writ", "username", "store-key")
	check("store:canary", "the key of the secrets in the store, keyring:store-key, cannot be used: it is not the base64 of 32 bytes")
	s.must("", "secret-tool", "clear", "service", "writ", "username", "store-key")
	check("store:canary", "cannot be used: the keyring has no such item")

	// Without a keyring, without a bus, without a session.
	s.ring.Process.Kill()
	s.ring.Wait()
	check("keyring:canary", "secret keyring:canary: ")
	s.bus.Process.Kill()
	s.bus.Wait()
	check("keyring:canary", "the daemon does not reach the session's bus, and so no keyring")
	w.must("", "serve", "--stop")
	w.daemonGone()
	w.more = nil
	check("keyring:canary", "the daemon has no session, and so no keyring (DBUS_SESSION_BUS_ADDRESS is not set)")
	w.verifies()
}
