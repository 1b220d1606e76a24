package docker

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"golang.org/x/sys/unix"
)

// greeter is an outlet that tells every connection where it was meant to go, and counts
// the questions about names.
type greeter struct {
	asked     atomic.Int64
	closed    atomic.Int64
	authority []byte
}

type greeting struct {
	sandbox.Mouth
	authority []byte
	closed    *atomic.Int64
}

func (g greeting) Close() error {
	defer g.closed.Add(1)
	return g.Mouth.Close()
}

func (g greeting) Authority() []byte { return g.authority }

func (g *greeter) open(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
	serve := func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to, err := m.Original(c)
			fmt.Fprintln(c, "to", to, err)
			c.Close()
		}
	}
	hear := func(p net.PacketConn) {
		b := make([]byte, 1500)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			g.asked.Add(1)
			p.WriteTo(b[:n], from)
		}
	}
	go serve(m.TCP)
	go hear(m.DNS)
	if m.TCP6 != nil {
		go serve(m.TCP6)
		go hear(m.DNS6)
	}
	return greeting{m, g.authority, &g.closed}, nil
}

// networked is a confinement of boxes that reach hosts.
func networked(ws string) writ.Confinement {
	return writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process, Network: writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"a.example:443"}}}
}

const python = `exec 2>&1; python3 - <<'E'
import socket
def talk(to, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(5)
    try: s.connect(to); print(s.makefile().readline(), end="")
    except OSError as e: print(to[0], type(e).__name__, e.errno)
def ask(to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    try: s.sendto(b"hello", to); print("answer", s.recv(9))
    except OSError as e: print(to[0], type(e).__name__, e.errno)
def own(family=socket.AF_INET, at="127.0.0.1"):
    try:
        l = socket.create_server((at, 0), family=family); c = socket.socket(family); c.settimeout(2); c.connect(l.getsockname()); l.accept()[0].sendall(b"x"); print("own", c.recv(1))
    except OSError as e: print("own", type(e).__name__, e.errno)
def pair(to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1); s.bind(("0.0.0.0", 999))
    try: s.sendto(b"x", (to, 999)); print("pair", s.recv(1))
    except OSError as e: print("pair", type(e).__name__, e.errno)
%s
E`

func (g *greeter) driver(t *testing.T, change func(*Options)) *Driver {
	t.Helper()
	o := options(t)
	o.Outlet = g.open
	if change != nil {
		change(&o)
	}
	return driver(t, o)
}

// Every connection of a box comes to the outlet, loopback is its own, and nobody else is
// reached; also not the host, which is where the sidecar's engine is.
func TestNetwork(t *testing.T) {
	g := &greeter{}
	d, ws := g.driver(t, nil), workspace(t)
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	port := host.Addr().(*net.TCPAddr).Port
	c := networked(ws)
	o := sandboxtest.Command(t, d, c, shell(fmt.Sprintf(python, fmt.Sprintf("talk(('198.51.100.7', 443)); ask(('198.51.100.7', 53)); ask(('198.51.100.7', 999)); own(); own(socket.AF_INET6, '::1'); talk(('127.0.0.1', %d)); talk(('2001:db8::1', 443), socket.AF_INET6)", port)), ws))
	if want := "to 198.51.100.7:443 <nil>\nanswer b'hello'\n198.51.100.7 TimeoutError None\nown b'x'\nown b'x'\n127.0.0.1 ConnectionRefusedError 111\n2001:db8::1 OSError 101\n"; o.Error != nil || o.Out != want {
		t.Errorf("%v\n%s\nwant %s", o.Error, o.Out, want)
	}
	if divert.KnowsSix() {
		c.Network.IPv6 = true
		o = sandboxtest.Command(t, d, c, shell(fmt.Sprintf(python, "talk(('2001:db8::1', 443), socket.AF_INET6); talk(('198.51.100.7', 443)); own(socket.AF_INET6, '::1')"), ws))
		if want := "to [2001:db8::1]:443 <nil>\nto 198.51.100.7:443 <nil>\nown b'x'\n"; o.Error != nil || o.Out != want {
			t.Errorf("IPv6: %v\n%s\nwant %s", o.Error, o.Out, want)
		}
	}
	c.Network = writ.Network{}
	o = sandboxtest.Command(t, d, c, shell(fmt.Sprintf(python, fmt.Sprintf("own(); talk(('127.0.0.1', %d)); talk(('198.51.100.7', 443))", port)), ws))
	if want := "own b'x'\n127.0.0.1 ConnectionRefusedError 111\n198.51.100.7 OSError 101\n"; o.Error != nil || o.Out != want {
		t.Errorf("none: %v\n%s\nwant %s", o.Error, o.Out, want)
	}
}

// What a sidecar is told to drop goes nowhere, and the rest goes on.
func TestBounds(t *testing.T) {
	const tries = "ask(('127.0.0.1', 53)); ask(('198.51.100.7', 53)); own(); own(socket.AF_INET6, '::1'); talk(('198.51.100.7', 443)); pair('198.51.100.7')"
	for _, c := range []struct {
		side  Sidecar
		want  string
		asked int64
	}{
		{Sidecar{NoNames: true}, "127.0.0.1 PermissionError 1\n198.51.100.7 PermissionError 1\nown b'x'\nown b'x'\nto 198.51.100.7:443 <nil>\npair b'x'\n", 0},
		{Sidecar{NoLoopback: true}, "answer b'hello'\nanswer b'hello'\nown TimeoutError None\nown TimeoutError None\nto 198.51.100.7:443 <nil>\npair PermissionError 1\n", 2},
		{Sidecar{NoNames: true, NoLoopback: true}, "127.0.0.1 PermissionError 1\n198.51.100.7 PermissionError 1\nown TimeoutError None\nown TimeoutError None\nto 198.51.100.7:443 <nil>\npair PermissionError 1\n", 0},
	} {
		g := &greeter{}
		ws := workspace(t)
		d := g.driver(t, func(o *Options) {
			o.Sidecar.NoNames, o.Sidecar.NoLoopback = c.side.NoNames, c.side.NoLoopback
		})
		o := sandboxtest.Command(t, d, networked(ws), shell(fmt.Sprintf(python, tries), ws))
		if o.Error != nil || o.Out != c.want || g.asked.Load() != c.asked {
			t.Errorf("%+v: %v asked %d\n%s\nwant %s", c.side, o.Error, g.asked.Load(), o.Out, c.want)
		}
	}
}

// begun runs a command in a networked box until it says something, hands that box to look,
// and waits for its end.
func begun(t *testing.T, d *Driver, ws, command string, look func(*box, func() string)) sandbox.Exit {
	t.Helper()
	var exit sandbox.Exit
	sandboxtest.With(t, networked(ws), ws, func(ctx context.Context, w writ.Writ) {
		r, out := io.Pipe()
		in, more := io.Pipe()
		defer more.Close()
		spec := shell(command, ws)
		spec.Stdout, spec.Stderr, spec.Stdin = out, out, in
		b, err := d.Start(ctx, w, spec)
		if err != nil {
			t.Error(err)
			return
		}
		said := func() string {
			more.Write([]byte("go on\n"))
			line := make([]byte, 500)
			n, _ := r.Read(line)
			return string(line[:n])
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			exit, err = b.Wait(ctx)
			if c := exit.Container; c != nil && c.Said != nil {
				io.Copy(io.Discard, c.Said)
				c.Said.Close()
			}
			out.Close()
		}()
		look(b.(*box), said)
		more.Close()
		go io.Copy(io.Discard, r)
		<-done
		if err != nil {
			t.Error(err)
		}
	})
	return exit
}

// A sidecar has what it needs and no more, gives that up, and is gone with its box.
func TestSidecar(t *testing.T) {
	g := &greeter{authority: []byte("# the authority of this box\n")}
	d, ws := g.driver(t, nil), workspace(t)
	engine, err := d.talk()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	begun(t, d, ws, `read; tail -qn 1 "$SSL_CERT_FILE" "$CURL_CA_BUNDLE" /etc/pki/tls/certs/ca-bundle.crt | uniq -c; read`, func(b *box, say func() string) {
		if said := say(); !strings.Contains(said, "3 # the authority of this box\n") {
			t.Errorf("the box does not trust the outlet: %q", said)
		}
		id, said := b.Sidecar()
		if len(said.Lines) != 1 || said.Skipped != 0 || !strings.Contains(string(said.Lines[0]), `"msg":"ready"`) {
			t.Errorf("it said %s", said.Lines)
		}
		is, err := engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := is.Container
		h := c.HostConfig
		slices.Sort(h.CapAdd)
		if got := fmt.Sprintln(h.NetworkMode, h.ReadonlyRootfs, h.CapDrop, h.CapAdd, h.Privileged, *h.PidsLimit, h.Memory, h.AutoRemove, h.PidMode, h.IpcMode, len(h.Binds)); got != "none true [ALL] [CAP_NET_ADMIN CAP_SETGID CAP_SETUID] false 32 67108864 true  private 0\n" {
			t.Errorf("it has %s", got)
		}
		if !strings.Contains(h.Tmpfs["/tmp"], "size=8388608") || !strings.Contains(fmt.Sprint(h.SecurityOpt), "no-new-privileges:true") || !strings.Contains(fmt.Sprint(h.SecurityOpt), "seccomp=") {
			t.Errorf("it has %v %v", h.Tmpfs, h.SecurityOpt)
		}
		if c.Config.Labels[labelManaged] != "true" || c.Config.Labels[labelPart] != "sidecar" || c.Config.Labels[labelProof] != d.proof(strings.TrimPrefix(c.Name, "/")) {
			t.Errorf("labels %v", c.Config.Labels)
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.State.Pid))
		for _, file := range threads {
			status, _ := os.ReadFile(file)
			for _, want := range []string{"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n", "Seccomp_filters:\t2\n"} { // the engine's filter and its own
				if !strings.Contains(string(status), want) {
					t.Errorf("%s has not %q:\n%s", file, want, status)
				}
			}
		}
		if len(threads) == 0 {
			t.Error("it does not run")
		}
		box, err := engine.ContainerInspect(t.Context(), b.in.id, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if string(box.Container.HostConfig.NetworkMode) != "container:"+id {
			t.Errorf("the box has network %s", box.Container.HostConfig.NetworkMode)
		}
		for _, m := range box.Container.Mounts {
			if strings.Contains(m.Source, "/meet") {
				t.Errorf("the box is shown %s", m.Source)
			}
		}
		ids = append(ids, id, b.in.id)
	})
	for _, id := range ids { // the engine itself removes one that has ended, and may still be at it
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			is, err := engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
			if errdefs.IsNotFound(err) {
				break
			}
			if err != nil || is.Container.State.Running || time.Now().After(end) {
				t.Fatalf("%s is still there: %+v %v", id, is.Container.State, err)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(d.opts.State, asides)); err != nil || len(left) > 0 {
		t.Errorf("left are %v %v", left, err)
	}
}

// Without its sidecar a box has no network, and goes on.
func TestSidecarKilled(t *testing.T) {
	g := &greeter{}
	d, ws := g.driver(t, nil), workspace(t)
	const connect = `python3 -c 'import socket; print(socket.create_connection(("198.51.100.7", 443), 5).makefile().readline(), end="")' 2>&1 | tail -n 1; `
	exit := begun(t, d, ws, "read; "+connect+"read; "+connect+"read; exit 7", func(b *box, say func() string) {
		if said := say(); said != "to 198.51.100.7:443 <nil>\n" {
			t.Errorf("before: %q", said)
		}
		engine, _ := d.talk()
		id, _ := b.Sidecar()
		if _, err := engine.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.out.beside.dead:
		case <-time.After(10 * time.Second):
			t.Fatal("nobody heard of it")
		}
		for end := time.Now().Add(10 * time.Second); g.closed.Load() == 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the way out was left open")
			}
		}
		if said := say(); !strings.Contains(said, "Connection refused") {
			t.Errorf("after: %q", said)
		}
	})
	if exit.Code != 7 {
		t.Errorf("the box did not go on: %+v", exit)
	}
}

// Lines that are none are skipped and counted.
func TestSaid(t *testing.T) {
	var heard []string
	s := &said{hear: func(msg string, _ []byte) { heard = append(heard, msg) }}
	for _, part := range []string{"{\"msg\":\"one\"}\n{\"ms", "g\":\"two\"}\nnonsense\n\n[1]\n", strings.Repeat("x", saidBytes+1), "x\n{\"msg\":\"three\"}\n{\"msg\":\"unfinished\""} {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	if all := s.so(); len(all.Lines) != 3 || all.Skipped != 3 || fmt.Sprint(heard) != "[one two three]" {
		t.Errorf("%s %+v", heard, all)
	}
	for range saidLines {
		s.Write([]byte("{}\n"))
	}
	if all := s.so(); len(all.Lines) != saidLines || all.Dropped == 0 {
		t.Errorf("%d %d", len(all.Lines), all.Dropped)
	}
}

// Sockets are taken from nobody but whoever knows the secret.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	l, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hand := func(secret string, n int) int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		is := port(t, fd)
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _, err := c.WriteMsgUnix([]byte(secret), unix.UnixRights(slices.Repeat([]int{fd}, n)...), nil); err != nil {
			t.Fatal(err)
		}
		return is
	}
	hand("secretx", 3)
	hand("secre", 3)
	hand("secret", 2)
	hand("secret", 4)
	want := hand("secret", 3)
	got, err := take(l, terms{Secret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if is, err := unix.Getsockname(got.TCP); err != nil || is.(*unix.SockaddrInet4).Port != want {
		t.Errorf("it took %v %v, not %d", is, err, want)
	}
}

// port binds a socket to one, and says which.
func port(t *testing.T, fd int) int {
	t.Helper()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*unix.SockaddrInet4).Port
}

// A box that reaches hosts is claimed where one really was led out, and not without an
// outlet.
func TestProbeNetwork(t *testing.T) {
	o := options(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	found := driver(t, o).probeNetwork(t.Context(), self)
	t.Logf("%v %s", time.Since(began), found.Evidence)
	if !found.Enforced {
		t.Errorf("%+v", found)
	}
	o.Outlet = nil
	if found := driver(t, o).probeNetwork(t.Context(), self); found.Enforced || found.Feature != sandbox.HostAllowlist {
		t.Errorf("%+v", found)
	}
}

// What a daemon that was killed left is removed; what is not ours stays.
func TestReconcileSidecars(t *testing.T) {
	d := driver(t, options(t))
	ours, err := d.aside("writ-test-left")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(d.opts.State, asides, "writ-test-other."+New(Options{}).proof("writ-test-other"))
	if err := os.Mkdir(other, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.opts.State, marker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, gone := os.Stat(ours)
	_, stays := os.Stat(other)
	if gone == nil || stays != nil {
		t.Errorf("ours is there: %v; another's is gone: %v", gone, stays)
	}
}

// A sidecar is ready soon: a second is what it may take on a machine that does little else.
func TestSidecarReady(t *testing.T) {
	g := &greeter{}
	d, ws := g.driver(t, nil), workspace(t)
	var took []time.Duration
	sandboxtest.With(t, networked(ws), ws, func(ctx context.Context, w writ.Writ) {
		for range 5 {
			p, err := d.plan(ctx, w, shell("true", ws), nil, false)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			out, err := p.wayOut(ctx)
			took = append(took, time.Since(began))
			if err != nil {
				t.Fatal(err)
			}
			if err := out.end(); err != nil {
				t.Error(err)
			}
		}
	})
	slices.Sort(took)
	t.Log(took)
	if took[0] > time.Second {
		t.Errorf("the fastest of five took %s", took[0])
	}
}
