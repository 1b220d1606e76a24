package sandboxtest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// testNetwork tries to reach listeners that really listen.
func testNetwork(t *testing.T, d sandbox.Driver) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { tcp.Close() }) // after the rows, which run in parallel
	abstract, err := net.Listen("unix", "@writ-test-"+strconv.Itoa(os.Getpid()))
	must(t, err)
	t.Cleanup(func() { abstract.Close() })
	port := strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	echo := echoUDP(t)
	six := "0" // nobody listens there
	if tcp6, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		t.Cleanup(func() { tcp6.Close() })
		six = strconv.Itoa(tcp6.Addr().(*net.TCPAddr).Port)
	}
	const pair = `py "import socket; a,b=socket.socketpair(); a.send(b'x'); assert b.recv(1)==b'x'"`
	sock := func(args, then string) row {
		return row{args, pair, `py "import socket; s=socket.socket(` + args + `); ` + then + `"`}
	}
	rows := []row{
		{"bash /dev/tcp", pair, `exec 3<>/dev/tcp/127.0.0.1/` + port},
		{"bash /dev/udp", pair, `exec 3<>/dev/udp/127.0.0.1/` + echo + `; echo x >&3; read -t 0.3 -N 1 -u 3`},
		sock("socket.AF_INET", "s.connect(('127.0.0.1',"+port+"))"),
		sock("socket.AF_INET,socket.SOCK_DGRAM", "s.settimeout(0.3); s.sendto(b'x',('127.0.0.1',"+echo+")); s.recv(1)"),
		sock("socket.AF_INET,socket.SOCK_DGRAM,17", "s.sendto(b'x',('192.0.2.1',53))"),
		sock("socket.AF_INET,socket.SOCK_DGRAM,1", "pass"),
		sock("socket.AF_INET,socket.SOCK_RAW,1", "pass"),
		sock("socket.AF_INET6", "s.connect(('::1',"+six+"))"),
		sock("socket.AF_INET6,socket.SOCK_DGRAM", "s.sendto(b'x',('2001:db8::1',53))"),
		sock("socket.AF_UNIX", "s.connect(chr(0)+'writ-test-"+strconv.Itoa(os.Getpid())+"')"),
		sock("socket.AF_UNIX,socket.SOCK_DGRAM", "pass"),
		sock("socket.AF_NETLINK,socket.SOCK_RAW,9", "pass"),  // audit
		sock("socket.AF_NETLINK,socket.SOCK_RAW,15", "pass"), // events of the kernel
		sock("socket.AF_PACKET,socket.SOCK_RAW", "pass"),
		sock("socket.AF_VSOCK", "pass"),
		sock("38,socket.SOCK_SEQPACKET", "pass"), // AF_ALG
		sock("31,socket.SOCK_RAW,1", "pass"),     // AF_BLUETOOTH
		{"pathname socket in a readable root", pair, `py "import socket; socket.socket(socket.AF_UNIX).connect(os.environ['RO']+'/sock')"`},
		{"pair of another family", pair, `py "import socket; socket.socketpair(socket.AF_INET)"`},
		{"fifo outside", `mkfifo p; (echo x >p &); cat p`, `echo x >$RO/fifo`},
	}
	runRows(t, d, rows, (*world).confinement, func(t testing.TB, w *world) {
		l, err := net.Listen("unix", filepath.Join(w.ro, "sock"))
		must(t, err)
		must(t, os.Chmod(filepath.Join(w.ro, "sock"), 0o777))
		t.Cleanup(func() { l.Close() })
		makeFIFO(t, filepath.Join(w.ro, "fifo"))
	})
}

// echoUDP answers datagrams on the host; it returns the port.
func echoUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo(b[:n], from)
		}
	}()
	return strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port)
}

// testRefuse: what cannot be held is not started.
func testRefuse(t *testing.T, d sandbox.Driver, have sandbox.Features) {
	w := newWorld(t)
	start := func(order writ.Writ, spec sandbox.Spec) error {
		b, err := d.Start(t.Context(), order, spec)
		if err == nil {
			b.Wait(t.Context())
		}
		return err
	}
	spec := sandbox.Spec{Argv: []string{"touch", filepath.Join(w.ws, "ran")}, Dir: w.ws}
	if err := start(writ.Writ{}, spec); err == nil {
		t.Error("the zero writ started something")
	}
	var kept writ.Writ
	With(t, w.confinement(), "", func(_ context.Context, order writ.Writ) { kept = order })
	if err := start(kept, spec); err == nil {
		t.Error("a spent writ started something")
	}
	for _, tc := range []struct {
		feature sandbox.Feature
		change  func(*writ.Confinement)
	}{
		{sandbox.HostAllowlist, func(c *writ.Confinement) {
			c.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"example.com:443"}}
		}},
		{sandbox.Containerized, func(c *writ.Confinement) { c.Isolation = writ.Containerized }},
		{"another driver", func(c *writ.Confinement) { c.Backend = "another" }},
	} {
		if have.Has(tc.feature) {
			continue
		}
		c := w.confinement()
		tc.change(&c)
		if o := Command(t, d, c, spec); writ.KindOf(o.Error) != writ.SandboxUnavailable {
			t.Errorf("%s is not enforced here, but the box was not refused: %v", tc.feature, o.Error)
		}
	}
	if _, err := os.Stat(filepath.Join(w.ws, "ran")); err == nil {
		t.Error("something ran")
	}
	if o := Command(t, d, w.confinement(), spec); o.Error != nil || o.Exit.Code != 0 {
		t.Errorf("inconclusive: the command does not run when it may: %v", o.Error)
	}
}
