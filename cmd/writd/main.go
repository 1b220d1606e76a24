// Command writd is the whole of writ: the daemon, and every command. People type writ,
// which hands over to it.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/sandbox/wrapped"
)

func main() {
	docker.Main()
	wrapped.Main() // neither returns when this process is to become a box
	subprocess.Main()
	cli.Main(cli.Program{Commands: commands, Store: &cli.Store{Recover: engine.Recover, Unconfined: unconfined}})
}

// app is what the commands here share.
type app struct{ *cli.App }

// commands are those that need the engine, by name.
func commands(shared *cli.App) map[string]func() *cobra.Command {
	a := &app{shared}
	return map[string]func() *cobra.Command{
		"doctor": a.doctorCommand,
		"image":  a.imageCommand,
		"init":   a.initCommand,
		"serve":  a.serveCommand,
	}
}

// unconfined lends the ledger itself, where no daemon has it.
func unconfined(ctx context.Context, config string, record func(cli.UnconfinedRecord) error) error {
	return engine.WithoutDaemon(ctx, config, func(u engine.Unconfined) error { return record(recorder{u}) })
}

// recorder is the engine's record as the command line speaks to the daemon's.
type recorder struct{ engine.Unconfined }

func (r recorder) StartUnconfined(ctx context.Context, run client.UnconfinedRequest) (string, error) {
	return r.Unconfined.StartUnconfined(ctx, engine.UnconfinedRun(run))
}

func (r recorder) EndUnconfined(ctx context.Context, id string, end client.UnconfinedEnd) error {
	return r.Unconfined.EndUnconfined(ctx, id, engine.UnconfinedEnd(end))
}
