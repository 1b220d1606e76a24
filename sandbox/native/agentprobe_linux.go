package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/probe"
	"golang.org/x/sys/unix"
)

// probeAgent has a box talk to an agent of ssh, and try what that could be taken for.
func (d *Driver) probeAgent(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Feature: sandbox.SSHAgent}
	if d.opts.Outlet == nil {
		f.Evidence = "not claimed: a box has no network but its own, and nobody here signs"
		return f
	}
	if err := d.tryAgent(ctx); err != nil {
		f.Evidence = "an agent of ssh cannot be had in a box: " + err.Error() + "; Linux 5.14 or later can"
		return f
	}
	f.Enforced, f.Evidence = true, "a box came to the agent by "+calls.AgentSocket+", and to no other socket with a path"
	return f
}

func (d *Driver) tryAgent(ctx context.Context) error {
	ws, confined, err := probe.Somewhere()
	defer os.RemoveAll(ws)
	if err != nil {
		return err
	}
	other := filepath.Join(ws, "other.sock")
	l, err := net.Listen("unix", other)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := os.Chmod(other, 0o777); err != nil { // only the box keeps a program from it
		return err
	}
	confined.SSH = []writ.SignIn{{Host: "nobody.invalid:22"}}
	return d.inCell(ctx, confined, ws, func(c *cell) error {
		r, err := c.ready()
		if err != nil {
			c.end()
			return err
		}
		defer r.end()
		return r.talks(inside(other))
	})
}

// echo is an agent that says what it hears.
type echo struct{}

func (echo) SSHFiles() map[string][]byte { return nil }

func (echo) Talk(ctx context.Context, c net.Conn) {
	b := make([]byte, 1)
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(time.Second))
	if n, _ := c.Read(b); n == 1 {
		c.Write(b)
	}
}

// talks has a runner talk to the agent, and then try other sockets, one of them with a
// path at which somebody listens.
func (r *runner) talks(other string) error {
	launcher, tried := make(chan reply, 8), make(chan reply, 8) // more than are said
	go func() {                                                 // until the cell is ended
		defer close(launcher)
		defer close(tried)
		for {
			said, err := r.cell.conn.next()
			switch {
			case err != nil:
				return
			case said.What == saysOK || said.What == saysNot:
				tried <- said
			default:
				launcher <- said
			}
		}
	}()
	desk := attend(echo{}, r.calls, func() (int, int, error) {
		return r.cell.newPair(func(ask func() error) error { return ask() }, func(s *script) error {
			_, err := s.expected(saysDone, <-launcher)
			return err
		})
	})
	defer desk.end()
	const whole = unix.SizeofSockaddrUnix
	for _, try := range []struct {
		what  string
		kind  int
		path  string
		named int        // bytes of the address
		want  unix.Errno // of the last step; 0: it goes through
	}{
		{"talk to the agent", unix.SOCK_STREAM, calls.AgentSocket, whole, 0},
		{"connect to another path", unix.SOCK_STREAM, other, whole, unix.EPERM},
		{"connect to another path, past the daemon", unix.SOCK_STREAM, other, 2 + len(other), unix.EISCONN},
		{"open a datagram socket", unix.SOCK_DGRAM, calls.AgentSocket, whole, unix.EPERM},
	} {
		s := &script{}
		s.doing(try.what)
		// This process has the memory of its launcher, into which nobody looks, and no
		// command's: the daemon could not read what address it means.
		s.call(unix.SYS_PRCTL, num(unix.PR_SET_DUMPABLE), num(1), num(0), num(0), num(0))
		fd := s.call(unix.SYS_SOCKET, num(unix.AF_UNIX), num(try.kind|unix.SOCK_CLOEXEC), num(0))
		address := append(endian.AppendUint16(nil, unix.AF_UNIX), try.path...)
		s.call(unix.SYS_CONNECT, fd, s.bytes(append(address, make([]byte, whole-len(address))...)), num(try.named))
		if try.want == 0 {
			one := s.bytes([]byte{'x'})
			s.call(unix.SYS_WRITE, fd, one, num(1))
			s.call(unix.SYS_RECVFROM, fd, one, num(1), num(0), num(0), num(0))
		}
		s.call(unix.SYS_CLOSE, fd)
		if err := r.conn.send(s, inPlace, 0, "", ""); err != nil {
			return err
		}
		_, err := s.expected(saysOK, <-tried)
		var failed *failure
		if errors.As(err, &failed) && failed.Errno == try.want || err == nil && try.want == 0 {
			continue
		}
		if err == nil {
			err = fmt.Errorf("%s: it went through", try.what)
		}
		return err
	}
	return nil
}
