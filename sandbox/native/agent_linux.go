package native

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

// A box opens no socket with a path: one in its workspace could be the host's, and its
// address is in memory, where no filter can look. Where a writ has an agent of ssh, the
// filter leaves two calls to the daemon, which never hands either on to the kernel:
//
//   - socket, for a stream with a path, is answered with one end of a pair, whose other end
//     the agent serves. The launcher makes it, in the box's own network namespace: it is a
//     pair as the box can make them for itself, but for who is at the other end. It is
//     connected for good, so that connect and sendto lead it to nobody else: where somebody
//     listens the kernel says EISCONN. One that the daemon made would be of the host's
//     network namespace, whose names it could take and whose interfaces it could read.
//   - connect, with an address as long as one of the agent can be, is answered with success
//     where the address is the agent's, else with a refusal. Nothing happens to the
//     descriptor: it leads to the agent already, or it is another one, which then leads
//     where it did. So it does not matter which one it is, nor whether another thread
//     changes the address or the descriptor meanwhile.
//
// Every other connect, those to networks among them, is for the kernel, as in any box.

// sshDir is where programs of ssh look for what holds on the whole machine.
const sshDir = "/etc/ssh"

// mostLines is how many programs may talk to the agent at a time.
const mostLines = 16

// desk answers the calls of one box that its filter leaves to the daemon.
type desk struct {
	agent  sandbox.Agent
	make   func() (ours, theirs int, err error) // a pair
	calls  *calls.Listener
	ctx    context.Context
	cancel context.CancelFunc
	busy   sync.WaitGroup
	lines  chan struct{} // holds one for each
}

// attend begins to answer them.
func attend(agent sandbox.Agent, from *calls.Listener, pair func() (ours, theirs int, err error)) *desk {
	d := &desk{agent: agent, calls: from, make: pair, lines: make(chan struct{}, mostLines)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.busy.Go(func() {
		for {
			c, err := from.Next()
			if err != nil {
				return
			}
			d.answer(c) // its only error is that nobody waits any more
		}
	})
	return d
}

// end ends all of it, and returns when it has ended. There may be none.
func (d *desk) end() {
	if d == nil {
		return
	}
	d.calls.Close()
	d.cancel()
	d.busy.Wait()
}

func (d *desk) answer(c *calls.Call) error {
	if c.Nr == unix.SYS_SOCKET {
		return d.line(c)
	}
	// Of the length the kernel takes the lower half, and so did the filter.
	if address, err := c.Memory(c.Args[1], uint32(c.Args[2])); err != nil || !isAgent(address) {
		return c.Return(unix.EPERM)
	}
	return c.Return(0)
}

// isAgent reports whether an address is the agent's.
func isAgent(address []byte) bool {
	if endian.Uint16(address) != unix.AF_UNIX {
		return false
	}
	path, _, _ := bytes.Cut(address[2:], []byte{0})
	return string(path) == calls.AgentSocket
}

// line gives the caller a connection to the agent.
func (d *desk) line(c *calls.Call) error {
	select {
	case d.lines <- struct{}{}:
	default:
		return c.Return(unix.ENOBUFS)
	}
	ours, err := d.lend(c)
	if err != nil {
		<-d.lines
		return c.Return(unix.ENOBUFS)
	}
	d.busy.Go(func() {
		defer func() { <-d.lines }()
		defer ours.Close()
		d.agent.Talk(d.ctx, ours)
	})
	return nil
}

// lend ends the call with one end of a pair. The other is ours.
func (d *desk) lend(c *calls.Call) (net.Conn, error) {
	ours, theirs, err := d.make()
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs)
	file := os.NewFile(uintptr(ours), "agent")
	defer file.Close() // the connection has its own
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	if err = unix.SetNonblock(theirs, c.Args[1]&unix.SOCK_NONBLOCK != 0); err == nil {
		err = c.Give(theirs, c.Args[1]&unix.SOCK_CLOEXEC != 0)
	}
	if err != nil {
		conn.Close()
	}
	return conn, err
}

// signIn shows the programs of a box what they need to sign in by ssh: which keys servers
// have, whom to be there, and where the agent is.
func (p *plan) signIn(r *runner, out io.Closer) error {
	if !p.Agent {
		return nil
	}
	agent, ok := out.(sandbox.Agent)
	if !ok {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native does not enforce ssh_agent (nobody here signs)", nil)
	}
	if !isDir(sshDir) {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this machine has no "+sshDir+", so nothing to sign in with; install a client of ssh (Debian: apt-get install openssh-client)", nil)
	}
	const name = "SSH_AUTH_SOCK="
	p.Env = append(slices.DeleteFunc(slices.Clone(p.Env), func(kv string) bool { return strings.HasPrefix(kv, name) }), name+calls.AgentSocket)
	s := &script{}
	s.doing("show " + sshDir)
	s.tmpfs(sshDir, unix.MS_NOEXEC, "mode=755,size=4m,nr_inodes=16")
	for file, text := range agent.SSHFiles() {
		s.file(sshDir+"/"+file, text)
	}
	// Nobody listens there: it is for programs that look whether there is a socket.
	s.call(unix.SYS_MKNODAT, here, s.text(calls.AgentSocket), num(uint32(unix.S_IFSOCK|0o666)), num(0))
	s.seal(sshDir)
	ready, err := s.message(inPlace, 0)
	if err != nil {
		return err
	}
	r.cell.conn.tell('m') // while it waits for the runner
	return r.cell.mount(&mounting{message: ready})
}
