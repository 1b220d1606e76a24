package main

import (
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
	w.driver = native.New(native.Options{Program: whole(program), Deployment: "writ-bench", Outlet: func(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
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
	tcp := []*talker{direct, relayed}
	tls := tcp
	srt, err := w.srtClient()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		row("TLS connection to its first byte, through srt's proxy", "not measured", "srt is not installed")
	case err != nil:
		return fmt.Errorf("srt: %w", err)
	default:
		defer srt.close()
		tls = append(tls, srt)
	}
	took, err := inTurn("tls", tls)
	if err != nil {
		return err
	}
	rows("TLS connection to its first byte", took, 1.5)
	if len(took) > 2 {
		d, r, s := took[0], took[1], took[2]
		row("TLS connection to its first byte, through srt's proxy, p50", s.String(), fmt.Sprintf("%s of out of a box; it adds %v, a box %v; %s", ratio(s, r), s-d, r-d, goal(float64(s)/float64(r), false, 3)))
	}
	if took, err = inTurn("tcp", tcp); err == nil {
		rows("bare TCP connection and a byte there and back", took, 3)
	}
	return err
}

// rows are of what was measured directly and out of a box.
func rows(what string, took []time.Duration, most float64) {
	d, r := took[0], took[1]
	row(what+", direct, p50", d.String(), "")
	row(what+", out of a box, p50", r.String(), ratio(r, d)+" of direct; "+goal(float64(r)/float64(d), true, most))
}

// inTurn is the middle of what 300 of each take, after the first few.
func inTurn(ask string, all []*talker) ([]time.Duration, error) {
	took := make([][]time.Duration, len(all))
	for i := range 320 {
		for j, t := range all {
			n, err := t.ask(ask)
			if err != nil {
				return nil, err
			}
			if i >= 20 {
				took[j] = append(took[j], time.Duration(n))
			}
		}
	}
	middles := make([]time.Duration, len(all))
	for j := range all {
		middles[j] = middle(took[j])
	}
	return middles, nil
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
