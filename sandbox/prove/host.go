package prove

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A host is what the suite makes outside of all boxes, to be attacked by many probes:
// $PORT and $PORT6 listen, $UDP answers datagrams, @$ABSTRACT listens, $SHM and $QUEUE are
// open to everybody, $ADDRESS is another address of this machine than its loopback, where
// $GREETS says a byte to whoever comes and $ANSWERS answers datagrams, $LEAK is a descriptor that programs inherit, $HOSTFILE a file that
// everybody can read, $IFACE a network interface. Variables of what this machine does
// not have are 0 or none.
type host struct {
	vars map[string]string
	last []func()
}

// Names of variables in the environment of this process, which no box may see.
var ours = []string{"WRIT_PROVE_TOKEN", "WRIT_PROVE_OTHER"}

// newHost makes one. dir is where its files go.
func newHost(dir string) (h *host, err error) {
	name := filepath.Base(dir)
	h = &host{vars: map[string]string{"ABSTRACT": name, "PORT6": "0", "SHM": "-1", "QUEUE": "none", "LEAK": "-1", "IFACE": "none", "HOSTFILE": "none", "HOSTFILEID": "none", "ADDRESS": "none", "PTY": "none", "PTYDEVS": ""}}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.later(tcp)
	h.vars["PORT"] = strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	if tcp6, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		h.later(tcp6)
		h.vars["PORT6"] = strconv.Itoa(tcp6.Addr().(*net.TCPAddr).Port)
	}
	if abstract, err := net.Listen("unix", "@"+name); err == nil {
		h.later(abstract)
	}
	if err := h.echo("127.0.0.1", "UDP"); err != nil {
		return nil, err
	}
	if err := h.beside(); err != nil {
		return nil, err
	}
	if file := first("/etc/fstab", "/etc/machine-id", "/etc/login.defs", "/etc/hostname", "/etc/crontab"); file != "" {
		h.vars["HOSTFILE"], h.vars["HOSTFILEID"] = file, id(file)
	}
	h.interfaces()
	for _, name := range ours {
		if err := os.Setenv(name, canary); err != nil {
			return nil, err
		}
		h.last = append(h.last, func() { os.Unsetenv(name) })
	}
	return h, h.kernel(dir)
}

func (h *host) later(c interface{ Close() error }) { h.last = append(h.last, func() { c.Close() }) }

func (h *host) close() {
	for i := len(h.last) - 1; i >= 0; i-- {
		h.last[i]()
	}
	h.last = nil
}

// echo answers datagrams at an address; the variable is its port.
func (h *host) echo(at, variable string) error {
	c, err := net.ListenPacket("udp", net.JoinHostPort(at, "0"))
	if err != nil {
		return err
	}
	h.later(c)
	h.vars[variable] = strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port)
	go func() { // ends when c is closed
		b := make([]byte, 100)
		for {
			n, from, err := c.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				c.WriteTo(b[:n], from)
			}
		}
	}()
	return nil
}

// beside listens where a box with a way out would have to be let out to.
func (h *host) beside() error {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || !n.IP.IsGlobalUnicast() {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0"))
		if err != nil {
			continue
		}
		h.later(l)
		go func() { // ends when l is closed
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("x"))
				c.Close()
			}
		}()
		h.vars["ADDRESS"], h.vars["GREETS"] = n.IP.String(), strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		return h.echo(n.IP.String(), "ANSWERS")
	}
	return nil
}

// interfaces finds one that leads out.
func (h *host) interfaces() {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && !strings.ContainsAny(i.Name, " \t'\"") {
			h.vars["IFACE"] = i.Name
		}
	}
}

// victim starts a process that the user of the box could signal, were it not in a box;
// $VICTIM is its number.
func victim(w *world) error {
	cat := real("cat")
	if cat == "" {
		return skipped("there is no cat to attack")
	}
	cmd := exec.Command(cat)
	cmd.Env = []string{"SECRET=" + canary}
	cmd.Dir = w.out
	asBoxUser(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.later(func() { in.Close(); cmd.Wait() })
	w.vars["VICTIM"] = fmt.Sprint(cmd.Process.Pid)
	return nil
}

// listening makes a socket with a path in a directory of the world, which says something
// to everyone who comes.
func (w *world) listening(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	w.later(func() { l.Close() })
	go func() { // ends when l is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(canary))
			c.Close()
		}
	}()
	return os.Chmod(path, 0o777)
}
