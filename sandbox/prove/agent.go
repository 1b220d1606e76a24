package prove

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// agentProbes are tried on boxes that have an agent of ssh: a socket that leads to it leads
// to nobody else, and is nothing else.
func agentProbes() []Probe {
	const taken = "already connected"
	connect := func(name, to string) Probe {
		return row(name, pair, `py "import socket; s=socket.socket(socket.AF_UNIX); s.connect(`+to+`); print(s.recv(99))"`, taken, eperm, enoent, eacces, erefuse)
	}
	// whole says that an address is as long as it can be, as programs in C do.
	whole := func(name, to string) Probe {
		return row(name, pair, `py "
import socket,ctypes,struct
s=socket.socket(socket.AF_UNIX); c=ctypes.CDLL(None,use_errno=True)
if c.connect(s.fileno(),struct.pack('H',1)+os.path.expandvars('`+to+`').encode()+bytes(128),110): raise OSError(ctypes.get_errno(),os.strerror(ctypes.get_errno()))
print(s.recv(99))"`, eperm)
	}
	socket := func(name, args, then string, refusal ...string) Probe {
		return row(name, pair, `py "import socket; s=socket.socket(`+args+`); `+then+`"`, refusal...)
	}
	all := []Probe{
		connect("pathname socket in a readable root", "os.path.expandvars('$RO/sock')"),
		connect("pathname socket in the workspace", "os.path.expandvars('$WS/sock')"),
		connect("pathname socket outside", "os.path.expandvars('$OUT/sock')"),
		connect("abstract socket", "chr(0)+'$ABSTRACT'"),
		whole("pathname socket in a readable root, whole", "$RO/sock"),
		whole("pathname socket in the workspace, whole", "$WS/sock"),
		socket("datagrams", "socket.AF_UNIX,socket.SOCK_DGRAM", "pass", eperm),
		socket("packets", "socket.AF_UNIX,socket.SOCK_SEQPACKET", "pass", eperm),
		socket("listening", "socket.AF_UNIX", "s.bind(chr(0)+'writ-prove'); s.listen()", einval),
		row("interfaces of the host", pair, `py "
import socket,fcntl,array,struct
s=socket.socket(socket.AF_UNIX); b=array.array('B',bytes(8192)); at,_=b.buffer_info()
n=struct.unpack('iL',fcntl.ioctl(s.fileno(),0x8912,struct.pack('iL',8192,at)))[0]
print([i for i in range(0,n,40) if bytes(b[i:i+16]).split(bytes(1))[0]==b'$IFACE'][0])"`, "list index out of range"),
	}
	return group("agent", sandbox.SSHAgent, all, arranged(sockets), confined(func(_ *world, c *writ.Confinement) {
		c.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"nobody.invalid:22"}}
		c.SSH = []writ.SignIn{{Host: "nobody.invalid:22", User: "nobody"}}
		c.Isolation = writ.Containerized
	}))
}
