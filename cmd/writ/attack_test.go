package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// A pair of datagram sockets must not reach a socket that has a name, nor get a
// descriptor back through one.
func TestDatagramsStayInside(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	w := newWorld(t, "level: elevated\nautonomy: full\n", "").init()
	name := filepath.Join(w.project, "dgram.sock")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 4)
	go func() {
		buf := make([]byte, 64)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			got <- string(buf[:n])
		}
	}()
	probe := `python3 -c 'import socket,sys
a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_%s); a.sendto(b"%s", "` + name + `")'`
	for _, kind := range []string{"DGRAM", "RAW", "STREAM", "SEQPACKET"} {
		o := w.shell(fmt.Sprintf(probe, kind, "inside")) // the last takes no address, and says nothing of it
		if o.code == 0 && kind != "SEQPACKET" {
			t.Errorf("%s: %+v", kind, o)
		}
	}
	if out, err := shellOutside(fmt.Sprintf(probe, "DGRAM", "outside")); err != nil {
		t.Fatalf("the control does not send: %s", out)
	}
	if m := <-got; m != "outside" {
		t.Errorf("a box sent %q", m)
	}
}

// Terminals hold what a person types, a passphrase among it.
func TestTerminalsAreOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: elevated\nautonomy: full\n", "").init()
	if o := w.shell("head -c 1 /dev/urandom > /dev/null && cat /etc/hostname"); o.code != 0 {
		t.Fatalf("control: %+v", o)
	}
	outside := newTerminal(t, 80, 24)
	name := outside.slave.Name()
	if err := os.Chmod(name, 0o666); err != nil { // its mode is not what keeps a box away
		t.Fatal(err)
	}
	// A box makes terminals for itself, which are not those outside.
	if o := w.shell("ls /dev/pts; exec 3<>/dev/ptmx && ls /dev/pts"); o.code != 0 || o.out != "ptmx\n0\nptmx\n" {
		t.Errorf("terminals: %+v", o)
	}
	if o := w.shell("echo forged > " + name); o.code == 0 {
		t.Errorf("%s: %+v", name, o)
	}
	if out, err := shellOutside("echo control > " + name); err != nil {
		t.Fatal(out, err)
	}
	outside.waits("says nothing", func() bool { return strings.Contains(outside.raw(), "control") })
	if said := outside.raw(); strings.Contains(said, "forged") {
		t.Errorf("a box wrote on a terminal outside: %q", said)
	}
	for _, path := range []string{"/dev/tty", "/dev/input", "/sys/kernel", "/dev/mem", "/dev/vda"} {
		// What can be read and does not end is not refused.
		if o := w.shell("cat " + path + "/* " + path + " > /dev/null"); o.code == 0 || strings.Contains(o.out+o.err, "the time limit") {
			t.Errorf("%s: %+v", path, o)
		}
	}
}

// What an agent writes cannot forge a line of what a person reads.
func TestNewlinesDoNotForge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\nautonomy: locked\n", "").init()
	w.call("write_file", map[string]any{"path": "a\n\nwhat it can reach\n  can read     nothing\x1b[2K\u202e", "content": "x"})
	show := w.must("", "approval", "show", w.pending())
	for line := range strings.Lines(show) {
		if strings.HasPrefix(line, "  can read     nothing") || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("a forged line:\n%s", show)
		}
	}
	for line := range strings.Lines(show) { // the heading alone begins a line
		if strings.Contains(line, "what it can reach") && line != "what it can reach\n" && !strings.HasPrefix(line, "    │ ") && !strings.Contains(line, "<U+000A>") {
			t.Errorf("a forged line %q", line)
		}
	}
	if strings.Count(show, "what it can reach") != 4 { // the heading, and thrice inside other lines
		t.Errorf("%s", show)
	}
}

// A tool that an agent may not use tells it nothing about itself.
func TestInvisibleToolsStayHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: sandboxed\n", "").init()
	good, bad := w.shell("true"), w.call("shell_command", map[string]any{"nonsense": 1})
	if good.code != 3 || bad.code != 3 || good.err != bad.err {
		t.Errorf("%+v\n%+v", good, bad)
	}
}

func TestTaskIsAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	for task, want := range map[string]int{"fix-42": 0, strings.Repeat("x", 129): 1, "a\nb": 1, "\u202e": 1} {
		if o := w.run("", "call", "stat", "path=.", "--task", task); o.code != want {
			t.Errorf("%.20q: %+v", task, o)
		}
	}
}

// However much an agent sends, the operator can stop it.
func TestFloodKeepsNobodyOut(t *testing.T) {
	w := newWorld(t, standard, "").init()
	addr, _ := w.serve()
	for range 700 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", w.token)
	}
	if o := w.run("", "stop", "coder"); o.code != 0 {
		t.Errorf("stop: %+v", o)
	}
	if o := w.run("", "approval", "list"); o.code != 0 {
		t.Errorf("approval list: %+v", o)
	}
}

// The program itself must not lie where an agent can replace it.
func TestProgramOutsideWorkspaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	w.edit(fmt.Sprintf("{path: %q, project: %q}", w.ws, w.project), fmt.Sprintf("{path: %q}", filepath.Dir(program)))
	if o := w.run("", "config", "check"); o.code != 1 || !strings.Contains(o.err, "the writ program") {
		t.Errorf("%+v", o)
	}
}
