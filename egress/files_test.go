//go:build unix

package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/writ-run/writ"
)

const outOfFiles = "WRIT_TEST_OUT_OF_FILES"

// asking resolves as a real one does: by a socket, and not to the loopback, which is a box's own.
type asking struct{}

func (asking) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	c, err := net.Dial("udp", "127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	c.Close()
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// TestOutOfFiles: a relay that can open nothing more goes on as soon as it can.
func TestOutOfFiles(t *testing.T) {
	if os.Getenv(outOfFiles) != "" {
		relayOf(t)
		return
	}
	at := echo(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOutOfFiles$", "-test.timeout", "1m")
	cmd.Env = append(os.Environ(), outOfFiles+"="+at.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	lines := bufio.NewReader(out)
	tell := func(what string) []string {
		t.Helper()
		io.WriteString(in, what+"\n")
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return strings.Fields(line)
	}
	where := tell("where")
	w := &way{t: t, mouth: address(t, where[0]), names: address(t, where[1])}
	before := w.holds()
	if before == nil || w.asks(t) != dns.RcodeSuccess {
		t.Fatal("it does not serve at all")
	}
	tell("exhaust")
	waiting := make([]net.Conn, 20)
	for i := range waiting { // the kernel takes them up; the relay cannot
		if waiting[i], err = net.Dial("tcp", w.mouth.String()); err != nil {
			t.Fatal(err)
		}
		defer waiting[i].Close()
		waiting[i].Write([]byte{1})
	}
	waiting[0].SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := waiting[0].Read(make([]byte, 1)); n > 0 || !isTimeout(err) {
		t.Errorf("it was not out of files: %d %v", n, err)
	}
	if code := w.asks(t); code != dns.RcodeServerFailure {
		t.Errorf("a question meanwhile: %s", dns.RcodeToString[code])
	}
	before.Write([]byte{2})
	if n, err := before.Read(make([]byte, 1)); n != 1 {
		t.Errorf("what was open before does not go on: %v", err)
	}
	tell("release")
	for i, c := range waiting {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n != 1 {
			t.Errorf("connection %d, which waited: %v", i, err)
		}
	}
	if c := w.holds(); c == nil || w.asks(t) != dns.RcodeSuccess {
		t.Error("it did not recover")
	}
}

func address(t *testing.T, s string) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// asks asks about good.test and gives the code of the answer.
func (w *way) asks(t *testing.T) int {
	t.Helper()
	q := new(dns.Msg).SetQuestion("good.test.", dns.TypeA)
	a, _, err := (&dns.Client{Timeout: 5 * time.Second}).Exchange(q, w.names.String())
	if err != nil {
		t.Fatal(err)
	}
	return a.Rcode
}

// relayOf serves with few files, and does as it is told.
func relayOf(t *testing.T) {
	at := address(t, os.Getenv(outOfFiles))
	w := New(Options{Resolver: asking{}}).way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite))
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	l.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "where":
			fmt.Println(w.mouth, w.names)
		case "exhaust":
			for {
				f, err := os.Open(os.DevNull)
				if err != nil {
					break
				}
				held = append(held, f)
			}
			fmt.Println(len(held))
		case "release":
			for _, f := range held {
				f.Close()
			}
			fmt.Println("released")
		}
	}
}
