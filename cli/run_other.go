//go:build !linux

package cli

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/native"
)

// runConfined needs a sandbox of this system, and there is none yet.
func (a *App) runConfined(context.Context, *confined, []string) error {
	return orUnconfined(writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: 'writ run' needs Linux", nil))
}

func changeable(string, string) error { return nil }

func beginAhead([]string) *native.Ahead { return nil }
