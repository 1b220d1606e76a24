package native_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// greeter is a way out, and an agent that greets whoever talks to it.
type greeter struct{ io.Closer }

func (greeter) SSHFiles() map[string][]byte {
	return map[string][]byte{"ssh_config": []byte("# told\n")}
}

func (greeter) Talk(_ context.Context, c net.Conn) {
	b := make([]byte, 64)
	for {
		n, err := c.Read(b)
		if err != nil || string(b[:n]) == "leave" {
			return
		}
		c.Write([]byte("agent heard " + string(b[:n])))
	}
}

// sockets tries what a program can with sockets that have a path.
const sockets = `
import socket, os, sys, threading, errno, ctypes, struct, array, fcntl
def tried(what, f):
    try: print(what + ':', f())
    except OSError as e: print(what + ':', errno.errorcode[e.errno])
def talk(s, to):
    s.connect(to); s.sendall(b'me'); return s.recv(64).decode()
U, S = socket.AF_UNIX, socket.SOCK_STREAM
agent = os.environ.get('SSH_AUTH_SOCK', 'none')
host = sys.argv[1]
tried('agent', lambda: talk(socket.socket(U, S), agent))
tried('again', lambda: talk(socket.socket(U, S), agent))
def raw(s, to, n): # connect, with an address said to be so long
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(s.fileno(), struct.pack('H', U) + to.encode() + bytes(128), n): raise OSError(ctypes.get_errno(), '')
    s.sendall(b'me'); return s.recv(64).decode()
tried('whole', lambda: raw(socket.socket(U, S), agent, 110))
tried('planted', lambda: talk(socket.socket(U, S), host))
def high(): # a length of which the kernel takes the lower half
    s = socket.socket(U, S); libc = ctypes.CDLL(None, use_errno=True)
    to = ctypes.create_string_buffer(struct.pack('H', U) + agent.encode() + bytes(128))
    if libc.syscall(ctypes.c_long({'x86_64': 42, 'aarch64': 203}[os.uname().machine]), ctypes.c_long(s.fileno()), to, ctypes.c_ulong(0x7fffffff0000006e)): raise OSError(ctypes.get_errno(), '')
    s.sendall(b'me'); return s.recv(64).decode()
tried('high', high)
def descriptors(): # sent to the agent, who has no use for them
    s = socket.socket(U, S); socket.send_fds(s, [b'me'], [0, 1, 2]); return s.recv(64).decode()
tried('descriptors', descriptors)
def lingers(): socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
tried('lingers', lingers)
tried('planted, whole', lambda: raw(socket.socket(U, S), host, 110))
tried('planted, longer', lambda: raw(socket.socket(U, S), host, 109))
def left(): # by the agent, which is what another could take the place of
    s = socket.socket(U, S); s.sendall(b'leave'); assert s.recv(1) == b''; return raw(s, host, 109)
tried('left', left)
def squats():
    socket.socket(U, S).bind('\0' + sys.argv[2]); return 'its own'
tried('abstract name', squats)
def interfaces():
    s = socket.socket(U, S); b = array.array('B', bytes(4096)); at, _ = b.buffer_info()
    n = struct.unpack('iL', fcntl.ioctl(s.fileno(), 0x8912, struct.pack('iL', 4096, at)))[0] # SIOCGIFCONF
    return sorted({bytes(b[i:i+16]).split(b'\0')[0].decode() for i in range(0, n, 40)})
tried('interfaces', interfaces)
tried('abstract', lambda: talk(socket.socket(U, S), '\0' + sys.argv[2]))
for n in range(1, 108): # an address of every length
    path = '/' + 'x' * (n - 1)
    try: socket.socket(U, S).connect(path); print('length', n, 'connected')
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.ENOENT, errno.EACCES, errno.ECONNREFUSED): print('length', n, e)
def through(): # what the daemon was told of, and then another address on the same line
    s = socket.socket(U, S); s.connect(agent); return talk(s, host)
tried('through', through)
def padded(): # the agent's path, and more behind it
    s = socket.socket(U, S); s.connect(agent + 'x'); return 'connected'
tried('longer', padded)
tried('datagram', lambda: talk(socket.socket(U, socket.SOCK_DGRAM), agent))
tried('seqpacket', lambda: talk(socket.socket(U, socket.SOCK_SEQPACKET), agent))
tried('raw', lambda: talk(socket.socket(U, socket.SOCK_RAW), agent))
def listens():
    s = socket.socket(U, S); s.bind('\0mine'); s.listen(); return 'listens'
tried('listen', listens)
def sends(): return socket.socket(U, S).sendto(b'x', host)
tried('sendto', sends)
l = socket.create_server(('127.0.0.1', 0))
tried('tcp', lambda: socket.create_connection(l.getsockname()).fileno() > 0)
if agent != 'none': print('socket:', os.path.exists(agent), open('/etc/ssh/ssh_config').read().strip())
def many():
    got = []
    ts = [threading.Thread(target=lambda: got.append(talk(socket.socket(U, S), agent))) for _ in range(8)]
    [t.start() for t in ts]; [t.join() for t in ts]; return len(got)
tried('threads', many)
def child():
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, talk(socket.socket(U, S), agent).encode()); os._exit(0)
    return os.read(r, 64).decode()
if agent != 'none': tried('child', child)
def hoard():
    held = []
    try:
        for _ in range(64): held.append(socket.socket(U, S))
    except OSError as e: return str(len(held)) + ' ' + errno.errorcode[e.errno]
tried('hoard', hoard)
`

// TestAgent: in a box with an agent of ssh a program comes to the agent by a socket, and
// to nothing else by one with a path; in any other box there is none.
func TestAgent(t *testing.T) {
	need.Programs(t, "python3")
	d := native.New(native.Options{Outlet: func(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
		return greeter{egress.New(egress.Options{}).Open(egress.Run{}).Serve(m)}, nil
	}})
	t.Cleanup(func() { d.Close() })
	needLauncher(t, d)
	ws, abstract := workspace(t), "writ-test-"+filepath.Base(t.TempDir())
	host := filepath.Join(ws, "planted.sock")
	for _, at := range []string{host, "\x00" + abstract} {
		l, err := net.Listen("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if err := os.Chmod(host, 0o777); err != nil { // only the box keeps a program from it
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("HOST"))
				c.Close()
			}
		}()
	}
	confined := writ.Confinement{
		Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized,
		Network: writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"nobody.invalid:22"}},
	}
	with := confined
	with.SSH = []writ.SignIn{{Host: "nobody.invalid:22", User: "nobody"}}
	spec := sandbox.Spec{Argv: []string{"python3", "-c", sockets, host, abstract}, Dir: ws}
	greeted := "agent heard me"
	for _, tt := range []struct {
		name    string
		confine writ.Confinement
		want    []string
	}{
		{"with one", with, []string{
			"agent: " + greeted, "again: " + greeted, "whole: " + greeted, "planted: EISCONN", "high: " + greeted, "descriptors: " + greeted, "lingers: EPERM", "planted, whole: EPERM", "planted, longer: EISCONN", "left: EISCONN",
			"abstract name: its own", "interfaces: ['lo']", "abstract: ECONNREFUSED", "through: EISCONN", "longer: ENOENT",
			"datagram: EPERM", "seqpacket: EPERM", "raw: EPERM", "listen: EINVAL", "sendto: EISCONN", "tcp: True", "socket: True # told",
			"threads: 8", "child: " + greeted, "hoard: 16 ENOBUFS",
		}},
		{"without", confined, []string{
			"agent: EPERM", "again: EPERM", "whole: EPERM", "planted: EPERM", "high: EPERM", "descriptors: EPERM", "lingers: None", "planted, whole: EPERM", "planted, longer: EPERM", "left: EPERM",
			"abstract name: EPERM", "interfaces: EPERM", "abstract: EPERM", "through: EPERM", "longer: EPERM",
			"datagram: EPERM", "seqpacket: EPERM", "raw: EPERM", "listen: EPERM", "sendto: EPERM", "tcp: True", "hoard: 0 EPERM",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := sandboxtest.Command(t, d, tt.confine, spec)
			if o.Error != nil || o.Exit.Code != 0 {
				t.Fatalf("%+v", o)
			}
			got := strings.Split(strings.TrimSpace(o.Out), "\n")
			if tt.name == "without" { // threads that fail say so elsewhere
				for i, line := range got {
					if strings.HasPrefix(line, "threads: ") {
						got = append(got[:i], got[i+1:]...)
						break
					}
				}
			}
			for i := range max(len(got), len(tt.want)) {
				if i >= len(got) || i >= len(tt.want) || got[i] != tt.want[i] {
					t.Errorf("line %d\ngot:\n%s\nwant:\n%s", i, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
					break
				}
			}
		})
	}
}
