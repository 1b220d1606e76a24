package main

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// direct runs the example server by itself: as it has sessions, and as it has none.
func direct(ctx context.Context, everything string) (column, func(), error) {
	var ends []func()
	end := func() {
		for _, e := range ends {
			e()
		}
	}
	var urls []string
	for _, stateless := range []string{"false", "true"} {
		addr, err := freeAddr()
		if err != nil {
			return column{}, end, err
		}
		stop, err := start(exec.CommandContext(ctx, everything, "-http", addr, "-stateless="+stateless))
		if err != nil {
			return column{}, end, err
		}
		ends = append(ends, stop)
		if err := reachable(ctx, addr); err != nil {
			return column{}, end, err
		}
		urls = append(urls, "http://"+addr+"/mcp")
	}
	return column{"direct", urls[0], urls[1]}, end, nil
}

// start starts a program. stop ends it, and waits for that.
func start(cmd *exec.Cmd) (stop func(), err error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// reachable waits until somebody listens.
func reachable(ctx context.Context, addr string) error {
	return eventually(ctx, "listen on "+addr, func() (bool, error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
}

// eventually waits for something, ten seconds at most.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("it does not come to pass: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
