package docker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/mount"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"golang.org/x/sys/unix"
)

const (
	sidecarMemory = 64 << 20
	sidecarWithin = 20 * time.Second // it is ready, on a machine that does a lot else
)

// A sidecar is a container that has a network namespace, for a box to share.
type sidecar struct {
	*running
	said   *said
	ready  chan struct{} // closed when it says so
	failed chan string   // why it never will be
	over   chan struct{} // closed when it has said its last line
}

// sidecar makes one. It is what boxes are, of the same image: nothing of that is executed,
// but this program alone, and what the image says of the environment does not hold.
func (p *plan) sidecar(ctx context.Context, name string, labels map[string]string, dir string) (*sidecar, error) {
	d := p.driver
	s := &sidecar{ready: make(chan struct{}), failed: make(chan string, 1), over: make(chan struct{})}
	var once, last sync.Once
	s.said = &said{hear: func(msg string, line []byte) {
		switch msg {
		case saysReady:
			once.Do(func() { close(s.ready) })
		case saysLast:
			last.Do(func() { close(s.over) })
		case saysFailed:
			select {
			case s.failed <- string(line):
			default:
			}
		}
	}}
	labels[labelPart] = "sidecar"
	config, host := *p.config, *p.host
	config.Labels, config.User, config.Entrypoint = labels, "0:0", []string{inBox, probe.Verb, partSidecar}
	config.AttachStdout, config.AttachStderr = true, true
	pids := d.opts.Sidecar.Pids
	host.CapAdd = []string{"NET_ADMIN", "SETUID", "SETGID"} // the rules of its namespace; becoming nobody
	if host.Runtime == runsc {                              // whose kernel has no rules for a network; nothing of a call runs in here
		host.Runtime = ""
	}
	host.Sysctls = sysctls(p.six())
	host.Memory, host.MemorySwap, host.PidsLimit = sidecarMemory, sidecarMemory, &pids
	host.ShmSize = d.opts.Sidecar.Tmpfs
	host.Tmpfs = map[string]string{}
	for at, how := range p.host.Tmpfs { // also where the image would have something written
		host.Tmpfs[at] = tmpfs(d.opts.Sidecar.Tmpfs, "rw,noexec")
		if !strings.HasSuffix(how, inodes) {
			host.Tmpfs[at] = strings.TrimSuffix(host.Tmpfs[at], inodes)
		}
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	host.Mounts = []mount.Mount{bound(program, inBox, true), bound(dir, besideDir, true)}
	s.running, err = d.run(ctx, name, &config, &host, func(from io.Reader) { stdcopy.StdCopy(s.said, s.said, from) })
	return s, err
}

// sysctls has ports below 1024 be anybody's: they are the way out's, and the capability for
// that is not among a sidecar's.
func sysctls(six bool) map[string]string {
	out := map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	if six {
		out["net.ipv6.conf.all.disable_ipv6"], out["net.ipv6.conf.default.disable_ipv6"], out["net.ipv6.conf.lo.disable_ipv6"] = "0", "0", "0"
	}
	return out
}

// mouth tells the sidecar what to do, takes its sockets, and waits until it has given up
// what it needed to make them.
func (s *sidecar) mouth(ctx context.Context, l *net.UnixListener, t terms) (m sandbox.Mouth, err error) {
	defer l.Close()
	t.Secret = rand.Text()
	line, err := json.Marshal(t)
	if err != nil {
		return m, err
	}
	if _, err := s.held.Conn.Write(append(line, '\n')); err != nil {
		return m, err
	}
	go s.beat()
	ctx, cancel := context.WithTimeout(ctx, sidecarWithin)
	defer cancel()
	go func() {
		select {
		case <-s.dead:
		case <-ctx.Done():
		}
		l.Close()
	}()
	got, err := take(l, t)
	if err != nil {
		return m, s.why(ctx, err)
	}
	select {
	case <-s.ready:
		return got.Mouth()
	case <-s.dead:
	case <-ctx.Done():
	}
	got.Close()
	return m, s.why(ctx, errors.New("it handed its sockets over and said nothing more"))
}

// why is the best that can be said of a sidecar that did not do its work.
func (s *sidecar) why(ctx context.Context, err error) error {
	select {
	case line := <-s.failed:
		err = errors.New(line)
	case <-time.After(100 * time.Millisecond):
	}
	if stopped := context.Cause(ctx); errors.Is(stopped, context.Canceled) {
		return writ.Fail(writ.Stopped, "stopped before the command started", stopped)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it was not ready within %v: %w", sidecarWithin, err)
	}
	var lines []string
	for _, l := range s.said.so().Lines {
		lines = append(lines, string(l))
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the sidecar of the box cannot lead its network out: "+err.Error()+
		"; a kernel with nftables (CONFIG_NF_TABLES, CONFIG_NFT_REDIR, CONFIG_NF_CONNTRACK) can", fmt.Errorf("%w; it said %q", err, lines))
}

// take takes the sockets that somebody hands over who knows the secret.
func take(l *net.UnixListener, t terms) (divert.Listening, error) {
	want := len(divert.Kinds(t.Six)) - 2
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return divert.Listening{}, err
		}
		b, control := make([]byte, len(t.Secret)+1), make([]byte, unix.CmsgSpace(4*want))
		c.SetReadDeadline(time.Now().Add(time.Second))
		n, cn, flags, _, err := c.ReadMsgUnix(b, control)
		c.Close()
		if err != nil {
			continue
		}
		fds, err := divert.Rights(control[:cn], flags, want)
		if err != nil {
			continue
		}
		got := divert.Of(append([]int{-1, -1}, fds...)).Listening
		if subtle.ConstantTimeCompare(b[:n], []byte(t.Secret)) == 1 {
			return got, nil
		}
		got.Close()
	}
}
