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
	socket := filepath.Join(t.TempDir(), "agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	waitFor(t, func() bool { _, err := os.Stat(socket); return err == nil })
	add := exec.Command("ssh-add", "-q", s.key)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	s.write(filepath.Join(s.ws, "p.yaml"), "ssh: [root@forge.test]\n")
	s.write(filepath.Join(s.ws, "bad.yaml"), "ssh: ['-x@forge.test', 'root@forge.test:0']\n")
	named := []string{"--ssh", "root@forge.test"}
	run := func(flags []string, command string) outcome {
		return s.confines("", append(flags, "--", "bash", "-c", command)...)
	}
	if o := run(named, "ssh forge.test echo in"); o.code == 0 || !strings.Contains(o.err, "--ssh signs by your own agent of ssh, and you have none") {
		t.Errorf("without an agent: %+v", o)
	}
	s.more = []string{"SSH_AUTH_SOCK=" + socket}
	if o := run(named, "ssh forge.test echo in"); o.code == 0 || !strings.Contains(o.err, "the key of forge.test:22 is not known") {
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
		{"a key removed", named, "ssh-add -D", 1, "it was asked to forget a key"},
		{"nobody's name", []string{"--ssh", "-x@forge.test"}, "true", 2, "is not the name of a user; write one such as git@github.com"},
		{"no host", []string{"--ssh", "root@"}, "true", 2, "--ssh"},
		{"a bad policy", []string{"--policy", filepath.Join(s.ws, "bad.yaml")}, "true", 125, `bad.yaml:1: ssh[0]: "-x" is not the name of a user`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o := run(c.flags, c.command); o.code != c.code || !strings.Contains(o.out+o.err, c.want) {
				t.Errorf("%+v", o)
			}
		})
	}
	left := exec.Command("ssh-add", "-l")
	left.Env = add.Env
	if out, err := left.Output(); err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("the agent's keys: %v %s", err, out)
	}
}
