package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// outputLimit is what is kept of each stream; the tail, since errors come last.
const outputLimit = 1 << 20

// Run starts the command in a box, waits for it and tells what came of it. The
// spec's Stdout and Stderr are Run's own; a command that fails is a Result with
// IsError, an error means that there is nothing to tell.
func Run(ctx context.Context, boxes Starter, w writ.Writ, spec sandbox.Spec) (writ.Result, error) {
	limit := int64(outputLimit)
	if declared := w.Confinement().Limits.Output; declared > 0 {
		limit = min(limit, declared)
	}
	stdout, stderr := sandbox.NewTail(limit), sandbox.NewTail(limit)
	spec.Stdout, spec.Stderr = stdout, stderr
	box, driver, err := boxes.Start(ctx, w, spec)
	if err != nil {
		return writ.Result{}, err
	}
	exit, err := box.Wait(ctx)
	if err != nil {
		return writ.Result{}, sofar(err, stdout, stderr)
	}
	m := map[string]any{
		"driver": driver, "exit_code": exit.Code, "signal": exit.Signal, "limit": exit.Limit,
		"elapsed_ms": exit.Elapsed.Milliseconds(), "cpu_micros": exit.CPU.Microseconds(),
		"stdout_bytes": stdout.Total(), "stderr_bytes": stderr.Total(), "met": exit.Met, "undone": exit.Undone,
	}
	maps.Copy(m, contained(w.Call(), exit))
	return writ.Result{Content: render(exit, stdout, stderr), IsError: exit.Code != 0 || exit.Limit != "", Metadata: m}, nil
}

// sofar is the error of a box that was lost, with the end of what the command had written:
// there is no result to put it into.
func sofar(err error, stdout, stderr *sandbox.Tail) error {
	var known *writ.Error
	if !errors.As(err, &known) || stdout.Total()+stderr.Total() == 0 {
		return err
	}
	var b strings.Builder
	stream(&b, "", stdout)
	stream(&b, "[stderr]\n", stderr)
	text := b.String()
	if len(text) > 4<<10 {
		text = "…" + strings.ToValidUTF8(text[len(text)-4<<10:], "")
	}
	return writ.Fail(known.Kind, known.Msg+"; it had written:\n"+text, err)
}

// contained is what the result says of the container that a command ran in; the same names,
// empty, where it ran in none, so that whoever reads them need not know drivers.
func contained(call writ.Call, exit sandbox.Exit) map[string]any {
	m := map[string]any{"container_id": "", "sidecar_id": "", "sidecar_logs": []json.RawMessage{}, "agent_id": "", "execution_time_ms": int64(0)}
	c := exit.Container
	if c == nil {
		return m
	}
	m["container_id"], m["sidecar_id"], m["agent_id"], m["execution_time_ms"] = c.ID, c.Sidecar, call.Agent, exit.Elapsed.Milliseconds()
	if c.Lines.Parsed != nil {
		m["sidecar_logs"] = c.Lines.Parsed
	}
	return m
}

func render(exit sandbox.Exit, stdout, stderr *sandbox.Tail) string {
	var b strings.Builder
	stream(&b, "", stdout)
	stream(&b, "[stderr]\n", stderr)
	switch {
	case exit.Limit == "timeout":
		fmt.Fprintf(&b, "[ended after %s: the time limit; a tool that takes timeout_seconds can be given more, up to its own limit%s]\n", exit.Elapsed.Round(100*time.Millisecond), bound(exit, exit.Limit, " (%s)"))
	case exit.Limit != "":
		fmt.Fprintf(&b, "[ended: %s%s]\n", sandbox.Meaning(exit.Limit), bound(exit, exit.Limit, " (%s)"))
	case exit.Signal != "":
		fmt.Fprintf(&b, "[ended by signal: %s]\n", exit.Signal)
	case exit.Code != 0:
		fmt.Fprintf(&b, "[exit status %d]\n", exit.Code)
	}
	if exit.Met != "" && exit.Met != exit.Limit {
		fmt.Fprintf(&b, "[it came up against a limit: %s%s]\n", sandbox.Meaning(exit.Met), bound(exit, exit.Met, " (%s)"))
	}
	if exit.Limit == "" && exit.Met == "" && (says(stdout, unforked) || says(stderr, unforked)) { // not every kernel tells
		b.WriteString(bound(exit, "pids", "[it seems to have begun more processes than it may: %s]\n"))
	}
	if c := exit.Container; c != nil && c.ReadOnly && exit.Code != 0 && (says(stdout, unwritable) || says(stderr, unwritable)) {
		fmt.Fprintln(&b, "[files can be read alone in this container: an operator opens them with sandboxing.docker.mount_mode: rw, and a new start of the daemon]")
	}
	if exit.Code != 0 && (says(stdout, full) || says(stderr, full)) {
		b.WriteString(bound(exit, "tmpfs", "[a directory such as /tmp holds no more than this in a container: %s]\n"))
	}
	for _, what := range exit.Undone {
		fmt.Fprintf(&b, "[%s]\n", what)
	}
	if b.Len() == 0 {
		return "[no output]\n"
	}
	return b.String()
}

// What programs say that may only read a file system, start no more processes, or write no more.
const (
	unwritable = "Read-only file system"
	unforked   = "Resource temporarily unavailable"
	full       = "No space left on device"
)

func says(t *sandbox.Tail, words string) bool { return strings.Contains(t.String(), words) }

// bound says how much a limit of a container is and who sets it; empty: nothing is known.
func bound(exit sandbox.Exit, limit, format string) string {
	if exit.Container == nil || exit.Container.Bounds[limit] == "" {
		return ""
	}
	return fmt.Sprintf(format, exit.Container.Bounds[limit])
}

func stream(b *strings.Builder, label string, t *sandbox.Tail) {
	if t.Total() == 0 {
		return
	}
	b.WriteString(label)
	if cut := t.Cut(); cut != "" {
		fmt.Fprintf(b, "[cut: %s]\n", cut)
	}
	b.WriteString(lines(t.String()))
}

// lines is output as text that something can be said below.
func lines(output string) string {
	text := strings.ToValidUTF8(output, "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
