//go:build !linux

package prove

import (
	"errors"
	"io/fs"
)

func (h *host) kernel(string) error { return nil }

var namespaces []string

func setAttribute(string, string, []byte) error { return errors.ErrUnsupported }

func kernelProbes() []Probe { return nil }

func onDisk(string) bool { return false }

func ofMachine() []string { return nil }

func changedAt(fs.FileInfo) int64 { return 0 }
