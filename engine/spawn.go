package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/sandbox/unasked"
	"github.com/writ-run/writ/wire"
)

// program is a server's that runs in a box.
type program struct {
	from io.ReadCloser
	to   io.WriteCloser
	said *words // on its standard error
}

// spawn starts a server's program in a box that reaches what its configuration says,
// and nothing else. Nothing runs that is not written down first (I3).
func (u *upstreams) spawn(ctx context.Context, s *server) (program, error) {
	confine, dir := u.confinement(s)
	given, err := s.secret.given(ctx, s.cfg.Env)
	if err != nil {
		return program{}, err
	}
	spec := sandbox.Spec{Argv: s.cfg.Command, Dir: dir, Given: given, Alone: true, Serves: true}
	if len(s.cfg.Hosts) == 0 {
		spec.Env = sandbox.Offline()
	}
	err = u.e.ledger.Append(ctx, ledger.Entry{Kind: "upstream.started", Data: []wire.Field{
		wire.Str("server", s.name), wire.Str("program", s.cfg.Command[0]), wire.Int("arguments", int64(len(s.cfg.Command)-1)),
	}})
	if err != nil {
		return program{}, err
	}
	fromBox, out := io.Pipe()
	in, toBox := io.Pipe()
	said := &words{}
	spec.Stdin, spec.Stdout, spec.Stderr = in, out, said
	life, end := context.WithCancel(context.Background())
	started := make(chan error, 1)
	go func() {
		defer end()
		err := unasked.As(life, "server "+s.name, confine, dir, func(ctx context.Context, w writ.Writ) error {
			box, _, err := u.e.boxes.Start(ctx, w, spec)
			started <- err
			if err != nil {
				return err
			}
			exit, err := box.Wait(ctx)
			if err == nil {
				err = fmt.Errorf("the program ended with code %d%s", exit.Code, said.after(", and said:"))
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
		return program{}, fmt.Errorf("start %s in a box: %w", s.cfg.Command[0], err)
	}
	return program{fromBox, ending{toBox, end}, said}, nil
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
	if backend == docker.Name && dockerReadOnly(cfg).V {
		c.Read, c.Write = slices.Concat(c.Read, c.Write), nil
	}
	if len(s.cfg.Hosts) > 0 {
		six := slices.ContainsFunc(cfg.Egress, func(s config.Said) bool { return s.IPv6 }) // which of them is for the broker
		c.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: s.cfg.Hosts, IPv6: six}
	}
	return c, s.cfg.Dir
}
