package prove

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// pair is what a box may have of sockets: two ends of its own.
const pair = `py "import socket; a,b=socket.socketpair(); a.send(b'x'); assert b.recv(1)==b'x'"`

// lost is how a box with a network of its own fails to reach the host's: nobody listens
// there, or nothing leads there. Where no socket can be made it is eperm.
var lost = []string{eperm, erefuse, eunnet, "timed out", "Cannot assign requested address", eacces, enosup}

// networkProbes are tried on boxes that reach nothing (group E).
func networkProbes() []Probe {
	return group("network", sandbox.NoNetwork, slices.Concat(listenerProbes(), sendProbes(), socketProbes()), arranged(sockets))
}

// hostProbes are tried on boxes that reach a host, which is none of those that are tried:
// a way out is a way to that, and to nothing else.
func hostProbes() []Probe {
	all := slices.Concat(besideProbes(), listenerProbes(), socketProbes())
	return group("hosts", sandbox.HostAllowlist, all, arranged(sockets), confined(func(_ *world, c *writ.Confinement) {
		c.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"nobody.invalid:443"}}
		c.Isolation = writ.Containerized
	}))
}

// own shows that a box has a network of its own, which works.
const own = `py "
import socket,threading
l=socket.create_server(('127.0.0.1',0)); threading.Thread(target=lambda: l.accept()[0].sendall(b'x')).start()
assert socket.create_connection(l.getsockname()).recv(1)==b'x'"`

// besideProbes go for another address of this machine, to which only the way out leads.
func besideProbes() []Probe {
	const reset = "Connection reset by peer"
	to := func(name, code string) Probe {
		return row(name, own, `[ $ADDRESS != none ] || no "$ADDRESS: no address"; py "import socket; socket.setdefaulttimeout(3); `+code+`"`, append(lost, reset, "no address")...)
	}
	return []Probe{
		to("an address that was no answer", "assert socket.create_connection(('$ADDRESS',$GREETS)).recv(1)==b'x'"),
		to("the same, mapped", "s=socket.socket(socket.AF_INET6); s.connect(('::ffff:$ADDRESS',$GREETS)); assert s.recv(1)==b'x'"),
		to("the same, from a port of its own", "s=socket.socket(); s.bind(('0.0.0.0',0)); s.connect(('$ADDRESS',$GREETS)); assert s.recv(1)==b'x'"),
		to("datagrams to it", "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.sendto(b'x',('$ADDRESS',$ANSWERS)); s.recv(1)"),
	}
}

// listenerProbes try to reach listeners that really listen.
func listenerProbes() []Probe {
	sock := func(args, then string, refusal ...string) Probe {
		return row(args, pair, `py "import socket; s=socket.socket(`+args+`); `+then+`"`, refusal...)
	}
	path := func(name, where string) Probe {
		return row(name, pair, `py "import socket; s=socket.socket(socket.AF_UNIX); s.connect(os.path.expandvars('`+where+`')); print(s.recv(99))"`, eperm, enosup)
	}
	absent := func(name, file, what string) Probe {
		return row(name, pair, `text=$(cat `+file+`); case "$text" in *"`+what+`"*) exit 0;; esac; no absent`, append(away, "absent", einval)...)
	}
	all := []Probe{
		row("bash /dev/tcp", pair, `exec 3<>/dev/tcp/127.0.0.1/$PORT`, lost...),
		row("bash /dev/udp", pair, `exec 3<>/dev/udp/127.0.0.1/$UDP; echo x >&3; read -t 0.3 -N 1 -u 3 || no timed out`, lost...),
		sock("socket.AF_INET", "s.settimeout(1); s.connect(('127.0.0.1',$PORT))", lost...),
		sock("socket.AF_INET,socket.SOCK_DGRAM", "s.settimeout(0.3); s.sendto(b'x',('127.0.0.1',$UDP)); s.recv(1)", lost...),
		sock("socket.AF_INET6", "s.settimeout(1); s.connect(('::1',$PORT6))", lost...),
		sock("socket.AF_INET6,socket.SOCK_DGRAM", "s.sendto(b'x',('2001:db8::1',53))", lost...),
		row("mapped address", pair, `py "import socket; s=socket.socket(socket.AF_INET6); s.settimeout(1); s.connect(('::ffff:127.0.0.1',$PORT))"`, lost...),
		row("any address", pair, `py "import socket; s=socket.socket(); s.settimeout(1); s.connect(('0.0.0.0',$PORT))"`, lost...),
		sock("socket.AF_UNIX", "s.connect(chr(0)+'$ABSTRACT')", append(lost, enoent)...),
		sock("socket.AF_UNIX,socket.SOCK_DGRAM", "pass", eperm, enosup),
		sock("socket.AF_UNIX,socket.SOCK_SEQPACKET", "pass", eperm, enosup),
		row("pair of datagrams", pair, `py "import socket; socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)"`, eperm, enosup),
		row("pair of another family", pair, `py "import socket; socket.socketpair(socket.AF_INET)"`, eperm),
		path("pathname socket in a readable root", "$RO/sock"),
		path("pathname socket in the workspace", "$WS/sock"),
		path("pathname socket outside", "$OUT/sock"),
		path("docker", "/var/run/docker.sock"),
		path("the system bus", "/run/dbus/system_bus_socket"),
		path("a display", "/tmp/.X11-unix/X0"),
		path("the service manager", "/run/systemd/private"),
		row("a descriptor from a socket of the host", `py "
import socket,array
a,b=socket.socketpair(); socket.send_fds(a,[b'x'],[0]); assert len(socket.recv_fds(b,1,1)[1])==1"`,
			`py "
import socket
s=socket.socket(socket.AF_UNIX); s.connect(os.environ['RO']+'/sock'); print(socket.recv_fds(s,99,9))"`, eperm, enosup),
		row("fifo outside", `mkfifo p; (echo x >p &); cat p`, `echo x >$RO/fifo`, erofs, eacces).onGVisor(gvisor{refusal: []string{eperm}}), // it opens nobody's but its own
		absent("interfaces in proc", "/proc/net/dev", "$IFACE"),
		absent("abstract sockets in proc", "/proc/net/unix", "$ABSTRACT"),
		row("listeners in proc", pair, `grep -i ":$(printf %04X $PORT) " /proc/net/tcp || no absent`, append(away, "absent")...),
		row("interfaces in sys", pair, `ls /sys/class/net/$IFACE`, away...),
		row("interfaces by number", pair, `py "import socket; print([n for i,n in socket.if_nameindex() if n=='$IFACE'][0])"`, eperm, "list index out of range"),
	}
	return all
}

// sendProbes only send, which nothing leads away from a box that reaches nothing. Of one
// that reaches hosts it would say nothing: there, somebody has to answer.
func sendProbes() []Probe {
	return []Probe{
		row("socket.AF_INET,socket.SOCK_DGRAM,17", pair, `py "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM,17); s.sendto(b'x',('192.0.2.1',53))"`, lost...),
		row("broadcast", pair, `py "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.setsockopt(1,6,1); s.sendto(b'x',('255.255.255.255',9))"`, lost...),
		row("multicast", pair, `py "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.sendto(b'x',('224.0.0.251',5353))"`, lost...),
		row("metadata of a cloud", pair, `py "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('169.254.169.254',80))"`, lost...),
	}
}

// sockets listen in each place that a box could know a path in.
func sockets(w *world) error {
	return errors.Join(w.listening(filepath.Join(w.ro, "sock")), w.listening(filepath.Join(w.ws, "sock")), w.listening(filepath.Join(w.out, "sock")),
		w.fifo(filepath.Join(w.ro, "fifo")))
}

// script is one that nobody listed, in a readable root.
func script(w *world) error {
	path := filepath.Join(w.ro, "script")
	return errors.Join(os.WriteFile(path, []byte("#!/usr/bin/id\n"), 0o755), os.Chmod(path, 0o755))
}

// socketProbes make a socket of every other family, and of every other protocol of the
// families that a box with a network of its own may have.
func socketProbes() []Probe {
	var all []Probe
	add := func(name, args string) {
		// A filter answers before the kernel looks at what it has: EPERM, or ENOTSUP where
		// firejail's list of protocols answers. "Address family not supported" would be the
		// kernel's own answer, and prove nothing about a kernel that has more.
		all = append(all, row(name, pair, `py "import socket; socket.socket(`+args+`)"`, eperm, enosup))
	}
	for _, f := range []struct {
		name string
		nr   string
	}{
		{"ax25", "3"}, {"ipx", "4"}, {"appletalk", "5"}, {"netrom", "6"}, {"x25", "9"}, {"rose", "11"}, {"key", "15"}, {"rds", "21"}, {"pppox", "24"},
		{"llc", "26"}, {"infiniband", "27"}, {"mpls", "28"}, {"can", "29"}, {"tipc", "30"}, {"iucv", "32"}, {"rxrpc", "33"}, {"isdn", "34"}, {"phonet", "35"},
		{"ieee802154", "36"}, {"caif", "37"}, {"nfc", "39"}, {"kcm", "41"}, {"qipcrtr", "42"}, {"smc", "43"}, {"xdp", "44"}, {"mctp", "45"}, {"unknown", "46"},
	} {
		add("family "+f.name, f.nr+",socket.SOCK_DGRAM")
	}
	for _, args := range []string{"socket.AF_VSOCK", "38,socket.SOCK_SEQPACKET", "31,socket.SOCK_RAW,1", "socket.AF_PACKET,socket.SOCK_RAW", "socket.AF_PACKET,socket.SOCK_DGRAM",
		"socket.AF_INET,socket.SOCK_RAW,1", "socket.AF_INET,socket.SOCK_DGRAM,1", "socket.AF_INET,socket.SOCK_RAW,6", "socket.AF_INET,socket.SOCK_RAW,255",
		"socket.AF_INET6,socket.SOCK_RAW,58", "socket.AF_INET6,socket.SOCK_DGRAM,58"} {
		add(args, args)
	}
	for _, p := range [][2]string{{"sctp", "socket.SOCK_SEQPACKET,132"}, {"sctp stream", "socket.SOCK_STREAM,132"}, {"dccp", "6,33"}, {"udplite", "socket.SOCK_DGRAM,136"},
		{"mptcp", "socket.SOCK_STREAM,262"}, {"l2tp", "socket.SOCK_DGRAM,115"}, {"rdm", "4"}} {
		add("inet "+p[0], "socket.AF_INET,"+p[1])
	}
	for _, p := range [][2]string{{"usersock", "2"}, {"firewall", "3"}, {"diag", "4"}, {"nflog", "5"}, {"xfrm", "6"}, {"selinux", "7"}, {"iscsi", "8"}, {"audit", "9"}, {"fib", "10"},
		{"connector", "11"}, {"netfilter", "12"}, {"events of the kernel", "15"}, {"generic", "16"}, {"scsi", "18"}, {"ecryptfs", "19"}, {"rdma", "20"}, {"crypto", "21"}, {"smc", "22"}} {
		add("netlink "+p[0], "socket.AF_NETLINK,socket.SOCK_RAW,"+p[1])
	}
	return all
}
