//go:build !linux

package prove

import "errors"

func (h *host) kernel(string) error { return nil }

var namespaces []string

func setAttribute(string, string, []byte) error { return errors.ErrUnsupported }

func kernelProbes() []Probe { return nil }

func onDisk(string) bool { return false }

func ofMachine() []string { return nil }
