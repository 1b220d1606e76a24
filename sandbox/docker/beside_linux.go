package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// besideDir is where a sidecar finds the socket of the daemon, which no box is shown.
const besideDir = "/.writ-out"

// terms are what a sidecar is told, on its input: a line that nobody else reads.
type terms struct {
	Secret string // says to the daemon who it is that comes
	Six    bool
	divert.Bounds
}

// beside is the one process of a sidecar. It leads the network of its namespace to sockets,
// hands those to the daemon, which decides and connects, gives up all that it may, and
// waits: the namespace is there as long as it is. At its end it says what went through that.
func beside() {
	runtime.GOMAXPROCS(1)
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	began, log, in := time.Now(), slog.New(slog.NewJSONHandler(os.Stdout, nil)), bufio.NewReader(os.Stdin)
	var p pulse
	p.watch(leave)
	line, err := in.ReadBytes('\n')
	var t terms
	if err == nil {
		err = json.Unmarshal(line, &t)
	}
	if err == nil {
		err = t.lead()
	}
	var c counters
	if err == nil {
		c, err = openCounters()
	}
	if err == nil {
		err = giveUp()
	}
	if err != nil {
		log.Error(saysFailed, "err", err.Error())
		unix.Exit(1)
	}
	log.Info(saysReady, "ipv6", t.Six, "names", !t.NoNames, "loopback", !t.NoLoopback, "took_micros", time.Since(began).Microseconds())
	p.attend(in)
	log.Info(saysLast, append(c.last(), "lasted_ms", time.Since(began).Milliseconds())...)
	unix.Exit(0)
}

// What a sidecar says that the daemon goes by.
const (
	saysReady  = "ready"
	saysFailed = "the network could not be led out"
	saysLast   = "over"
)

// lead leads the network of this namespace to sockets, and hands those over.
func (t terms) lead() error {
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd) // they are the daemon's alone: when it closes them, nobody listens
		}
	}()
	for _, k := range divert.Kinds(t.Six) {
		fd, err := unix.Socket(k[0], k[1]|unix.SOCK_CLOEXEC, k[2])
		if err != nil {
			return fmt.Errorf("open sockets: %w", err)
		}
		fds = append(fds, fd)
	}
	s := divert.Of(fds)
	if err := s.Set(t.Bounds); err != nil {
		return err
	}
	to, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: besideDir + "/" + socketName})
	if err != nil {
		return err
	}
	defer to.Close()
	_, _, err = to.WriteMsgUnix([]byte(t.Secret), unix.UnixRights(s.All()...), nil)
	return err
}

// giveUp leaves nothing to whoever would get hold of this process.
func giveUp() error {
	err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(reach.Nobody), syscall.Setuid(reach.Nobody)) // of all threads, whose capabilities go with it
	if err != nil {
		return err
	}
	return restrict.Calls(calls.Kind{Listed: true})
}
