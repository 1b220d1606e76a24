package bwrap

import (
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/wrapped"
)

var wrapper = wrapped.Wrapper{
	Name:    Name,
	Install: "install bubblewrap (Debian: apt-get install bubblewrap)",
	Shape:   shape, Explain: explain,
	Beyond: []sandbox.Finding{
		{Feature: sandbox.HostAllowlist, Evidence: "not claimed: a box has no network but its own; driver native reaches single hosts"},
		{Feature: sandbox.SSHAgent, Evidence: sandbox.NoAgent},
		{Feature: sandbox.Containerized, Enforced: true, Evidence: "process table, network, mounts, users, IPC, host name and cgroups are its own"},
	},
}

// shape is one box, which closes its own files where there is none.
func shape(p *reach.Plan) (*wrapped.Shape, error) {
	v := &view{plan: p}
	if err := v.build(); err != nil {
		v.close()
		return nil, err
	}
	args, err := v.options()
	if err != nil {
		v.close()
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	s := &wrapped.Shape{Args: []string{"--args", args}, Env: []string{}, Files: v.files, Job: v.job(), Hidden: v.hidden, Close: v.close}
	if p.Root {
		s.Arrange = v.stage
	}
	return s, nil
}

// explain is what to do about what bubblewrap said.
func explain(said string) string {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("Unknown option"):
		return "bubblewrap is too old; install one that has --bind-fd (0.10, or an update of an older one for CVE-2024-42472)"
	case has("Creating new namespace failed", "No permissions to create", "setting up uid map", "loopback: Failed"):
		return "bubblewrap can make no namespaces; allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, on Ubuntu an AppArmor profile for bwrap with userns)"
	case has("Can't mount proc"):
		return "bubblewrap cannot mount /proc; in a container do not mask /proc"
	case has("execvp"):
		return "bubblewrap cannot execute this program inside; its file must be executable for every user"
	case has("Can't mkdir", "Can't create file", "Can't find source path"):
		return "there is no place in a box for something that it is to see; name a directory above it"
	}
	return "the box could not be set up by bubblewrap; look at what it said in the log of the daemon"
}
