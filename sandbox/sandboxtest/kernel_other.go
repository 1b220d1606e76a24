//go:build !linux

package sandboxtest

import (
	"testing"

	"github.com/writ-run/writ/sandbox"
)

// testKernel is about Linux.
func testKernel(t *testing.T, d sandbox.Driver, have sandbox.Features) {}
