package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

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
	return talkTo(exec.Command(w.client, "egress-client", there))
}

// srtClient is the same in a box of srt, in which connections are asked for at its proxy. By
// address, so that it has no name to look up.
func (w *wayOut) srtClient() (*talker, error) {
	srt, err := exec.LookPath("srt")
	if err != nil {
		return nil, err
	}
	settings := filepath.Join(w.ws+"-state", "srt.json")
	if err := os.WriteFile(settings, []byte(`{"network":{"allowedDomains":["`+there+`"],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}}`), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(srt, "--settings", settings, w.client, "egress-client", there, "by-proxy")
	cmd.Stderr = os.Stderr
	t, err := talkTo(cmd)
	if err == nil {
		_, err = t.ask("ready")
	}
	return t, err
}

func talkTo(cmd *exec.Cmd) (*talker, error) {
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
