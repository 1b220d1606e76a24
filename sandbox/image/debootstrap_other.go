//go:build !linux

package image

import (
	"context"
	"io"

	"github.com/writ-run/writ"
)

func debootstrap(context.Context, *Request) (io.ReadCloser, error) {
	return nil, writ.Fail(writ.SandboxUnavailable, "debootstrap runs on Linux only; build on an image that is there with --from IMAGE", nil)
}
