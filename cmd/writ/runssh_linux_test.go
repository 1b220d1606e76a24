package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// A command that a person runs signs in by that person's own agent, at the server that was
// named and at no other.
func TestRunSSH(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	need.Programs(t, "ssh-agent", "ssh-add")
	s := newServers(t)
	socket := startAgent(t)
	sshAdd(t, socket, "-q", s.key)
	s.write(filepath.Join(s.ws, "p.yaml"), "ssh: [root@forge.test]\n")
	s.write(filepath.Join(s.ws, "bad.yaml"), "ssh: ['-x@forge.test', 'root@forge.test:0']\n")
	named := []string{"--ssh", "root@forge.test"}
	run := func(flags []string, command string) outcome {
		return s.confines("", append(flags, "--", "bash", "-c", command)...)
	}
	if o := run(named, "ssh forge.test echo in"); o.code != 125 || !strings.Contains(o.err, "--ssh signs by your own agent of ssh, and you have none") || strings.Count(o.err, "\n") != 1 {
		t.Errorf("without an agent: %+v", o)
	}
	s.more = []string{"SSH_AUTH_SOCK=" + filepath.Join(s.home, "gone")}
	if o := run(named, "echo begun"); o.code != 125 || o.out != "" || !strings.Contains(o.err, "nothing answers at "+filepath.Join(s.home, "gone")+" (SSH_AUTH_SOCK); start one") || strings.Count(o.err, "\n") != 1 {
		t.Errorf("with an agent that is gone: %+v", o)
	}
	s.more = []string{"SSH_AUTH_SOCK=" + socket}
	if o := run(named, "ssh forge.test echo in"); o.code != 125 || !strings.Contains(o.err, "the key of forge.test:22 is not known; an operator compares what ssh-keyscan forge.test says") || strings.Count(o.err, "\n") != 1 {
		t.Errorf("a server that is not known: %+v", o)
	}
	if err := os.MkdirAll(filepath.Join(s.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.home, ".ssh/known_hosts"), readText(t, s.known))
	for _, c := range []struct {
		name    string
		flags   []string
		command string
		code    int
		want    string
	}{
		{"named", named, "ssh forge.test 'echo I am $(id -un)'", 0, "I am root\n"},
		{"in a policy", []string{"--policy", filepath.Join(s.ws, "p.yaml")}, "ssh forge.test echo in", 0, "in\n"},
		{"another server", append([]string{"--allow-host", "other.test:22"}, named...), anyKey + "root@other.test true", 255, "writ run: ssh forge.test:22: not_signed (the program talks to a server whose key is not one of those that are known of forge.test:22)"},
		{"as somebody else", []string{"--ssh", "daemon@forge.test"}, "ssh root@forge.test true", 255, `not_signed (the program wants to be "root" there, by a key that is not for that)`},
		{"reached only", []string{"--allow-host", "forge.test:22"}, anyKey + "root@forge.test true; echo sock=$SSH_AUTH_SOCK.", 0, "sock=."},
		{"to be reached first", []string{"--allow-host", "forge.test"}, "ssh root@forge.test true", 255, "(--ssh USER@forge.test would allow it, and signing in there by your own agent of ssh; --allow-host forge.test:22 no more than to reach it)"},
		{"another one to be named", named, "ssh root@other.test true", 255, "dns other.test: host_not_allowed (--ssh USER@other.test would allow signing in there; --allow-host other.test port 443 of it, other.test:PORT another)"},
		{"another port of it", named, "ssh -p 2222 root@forge.test true", 255, "(--ssh USER@forge.test:2222 would allow it, and signing in there by your own agent of ssh; --allow-host forge.test:2222 no more than to reach it)"},
		{"a file to be signed", named, "ssh-add -L >k.pub; ssh-keygen -Y sign -n file -f k.pub p.yaml", 255, "it signs for signing in and nothing else, such as files"},
		{"an address without a port", []string{"--ipv6", "--ssh", "root@[2001:db8::7]"}, "true", 125, "the key of [2001:db8::7]:22 is not known"},
		{"a URL", []string{"--ssh", "ssh://root@forge.test"}, "true", 2, "it is a URL; write the server alone"},
		{"a path", []string{"--ssh", "a/b@forge.test"}, "true", 2, "is not the name of a user"},
		{"a key removed", named, "ssh-add -D", 1, "it was asked to forget a key"},
		{"nobody's name", []string{"--ssh", "-x@forge.test"}, "true", 2, "is not the name of a user; write one such as git@github.com"},
		{"no host", []string{"--ssh", "root@"}, "true", 2, "--ssh"},
		{"a bad policy", []string{"--policy", filepath.Join(s.ws, "bad.yaml")}, "true", 125, `bad.yaml:1: ssh[0]: "-x" is not the name of a user`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o := run(c.flags, c.command); o.code != c.code || !strings.Contains(o.out+o.err, c.want) || strings.Contains(o.err, "not in the daemon's log") {
				t.Errorf("%+v", o)
			}
		})
	}
	s.write(filepath.Join(s.home, ".ssh/known_hosts"), strings.Replace(readText(t, s.known), "forge.test ", "*.test ", 1))
	var many []string
	for _, c := range "abcdefghijkl" {
		many = append(many, "--ssh", "root@"+strings.Repeat(string(c), 40)+".test")
	}
	if o := run(many, "ssh-add -D"); o.code != 1 || strings.Contains(o.err, "not in the daemon's log") {
		t.Errorf("so many servers that they are too long for a report: %+v", o)
	}
	log := s.must("", "egress", "log", "--agent", "writ run")
	for _, want := range []string{"signed in as root with the key SHA256:", `the program wants to be "root" there`, "--ssh root@forge.test:22"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	if left := sshAdd(t, socket, "-l"); strings.Count(left, "\n") != 1 {
		t.Errorf("the agent's keys: %s", left)
	}
	sshAdd(t, socket, "-D")
	if o := run(named, "ssh forge.test true"); o.code != 255 || !strings.Contains(o.err, "your agent of ssh has none; add one: ssh-add") {
		t.Errorf("an agent without keys: %+v", o)
	}
}

// startAgent starts an agent of ssh without keys.
func startAgent(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	waitFor(t, func() bool { _, err := os.Stat(socket); return err == nil })
	return socket
}

// sshAdd runs ssh-add for an agent.
func sshAdd(t *testing.T, socket string, args ...string) string {
	t.Helper()
	add := exec.Command("ssh-add", args...)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	out, err := add.CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-add %v: %v %s", args, err, out)
	}
	return string(out)
}

// Where authorities say who users and servers are, certificates do what keys do.
func TestRunSSHCertificates(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	need.Programs(t, "ssh-agent", "ssh-add")
	s := newServers(t)
	dir := filepath.Dir(s.key)
	file := func(n string) string { return filepath.Join(dir, n) }
	keygen := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ssh-keygen", append([]string{"-q"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	for _, k := range []string{"authority", "mine"} {
		keygen("-t", "ed25519", "-N", "", "-f", file(k))
	}
	keygen("-s", file("authority"), "-I", "me", "-n", "root", file("mine.pub"))
	keygen("-s", file("authority"), "-I", "server", "-h", "-n", "certified.test", file("host.pub"))
	authority := readText(t, file("authority.pub"))
	s.write(file("authorized"), "cert-authority "+authority)
	s.write(file("config"), strings.Replace(readText(t, file("config")), "ListenAddress "+lab.Public+":22", "ListenAddress "+lab.Private+":22\nHostCertificate "+file("host-cert.pub"), 1))
	server := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", file("config"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	if err := os.MkdirAll(filepath.Join(s.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.home, ".ssh/known_hosts"), "@cert-authority *.test "+authority)
	socket := startAgent(t)
	sshAdd(t, socket, "-q", file("mine"))
	s.more = []string{"SSH_AUTH_SOCK=" + socket}
	run := func(host, command string) outcome {
		return s.confines("", "--ssh", "root@"+host, "--allow-range", lab.Private+"/32", "--", "bash", "-c", command)
	}
	if o := run("certified.test", "ssh certified.test echo in"); o.code != 0 || o.out != "in\n" {
		t.Errorf("%+v", o)
	}
	if o := run("impostor.test", anyKey+"root@impostor.test echo in"); o.code == 0 || !strings.Contains(o.err, "not one of those that are known of impostor.test:22") {
		t.Errorf("a certificate for another server: %+v", o)
	}
	if o := run("certified.test", "cat /etc/ssh/ssh_known_hosts"); !strings.HasPrefix(o.out, "@cert-authority certified.test ssh-ed25519 ") {
		t.Errorf("%+v", o)
	}
	// Git's own tools take the server's certificate as well; the user's they do not have.
	s.write(file("authorized"), readText(t, s.key+".pub"))
	s.write(s.known, "@cert-authority *.test "+authority)
	s.edit("forge.test: {user: root,", "certified.test: {user: root,")
	s.edit("forge.test:22: {class: read_only}", "certified.test:22: {class: read_only, ranges: ["+lab.Private+"/32]}")
	s.must("", "config", "reload")
	s.forge.repository("plain", map[string]string{"README": "hello\n"})
	url := "ssh://certified.test" + filepath.Join(s.forge.root, "plain.git")
	if o := s.call("git_clone", map[string]any{"url": url}); o.code != 0 {
		t.Errorf("git_clone: %+v", o)
	}
}
