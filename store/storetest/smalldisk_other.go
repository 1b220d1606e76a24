//go:build !linux

package storetest

import (
	"testing"

	"github.com/writ-run/writ/need"
)

// SmallDisk skips: only Linux can mount one here.
func SmallDisk(t testing.TB, _ int) string {
	t.Helper()
	need.Lacking(t, "a small disk needs Linux")
	return ""
}

// Fill is never reached without SmallDisk.
func Fill(testing.TB, string, int) {}
