package engine

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/writ-run/writ/sandbox"
)

// stuck is a log that nobody reads.
type stuck struct{ free chan struct{} }

func (s stuck) Write(b []byte) (int, error) { <-s.free; return len(b), nil }

// A log that does not go on holds up nobody, and what is left at the end is written.
func TestShippingNeverWaits(t *testing.T) {
	to := stuck{make(chan struct{})}
	s := newShipping(slog.New(slog.NewTextHandler(to, nil)))
	for range 10 * queued {
		s.ran(sandbox.Run{Exit: sandbox.Exit{Container: &sandbox.Container{}}})
	}
	if len(s.queue) != queued {
		t.Errorf("%d wait, want %d", len(s.queue), queued)
	}
	close(to.free)
	if err := s.Close(); err != nil || len(s.queue) != 0 {
		t.Errorf("%v, %d are left", err, len(s.queue))
	}
	s.ran(sandbox.Run{Exit: sandbox.Exit{Container: &sandbox.Container{}}}) // after the end
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestShippedRecord(t *testing.T) {
	var out bytes.Buffer
	s := newShipping(slog.New(slog.NewJSONHandler(&out, nil)))
	run := sandbox.Run{Call: "call_1", Exit: sandbox.Exit{Container: &sandbox.Container{ID: "c", Sidecar: "s", Lines: sandbox.Lines{
		Parsed: []json.RawMessage{[]byte(`{"to":"a","header":"Bearer abc"}`)}, Malformed: 3, Left: 1}}}}
	s.ran(run)
	run.Output = sandbox.NewTail(100)
	s.ran(run)
	s.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var plain, raw map[string]any
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &plain) != nil || json.Unmarshal([]byte(lines[1]), &raw) != nil {
		t.Fatal(out.String())
	}
	if plain["writ.sidecar.lines"] != 2.0 || plain["writ.sidecar.lines_malformed"] != 3.0 || plain["writ.sidecar.id"] != "s" || strings.Contains(lines[0], "header") {
		t.Errorf("%v", plain)
	}
	if said, _ := raw["writ.sidecar.output"].(string); !strings.Contains(said, `"to":"a"`) || strings.Contains(said, "abc") {
		t.Errorf("%q", said)
	}
	for name, v := range plain {
		if _, nested := v.(map[string]any); nested {
			t.Errorf("%s is not flat", name)
		}
	}
}
