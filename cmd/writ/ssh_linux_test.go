package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/need"
)

// servers are two of ssh that take one key, and a world in which commands sign in at the
// first of them.
type servers struct {
	*world
	forge      *forge
	key, known string
}

// newServers starts them at forge.test and other.test. Both are known, and class read_only
// keeps people from being asked.
func newServers(t *testing.T) *servers {
	t.Helper()
	need.Programs(t, "ssh", "python3")
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}, "other.test": {{lab.Other}}, "certified.test": {{lab.Private}}, "impostor.test": {{lab.Private}}})
	s := &servers{forge: f}
	s.key, s.known = f.sshd(lab.Public+":22", "forge.test")
	other, otherKnown := f.sshd(lab.Other+":22", "other.test")
	public, known := readText(t, s.key+".pub"), readText(t, s.known)+readText(t, otherKnown)
	for path, text := range map[string]string{filepath.Join(filepath.Dir(other), "authorized"): public, s.known: known} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.world = newWorld(t, gitAgent, `egress:
  hosts:
    forge.test:22: {class: read_only}
    other.test:22: {class: read_only}
  ssh:
    known_hosts: `+s.known+`
    hosts:
      forge.test: {user: root, key: "file:`+s.key+`", agents: [coder]}
`).init()
	return s
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// to runs a command that reaches servers.
func (s *servers) to(command string, hosts ...string) outcome {
	s.t.Helper()
	return s.call("shell_command", map[string]any{"command": command, "hosts": hosts, "timeout_seconds": 60})
}

// anyKey has ssh take whatever key a server shows, so that only the agent looks at it.
const anyKey = "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o ConnectTimeout=10 "

// A command signs in at the server that its agent was lent a key for, and the key signs
// for nobody else there, nowhere else, and is in no box.
func TestSSHFromCommand(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := newServers(t)
	forge, other := "forge.test:22", "other.test:22"
	if o := s.to("ssh forge.test 'echo I am $(id -un)'", forge); o.code != 0 || o.out != "I am root\n" {
		t.Fatalf("%+v\n%s", o, s.must("", "egress", "log"))
	}
	if log := s.must("", "egress", "log"); !strings.Contains(log, "signed in as root with the key SHA256:") {
		t.Errorf("the log does not say who signed in:\n%s", log)
	}
	// The other server takes the key; only the agent keeps a box from it.
	direct := exec.Command("ssh", "-F", "none", "-i", s.key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "root@"+lab.Other, "echo", "taken")
	if out, err := direct.Output(); err != nil || string(out) != "taken\n" {
		t.Fatalf("the control: %v %q", err, out)
	}
	for _, c := range []struct {
		name, command string
		hosts         []string
		want          string
	}{
		{"a server that it is not for", anyKey + "root@other.test true", []string{forge, other}, "the program talks to a server whose key is not one of those that are known of forge.test:22"},
		{"alone", anyKey + "root@other.test true; echo sock=$SSH_AUTH_SOCK.", []string{other}, "sock=."},
		{"forwarded", anyKey + "-A forge.test 'test -n \"$SSH_AUTH_SOCK\" && ssh-add -l && exit 0; exit 7'", []string{forge}, "it is not forwarded"},
		{"another server, as that one", anyKey + "-o HostKeyAlias=forge.test -o HostName=other.test forge.test true", []string{forge, other}, "not one of those that are known"},
		{"a key for the agent", "ssh-keygen -q -t ed25519 -N '' -f /tmp/k && ssh-add /tmp/k", []string{forge}, "it was asked to take a key"},
		{"none for the agent", "ssh-add -D", []string{forge}, "it was asked to forget a key"},
		{"a locked agent", "printf '#!/bin/sh\\necho x\\n' >/tmp/p; chmod +x /tmp/p; SSH_ASKPASS_REQUIRE=force SSH_ASKPASS=/tmp/p ssh-add -x", []string{forge}, "it was asked to be locked"},
		{"a signature of anything", "ssh-add -L >/tmp/k.pub; echo x >/tmp/x; ssh-keygen -Y sign -n file -f /tmp/k.pub /tmp/x", []string{forge}, "it signs for signing in and nothing else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := s.to(c.command, c.hosts...)
			if o.code == 0 && !strings.Contains(c.want, "sock=") || !strings.Contains(o.out+o.err, c.want) {
				t.Errorf("%+v", o)
			}
		})
	}
	if o := s.to("ssh-add -L", forge); !strings.HasPrefix(o.out, strings.Join(strings.Fields(readText(t, s.key+".pub"))[:2], " ")+" root@forge.test:22") || strings.Count(o.out, "\n") != 1 {
		t.Errorf("what it has: %+v", o)
	}
	// Nothing of the key is in the box, and no other socket than the agent's.
	canary := strings.Split(readText(t, s.key), "\n")[2]
	if o := s.to("ssh forge.test true; grep -rslF '"+canary+"' /etc /tmp /run /var /proc/self/environ /proc/self/maps; cat "+s.key+" "+s.known+"; echo over", forge); !strings.Contains(o.out, "over") || strings.Contains(o.out, canary) || strings.Contains(o.out, "PRIVATE") || strings.Contains(o.out, "other.test ") || strings.Contains(o.out, "/etc/") {
		t.Errorf("%+v", o)
	}
	planted := filepath.Join(s.ws, "planted.sock")
	l, err := net.Listen("unix", planted)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(planted, 0o777); err != nil {
		t.Fatal(err)
	}
	if o := s.to("SSH_AUTH_SOCK="+planted+" ssh-add -l; ls -l planted.sock", forge); !strings.Contains(o.out+o.err, "Could not open a connection to your authentication agent") && !strings.Contains(o.out+o.err, "Error connecting to agent") || !strings.Contains(o.out, "planted.sock") {
		t.Errorf("a socket of the host's: %+v", o)
	}
}

// What a call signs in with is shown, bound by approvals, and goes with the operator's word.
func TestSSHIsDecided(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := newServers(t)
	const forge = "forge.test:22"
	if o := s.must("", "explain", "shell_command", "--agent", "coder", "command=x", `hosts:=["forge.test:22"]`); !strings.Contains(o, "signs in     by ssh at forge.test:22 as root, by an agent outside, with the key file:"+s.key) || !strings.Contains(o, "it signs in at forge.test:22 as root, with a key that stays outside") {
		t.Errorf("explain:\n%s", o)
	}
	if o := s.run("", "config", "check"); !strings.Contains(o.out+o.err, "commands of coder sign in at forge.test:22 without asking anybody") {
		t.Errorf("config check: %+v", o)
	}
	if o := s.call("shell_command", map[string]any{"command": "ssh forge.test sleep 30", "hosts": []string{forge}, "background": true}); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	box := s.sandboxes()[0]
	if o := s.must("", "sandbox", "show", box.ID); !strings.Contains(o, "signs in     by ssh at forge.test:22 as root") {
		t.Errorf("sandbox show:\n%s", o)
	}
	// Without the class a person is asked, and agrees to that user and that key.
	s.edit("forge.test:22: {class: read_only}", "forge.test:22: {class: write}")
	s.must("", "config", "reload")
	if o := s.to("ssh forge.test echo in", forge); o.code != 4 {
		t.Fatalf("nobody was asked: %+v", o)
	}
	id := s.pending()
	if o := s.must("", "approval", "show", id); !strings.Contains(o, "signs in     by ssh at forge.test:22 as root") {
		t.Errorf("what a person sees:\n%s", o)
	}
	s.approves(id)
	if o := s.to("ssh forge.test echo in", forge); o.code != 0 || o.out != "in\n" {
		t.Errorf("agreed: %+v", o)
	}
	s.edit("forge.test:22: {class: write}", "forge.test:22: {class: read_only}")
	// A server whose key is not the known one, or not known, gets nothing signed.
	known := readText(t, s.known)
	if err := os.WriteFile(s.known, []byte(readText(t, strings.TrimSuffix(s.known, "known")+"wrong")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("", "config", "reload")
	if o := s.to(anyKey+"forge.test true", forge); o.code == 0 || !strings.Contains(o.out+o.err, "not one of those that are known of forge.test:22") {
		t.Errorf("another key: %+v", o)
	}
	if o := s.to("ssh forge.test true", forge); o.code == 0 || !strings.Contains(o.out+o.err, "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("another key, which ssh looks at: %+v", o)
	}
	if err := os.WriteFile(s.known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := s.to("ssh forge.test true", forge); o.code == 0 || !strings.Contains(o.out+o.err, "the key of forge.test:22 is not known; an operator compares") {
		t.Errorf("no key: %+v", o)
	}
	if o := s.run("", "config", "check"); o.code != 0 || !strings.Contains(o.out, "the key of forge.test:22 is not known; an operator compares what ssh-keyscan forge.test says") {
		t.Errorf("no key, before anybody needs it: %+v", o)
	}
	if err := os.WriteFile(s.known, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	// A driver that has no agent does not start, and says which does.
	need.Programs(t, "bwrap")
	s.edit("egress:\n", "sandboxing: {overrides: {terminal: bwrap}}\negress:\n")
	s.must("", "config", "reload")
	if o := s.to("ssh forge.test true", forge); o.code == 0 || !strings.Contains(o.out+o.err, "ssh_agent") || !strings.Contains(o.out+o.err, "driver native has one") {
		t.Errorf("bwrap: %+v", o)
	}
	s.edit("sandboxing: {overrides: {terminal: bwrap}}\n", "")
	// An agent that is not named signs in nowhere.
	s.edit(", agents: [coder]", "")
	s.must("", "config", "reload")
	if o := s.to(anyKey+"root@forge.test true; echo sock=$SSH_AUTH_SOCK.", forge); !strings.Contains(o.out+o.err, "Permission denied") || !strings.Contains(o.out, "sock=.") {
		t.Errorf("not named: %+v", o)
	}
	if o := s.must("", "explain", "shell_command", "--agent", "coder", "command=x", `hosts:=["forge.test:22"]`); !strings.Contains(o, "it does not sign in at forge.test:22: the key there is not lent to commands of coder, which agents would have to name") {
		t.Errorf("explain, not named:\n%s", o)
	}
}

// Git over ssh is git's own business in a command that signs in.
func TestSSHGitPush(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := newServers(t)
	s.forge.repository("plain", map[string]string{"README": "hello\n"})
	url := "ssh://forge.test" + filepath.Join(s.forge.root, "plain.git")
	script := "git clone -q " + url + " work && cd work && echo mine >mine && git add mine && git -c user.name=a -c user.email=a@b commit -q -m mine && git push -q origin HEAD:topic"
	if o := s.to(script, "forge.test:22"); o.code != 0 {
		t.Fatalf("%+v\n%s", o, s.must("", "egress", "log"))
	}
	if o := s.forge.git(filepath.Join(s.forge.root, "plain.git"), "log", "-1", "--format=%s", "topic"); o != "mine\n" {
		t.Errorf("what was pushed is %q", o)
	}
}

// A tool of a definition signs in where it says so, and not otherwise.
func TestSSHFromTool(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := newServers(t)
	for name, secrets := range map[string]string{"declared": `, secrets: ["ssh:forge.test"]`, "elsewhere": `, secrets: ["ssh:other.test"]`, "silent": ""} {
		s.place("tools/"+name+".yaml", "name: "+name+"\ndescription: Say how long a server is up.\ncategory: terminal\naction_type: code:read\negress_class: read_only\n"+
			`policy: {risk: low, exec: allow, network: {hosts: ["forge.test:22"]}`+secrets+"}\n"+
			`parameters: {type: object, required: [server], properties: {server: {type: string, x-writ-host: true}}}`+"\n"+
			`runner: {process: {argv: ["ssh", "-o", "StrictHostKeyChecking=no", "root@forge.test", "echo", "up"]}}`+"\n")
	}
	s.accept("declared", "elsewhere", "silent")
	if o := s.run(pass+"\n", "tool", "waive", "declared", "--class", "read_only", "--reason", "a test", "--passphrase-stdin"); !strings.Contains(o.out+o.err, "is lent: ssh:forge.test") {
		t.Errorf("what is waived: %+v", o)
	}
	if o := s.call("declared", map[string]any{"server": "forge.test:22"}); o.code != 0 || !strings.HasPrefix(o.out, "up\n") {
		t.Errorf("declared: %+v", o)
	}
	for _, name := range []string{"elsewhere", "silent"} {
		if o := s.call(name, map[string]any{"server": "forge.test:22"}); o.code == 0 || !strings.Contains(o.out+o.err, "Permission denied (publickey") {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A daemon that is killed takes the agent and what talks to it along; the next one signs.
func TestSSHDaemonKilled(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	s := newServers(t)
	_, kill := s.serve()
	o := s.call("shell_command", map[string]any{"command": "ssh forge.test 'echo in; sleep 20' & exec 3< <(ssh forge.test 'sleep 20'); wait", "hosts": []string{"forge.test:22"}, "background": true})
	if o.code != 0 {
		t.Fatalf("%+v", o)
	}
	clients := func() (n int) {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, at := range all {
			if b, _ := os.ReadFile(at); strings.HasPrefix(string(b), "ssh\x00forge.test\x00") {
				n++
			}
		}
		return n
	}
	waitFor(t, func() bool { return clients() == 2 })
	kill()
	waitFor(t, func() bool { return clients() == 0 })
	if o := s.to("ssh forge.test echo again", "forge.test:22"); o.code != 0 || o.out != "again\n" {
		t.Errorf("the next daemon: %+v", o)
	}
}
