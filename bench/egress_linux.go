package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/protect"
)

// there is where the servers are: an address that looks public, in a namespace without
// any other.
const there = "93.184.216.34"

// egressPart measures the way out of a box, in a network of its own.
func egressPart(program, dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("a network of its own needs root")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	cmd := exec.Command(self, "egress-lab", program, dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// egressLab is the part that runs within.
func egressLab(program, dir string) error {
	for _, args := range []string{"link set lo up", "addr add " + there + "/32 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	for name, value := range map[string]string{"ip_local_port_range": "1024 65535", "tcp_tw_reuse": "1"} { // thousands of short connections to one address
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, stop, err := started(self, "egress-servers")
	if err != nil {
		return err
	}
	defer stop()
	_, stopShort, err := started(self, "egress-short-server")
	if err != nil {
		return err
	}
	defer stopShort()
	out, err := newWayOut(program, self)
	if err != nil {
		return err
	}
	defer out.close()
	direct, err := out.plainClient()
	if err != nil {
		return err
	}
	defer direct.close()
	relayed, err := out.boxedClient()
	if err != nil {
		return err
	}
	defer relayed.close()
	return errors.Join(out.latencies(direct, relayed), out.bulk(direct, relayed), out.many(50), idleMouths(self), table.Flush())
}

// wayOut is boxes with a relay, as the daemon has them.
type wayOut struct {
	driver *native.Driver
	boxes  *sandbox.Boxes
	ws     string
	client string
	names  *protect.Finder
}

func newWayOut(program, self string) (*wayOut, error) {
	ws, err := os.MkdirTemp("/srv", "writ-bench-")
	if err != nil {
		return nil, err
	}
	w := &wayOut{ws: ws, client: filepath.Join(ws, "client")}
	b, err := os.ReadFile(self)
	if err := errors.Join(err, os.WriteFile(w.client, b, 0o755), os.Chmod(ws, 0o755), os.Chown(ws, 65534, 65534), os.Chown(w.client, 65534, 65534)); err != nil {
		return nil, err
	}
	var rules egress.Rules
	for _, port := range []int{tlsPort, echoPort, bulkPort, shortPort} {
		p, err := host.ParsePattern(fmt.Sprintf("good.test:%d", port))
		if err != nil {
			return nil, err
		}
		rules = append(rules, egress.Rule{Host: p})
	}
	broker := egress.New(egress.Options{Resolver: always{}, Limits: egress.Limits{Bytes: 1 << 50}})
	w.driver = native.New(native.Options{Program: program, Deployment: "writ-bench", Outlet: func(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
		return broker.Open(egress.Run{Call: "bench", Agent: "bench", Class: writ.ClassWrite, Rules: rules}).Serve(m), nil
	}})
	state := ws + "-state"
	if err := os.Mkdir(state, 0o700); err != nil {
		return nil, err
	}
	if w.names, err = protect.New(protect.Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: 2 * time.Second}); err != nil {
		return nil, err
	}
	w.driver.Protect(w.names)
	w.boxes = sandbox.NewBoxes(sandbox.Set{w.driver}, sandbox.Lifecycle{Strategy: sandbox.PerCall, Idle: time.Minute})
	return w, nil
}

func (w *wayOut) close() {
	w.driver.Close()
	w.names.Close()
	os.RemoveAll(w.ws)
	os.RemoveAll(w.ws + "-state")
}

// always is a resolver that knows one address.
type always struct{}

func (always) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(there)}, nil
}

// talker is a client that does as it is told, in a box or not.
type talker struct {
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

// ask has it do something, and returns its answer.
func (t *talker) ask(what string) (int64, error) {
	if _, err := fmt.Fprintln(t.in, what); err != nil {
		return 0, err
	}
	line, err := t.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	line = strings.TrimSpace(line)
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s", what, line)
	}
	return n, nil
}

func (t *talker) close() {
	t.in.Close()
	<-t.ended
}

func (w *wayOut) plainClient() (*talker, error) {
	cmd := exec.Command(w.client, "egress-client", there)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t := &talker{in, bufio.NewReader(out), make(chan error, 1)}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { t.ended <- cmd.Wait() }()
	return t, nil
}

// boxedClient is the same in a box, whose whole way out is the relay.
func (w *wayOut) boxedClient() (*talker, error) {
	in, tell := io.Pipe()
	hear, out := io.Pipe()
	t := &talker{tell, bufio.NewReader(hear), make(chan error, 1)}
	c := writ.Confinement{Write: []string{w.ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized, Network: writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"good.test:443"}}}
	go func() {
		g := gatekeeper{c, func(ctx context.Context, order writ.Writ) error {
			box, _, err := w.boxes.Start(ctx, order, sandbox.Spec{Argv: []string{w.client, "egress-client", "good.test"}, Stdin: in, Stdout: out, Stderr: os.Stderr, Alone: true, Serves: true})
			if err == nil {
				_, err = box.Wait(ctx)
			}
			return err
		}}
		_, err := writ.NewGate(g, g, g, g).Do(context.Background(), writ.Call{ID: "bench", Agent: "bench", Session: "bench", Tool: "bench", Definition: writ.Digest{1}, Dir: w.ws, Resolved: true})
		in.CloseWithError(err) // whoever tells it more is told why it is not there
		out.CloseWithError(err)
		t.ended <- err
	}()
	_, err := t.ask("ready")
	return t, err
}

// goal is what was wanted of a number, and whether it came to that.
func goal(got float64, most bool, want float64) string {
	word, held := "at least", got >= want
	if most {
		word, held = "at most", got <= want
	}
	if !held {
		return fmt.Sprintf("goal %s %g: not held", word, want)
	}
	return fmt.Sprintf("goal %s %g: held", word, want)
}

// latencies are of connections in turns.
func (w *wayOut) latencies(direct, relayed *talker) error {
	for _, kind := range []struct {
		ask, name string
		most      float64
	}{{"tls", "TLS connection to its first byte", 1.5}, {"tcp", "bare TCP connection and a byte there and back", 3}} {
		var took [2][]time.Duration
		for i := range 320 {
			for j, t := range []*talker{direct, relayed} {
				n, err := t.ask(kind.ask)
				if err != nil {
					return err
				}
				if i >= 20 {
					took[j] = append(took[j], time.Duration(n))
				}
			}
		}
		d, r := middle(took[0]), middle(took[1])
		row(kind.name+", direct, p50", d.String(), "")
		row(kind.name+", out of a box, p50", r.String(), ratio(r, d)+" of direct; "+goal(float64(r)/float64(d), true, kind.most))
	}
	return nil
}

// bulk is one stream, in turns.
func (w *wayOut) bulk(direct, relayed *talker) error {
	const times = 7
	var took [2][]time.Duration
	before := processorTime()
	for range times {
		for j, t := range []*talker{direct, relayed} {
			n, err := t.ask("bulk")
			if err != nil {
				return err
			}
			took[j] = append(took[j], time.Duration(n))
		}
	}
	relay := (processorTime() - before).Seconds() / (times * bulkSize / 1e9)
	d, r := float64(bulkSize)/middle(took[0]).Seconds()/1e9, float64(bulkSize)/middle(took[1]).Seconds()/1e9
	row("one stream, direct", fmt.Sprintf("%.2f GB/s", d), "")
	row("one stream, out of a box", fmt.Sprintf("%.2f GB/s", r), fmt.Sprintf("%.2fx of direct; %.2f s of the relay's processor time for a GB; %s", r/d, relay, goal(r/d, false, 0.45)))
	return nil
}

// idleMouths is what listeners cost that nobody connects to.
func idleMouths(self string) error {
	const mouths = 1000
	out, err := exec.Command(self, "egress-idle", strconv.Itoa(mouths)).Output()
	if err != nil {
		return err
	}
	kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	row(fmt.Sprintf("%d idle boxes' listeners", mouths), fmt.Sprintf("%.1f MiB more resident", float64(kib)/1024), goal(float64(kib)/1024, true, 50))
	return nil
}
