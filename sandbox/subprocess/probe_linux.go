package subprocess

import (
	"context"
	"os"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
)

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	program, err := executable(d.opts.Launcher)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
	}
	found, err := probe.Run(ctx, program, d.start,
		sandbox.Finding{Feature: sandbox.HostAllowlist, Evidence: "not claimed: no socket can be made at all; driver native reaches single hosts"},
		sandbox.Finding{Feature: sandbox.ProcessTable, Evidence: "not claimed: the host's process table is shared, so the numbers of processes can be seen; driver native has its own"},
		sandbox.Finding{Feature: sandbox.SSHAgent, Evidence: sandbox.NoAgent},
		sandbox.Finding{Feature: sandbox.Containerized, Evidence: "not claimed: the host's process table and network namespace are shared; drivers native, bwrap and docker share neither; code_execution: process does without"})
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// executable is the path of the launcher's program.
func executable(launcher []string) (string, error) {
	if launcher[0] == "/proc/self/exe" {
		return os.Executable()
	}
	return launcher[0], nil
}
