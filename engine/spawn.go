package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/unasked"
	"github.com/writ-run/writ/wire"
)

// spawn starts a server's program in a box that reaches what its configuration says,
// and no network. Nothing runs that is not written down first (I3).
func (u *upstreams) spawn(ctx context.Context, s *server) (from io.ReadCloser, to io.WriteCloser, err error) {
	confine, dir := u.confinement(s)
	spec := sandbox.Spec{Argv: s.cfg.Command, Dir: dir, Env: s.cfg.Env, Alone: true, Serves: true}
	err = u.e.ledger.Append(ctx, ledger.Entry{Kind: "upstream.started", Data: []wire.Field{
		wire.Str("server", s.name), wire.Str("program", s.cfg.Command[0]), wire.Int("arguments", int64(len(s.cfg.Command)-1)),
	}})
	if err != nil {
		return nil, nil, err
	}
	fromBox, out := io.Pipe()
	in, toBox := io.Pipe()
	last := &lastWords{}
	spec.Stdin, spec.Stdout, spec.Stderr = in, out, last
	life, end := context.WithCancel(context.Background())
	started := make(chan error, 1)
	go func() {
		defer end()
		err := unasked.Do(life, confine, dir, func(ctx context.Context, w writ.Writ) error {
			box, _, err := u.e.boxes.Start(ctx, w, spec)
			started <- err
			if err != nil {
				return err
			}
			exit, err := box.Wait(ctx)
			if err == nil {
				err = fmt.Errorf("the program ended with code %d%s", exit.Code, last)
			}
			return err
		})
		select {
		case started <- err: // it was refused before it began
		default:
		}
		err = cmp.Or(err, io.EOF)
		out.CloseWithError(err)
		in.CloseWithError(err)
		if err := u.e.ledger.Append(context.Background(), ledger.Entry{Kind: "upstream.ended", Data: []wire.Field{wire.Str("server", s.name)}}); err != nil {
			u.e.log.Error("the end of an MCP server could not be recorded", "server", s.name, "err", err)
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, fmt.Errorf("start %s in a box: %w", s.cfg.Command[0], err)
	}
	return fromBox, ending{toBox, end}, nil
}

// ending ends a box when what is written to it is closed.
type ending struct {
	io.WriteCloser
	end context.CancelFunc
}

func (e ending) Close() error {
	defer e.end()
	return e.WriteCloser.Close()
}

// confinement is all that a server's program may reach.
func (u *upstreams) confinement(s *server) (writ.Confinement, string) {
	cfg := u.e.at().cfg
	sb := cfg.File.Sandboxing
	backend := string(sb.DefaultBackend)
	if b, ok := sb.Overrides[action.MCP]; ok {
		backend = string(b)
	}
	if backend == "auto" {
		backend = ""
	}
	c := writ.Confinement{Read: s.cfg.Read, Write: s.cfg.Write, Hide: cfg.Own(), Exec: writ.Exec{Mode: writ.ExecAny}, Backend: backend}
	return c, s.cfg.Dir
}

// lastWords keeps the end of what a program said on its standard error.
type lastWords struct{ tail []byte }

func (l *lastWords) Write(b []byte) (int, error) {
	const most = 400
	l.tail = append(l.tail, b...)
	if len(l.tail) > most {
		l.tail = append([]byte(nil), l.tail[len(l.tail)-most:]...)
	}
	return len(b), nil
}

func (l *lastWords) String() string {
	if text := strings.TrimSpace(strings.ToValidUTF8(string(l.tail), "?")); text != "" {
		return ", and said: " + text
	}
	return ""
}
