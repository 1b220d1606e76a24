package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/supervise"
)

// endWithin bounds how long ending a container may take, and how often it is tried.
const (
	endWithin = 30 * time.Second
	endTries  = 5
	endAgain  = 200 * time.Millisecond
)

// exec starts this program in the container, to play a part.
func (c *running) exec(ctx context.Context, part, user string, stdin bool) (string, client.HijackedResponse, error) {
	made, err := c.engine.ExecCreate(ctx, c.id, client.ExecCreateOptions{
		User: user, AttachStdin: stdin, AttachStdout: true, AttachStderr: true, Env: small, WorkingDir: "/", Cmd: []string{inBox, probe.Verb, part},
	})
	var at client.ExecAttachResult
	if err == nil {
		at, err = answered(ctx, c.driver.answers, func(ctx context.Context) (client.ExecAttachResult, error) {
			return c.engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
		})
	}
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // the container is not there or does not run
		return "", at.HijackedResponse, sandbox.ErrUnfit
	}
	if err != nil {
		return "", at.HijackedResponse, c.driver.failed("start a command in a container", err)
	}
	return made.ID, at.HijackedResponse, nil
}

// supervisor starts one, and is the way to it.
func (c *running) supervisor(ctx context.Context) (*supervise.Link, error) {
	_, conn, err := c.exec(ctx, partSupervise, c.user, true)
	if err != nil {
		return nil, err
	}
	to := &frames{to: conn.Conn}
	status, hears := io.Pipe()
	stdout, out := io.Pipe()
	stderr, errs := io.Pipe()
	said, says := io.Pipe()
	framed, unframed := io.Pipe()
	gone := make(chan struct{})
	in := &input{to: to, may: make(chan struct{}, 1), gone: gone}
	in.may <- struct{}{}
	go func() {
		_, err := stdcopy.StdCopy(unframed, says, conn.Reader)
		says.Close()
		unframed.CloseWithError(errors.Join(err, io.EOF))
	}()
	go func() {
		defer close(gone)
		defer conn.Close()
		receive(framed, func(kind byte, b []byte) (err error) {
			switch kind {
			case frameStatus:
				_, err = hears.Write(b)
			case frameOut:
				_, err = out.Write(b)
			case frameErr:
				_, err = errs.Write(b)
			case frameTook:
				in.may <- struct{}{}
			}
			return err
		})
		for _, w := range []*io.PipeWriter{hears, out, errs} {
			w.Close()
		}
		framed.Close()
	}()
	go c.attend(gone, conn.Close)
	go c.driver.beat(gone, func(beat []byte) error { return to.send(frameBeat, beat) })
	return &supervise.Link{
		Control: control{to, conn}, Status: status, Stdin: in, Stdout: stdout, Stderr: stderr, Said: said, Gone: gone,
		Kill: func() {
			if c.end() != nil {
				c.unended.Store(true)
				conn.Close() // an engine that hangs says nothing more
			}
		},
	}, nil
}

// A control is the daemon's end of what a supervisor obeys.
type control struct {
	to   *frames
	conn client.HijackedResponse
}

func (c control) Write(b []byte) (int, error) { return c.to.as(frameControl).Write(b) }

// Close has the supervisor end everything: what it still says is heard.
func (c control) Close() error { return c.conn.CloseWrite() }

// An input sends one piece after the other has been taken.
type input struct {
	to   *frames
	may  chan struct{}
	gone <-chan struct{}
	once sync.Once
}

const piece = 32 << 10

func (i *input) Write(b []byte) (int, error) {
	n := 0
	for len(b) > 0 {
		select {
		case <-i.may:
		case <-i.gone:
			return n, io.ErrClosedPipe
		}
		part := b[:min(piece, len(b))]
		if err := i.to.send(frameIn, part); err != nil {
			return n, err
		}
		n, b = n+len(part), b[len(part):]
	}
	return n, nil
}

func (i *input) Close() (err error) {
	i.once.Do(func() {
		select {
		case <-i.may:
			err = i.to.send(frameIn, nil)
		case <-i.gone:
		}
	})
	return err
}

// clear ends what a call has left in the container, and empties its private directories.
func (c *running) clear(ctx context.Context) error {
	id, conn, err := c.exec(ctx, partClear, c.owner, false)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	said := sandbox.NewTail(4 << 10)
	if _, err := stdcopy.StdCopy(said, said, conn.Reader); err != nil {
		return err
	}
	is, err := c.engine.ExecInspect(ctx, id, client.ExecInspectOptions{})
	if err == nil && (is.Running || is.ExitCode != 0) {
		err = fmt.Errorf("the container could not be readied again: %s", strings.TrimSpace(said.String()))
	}
	return err
}
