//go:build linux

package subprocess

import (
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// TestCallNames: a misspelt name would be ignored, and its call allowed.
func TestCallNames(t *testing.T) {
	names := slices.Concat(refused, unsupported, missing, refusedListed)
	for _, c := range callsByArgument() {
		names = append(names, c.name)
	}
	for i, name := range names {
		known := false
		for _, a := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386, arch.ARM} {
			_, ok := a.SyscallNames[name]
			known = known || ok
		}
		if !known {
			t.Errorf("no architecture has a call %q", name)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%q is named twice", name)
		}
	}
}
