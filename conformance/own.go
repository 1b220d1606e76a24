package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ/api"
	"github.com/writ-run/writ/engine"
)

// own embeds an engine whose tools are functions of this program, and whose
// resources, prompts and calls of several rounds are those of an MCP server inside it.
func own(ctx context.Context, dir, writ string) (column, func(), error) {
	nothing := func() {}
	dir = filepath.Join(dir, "own")
	config, state, err := configure(dir, "")
	if err != nil {
		return column{}, nothing, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e, err := engine.Open(ctx, engine.Options{
		Config: config, Launcher: []string{writ}, Log: log, Tools: append(plainTools(), taskTools()...),
		Servers: []engine.Server{{Name: "fixture", Bare: true, Connect: inProcess(newFixture())}},
	})
	if err != nil {
		return column{}, nothing, err
	}
	l, err := api.Listen(e.Config().File.Listen, e.Config().StatePath, e.Reach)
	if err != nil {
		return column{}, func() { e.Close() }, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := api.Serve(ctx, e, l, log); err != nil {
			log.Error("the daemon ended", "err", err)
		}
	}()
	stop := func() { cancel(); <-done; e.Close() }
	c, end, err := admitted(ctx, "own", state, "json_schema_2020_12_tool", l.Agents.Addr().String())
	return c, func() { end(); stop() }, err
}

// inProcess connects to a server of this program, for each connection anew.
func inProcess(s *mcp.Server) func(context.Context) (io.ReadCloser, io.WriteCloser, error) {
	return func(context.Context) (io.ReadCloser, io.WriteCloser, error) {
		fromServer, serverOut := io.Pipe()
		serverIn, toServer := io.Pipe()
		go s.Run(context.Background(), &mcp.IOTransport{Reader: serverIn, Writer: serverOut}) // it ends with its pipes
		return fromServer, toServer, nil
	}
}
