package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool/admin"
)

// shipping logs what ran in containers, one record a command. It is done beside the calls:
// what does not fit into the queue, because the log is slow, is left out.
type shipping struct {
	log   *slog.Logger
	queue chan sandbox.Run
	over  chan struct{} // closed when the queue has been emptied
	once  sync.Once

	mu     sync.Mutex
	closed bool
}

// queued bounds what waits: with raw output each may have max_log_bytes.
const queued = 16

// shipWithin is how long the end of the daemon waits for what is left.
const shipWithin = 5 * time.Second

func newShipping(log *slog.Logger) *shipping {
	s := &shipping{log: log, queue: make(chan sandbox.Run, queued), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		for r := range s.queue {
			log.LogAttrs(context.Background(), slog.LevelInfo, "container run", record(r)...)
		}
	}()
	return s
}

// ran takes a run, and never waits.
func (s *shipping) ran(r sandbox.Run) {
	if err := errors.Join(r.Err, r.Unheard); err != nil {
		s.log.Debug("not all is known of a container run", "writ.request.id", r.Call, "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	select {
	case s.queue <- r:
	default:
		s.log.Debug("a container run was not logged: the log is slower than the runs", "writ.request.id", r.Call)
	}
}

// Close logs what is left, as far as that is soon done.
func (s *shipping) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		close(s.queue)
	})
	select {
	case <-s.over:
	case <-time.After(shipWithin):
		s.log.Debug("not every container run was logged before the end")
	}
	return nil
}

// record is a run as it is logged. The names are flat, and those of OpenTelemetry where it
// has one.
func record(r sandbox.Run) []slog.Attr {
	c := r.Exit.Container
	out := []slog.Attr{
		slog.String("container.id", c.ID), slog.String("container.image.name", c.Image), slog.String("container.image.id", c.ImageID),
		slog.String("writ.sidecar.id", c.Sidecar), slog.String("writ.box.id", r.Box),
		slog.String("writ.agent.id", r.Agent), slog.String("writ.session.id", r.Session), slog.String("writ.task.id", r.Task), slog.String("writ.request.id", r.Call),
		slog.String("writ.tool.name", r.Tool), slog.Int("process.exit.code", r.Exit.Code), slog.String("writ.run.limit", r.Exit.Limit),
		slog.Int64("writ.run.execution_time_ms", r.Exit.Elapsed.Milliseconds()),
		slog.Int64("writ.run.stdout_bytes", r.Stdout), slog.Int64("writ.run.stderr_bytes", r.Stderr),
		slog.Int("writ.sidecar.lines", len(c.Lines.Parsed)+c.Lines.Left), slog.Int("writ.sidecar.lines_malformed", c.Lines.Malformed),
		slog.Bool("writ.sidecar.late", r.Unheard != nil),
	}
	if r.Output == nil {
		return out
	}
	said := bytes.NewBuffer(nil)
	for _, line := range c.Lines.Parsed {
		said.Write(line)
		said.WriteByte('\n')
	}
	return append(out, slog.String("writ.run.output", admin.Scrub(r.Output.String())), slog.String("writ.sidecar.output", admin.Scrub(said.String())))
}

// report is what is told of commands in boxes.
func (e *Engine) report(cfg *config.Config) sandbox.Report {
	s := cfg.File.LogShipping
	r := sandbox.Report{IDs: cfg.IDNames()}
	if s.Enabled {
		r.Within, r.Bytes, r.Raw, r.Ran = time.Duration(s.TimeoutSeconds)*time.Second, int64(s.MaxBytes), s.Raw, e.shipping.ran
	}
	return r
}
