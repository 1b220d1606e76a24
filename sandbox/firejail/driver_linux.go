package firejail

import (
	"fmt"
	"os"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"github.com/writ-run/writ/sandbox/wrapped"
)

var wrapper = wrapped.Wrapper{
	Name:    Name,
	Install: "install firejail (Debian: apt-get install firejail)",
	Shape:   shape, Explain: explain,
	Beyond: []sandbox.Finding{
		{Feature: sandbox.HostAllowlist, Evidence: "not claimed: no socket can be made at all; driver native reaches single hosts"},
		{Feature: sandbox.SSHAgent, Evidence: sandbox.NoAgent},
		{Feature: sandbox.Containerized, Evidence: "not claimed: the box sees the names in the host's tree; use driver native or bwrap, or code_execution: process"},
	},
}

// shape is one box.
func shape(p *reach.Plan) (*wrapped.Shape, error) {
	f, err := newProfile(p)
	if err != nil {
		return nil, err
	}
	job, err := f.job()
	if err != nil {
		return nil, err
	}
	file, err := wrapped.InMemory(strings.Join(f.lines, "\n") + "\n")
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	return &wrapped.Shape{
		Args: []string{"--quiet", fmt.Sprintf("--profile=/proc/self/fd/%d", wrapped.FirstFile), "--keep-fd=all"},
		// The user's shell, which firejail starts commands with, may be none.
		Env:   []string{"PATH=/usr/bin:/bin", "SHELL=/bin/sh"},
		Files: []*os.File{file}, Job: job, Hidden: f.hidden, Close: func() { file.Close() },
	}, nil
}

// own is how many processes firejail itself has as the user of the box.
const own = 2

// job is what becomes of the process inside. Since the box sees the host's tree, Landlock
// allows only what the plan names.
func (f *profile) job() (wrapped.Job, error) {
	p := f.plan
	sealed, err := wrapped.FileSystems(kernels)
	if err != nil {
		return wrapped.Job{}, err
	}
	grants := append(restrict.HostTree(p), restrict.Grant{Path: "/proc", Read: true}) // of the box's own processes
	if p.Listed {
		grants = append(grants, restrict.Grant{Path: p.Path, Read: true, Exec: true})
	}
	c := supervise.Of(p)
	c.Limits.Pids += restrict.ThreadsOf(p.UID) + own
	return wrapped.Job{
		Command: c, Grants: grants, Make: []string{reach.PrivateHome}, Watch: reach.PrivateDirs,
		Hidden: f.hidden, Sealed: sealed, Writable: p.Write,
	}, nil
}

// explain is what to do about what firejail said.
func explain(said string) string {
	switch {
	case strings.Contains(said, "not allowed to use Firejail"):
		return "firejail does not take this user; add it to /etc/firejail/firejail.users"
	case strings.Contains(said, "clone"), strings.Contains(said, "unshare"):
		return "firejail can make no namespaces; check that it is set-user-ID root, in a container give CAP_SYS_ADMIN"
	}
	return "the box could not be set up by firejail; look at what it said in the log of the daemon"
}
