package seatbelt

import (
	"runtime"
	"testing"

	"github.com/writ-run/writ"
)

func TestElsewhere(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is macOS")
	}
	const want = "sandbox_unavailable: seatbelt is macOS only; choose another driver"
	_, err := New(Options{}).Probe(t.Context())
	if kind, msg := writ.Public(err); kind != writ.SandboxUnavailable || msg != want {
		t.Errorf("%s: %s", kind, msg)
	}
}
