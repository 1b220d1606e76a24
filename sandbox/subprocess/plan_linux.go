package subprocess

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
)

// job is a plan as mounts and grants. show are files besides those of the writ.
func (d *Driver) job(p *reach.Plan, show map[string]string) (job, error) {
	j := job{
		Command: supervise.Of(p), Launcher: d.opts.Launcher, UID: p.UID, GID: p.GID,
		Mounts: mountsOf(p), Hide: p.Hide, Writable: p.Write, Grants: restrict.HostTree(p),
	}
	if p.Root {
		j.As = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
		// Without a user namespace the kernel counts all threads of the user.
		j.Limits.Pids += restrict.ThreadsOf(p.UID)
	}
	for at, from := range show {
		j.Mounts = append(j.Mounts, mount{From: from, At: at, ReadOnly: true})
		j.Grants = append(j.Grants, restrict.Grant{Path: at, Read: true, Exec: true})
	}
	var err error
	if j.HostMnt, err = os.Readlink("/proc/self/ns/mnt"); err != nil {
		return job{}, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: /proc is not mounted; mount it", err)
	}
	return j, nil
}

// mountsOf shows the writable roots, the readable ones that a private directory
// would cover, and with a list of programs also those that must not hold any.
func mountsOf(r *reach.Plan) []mount {
	var out []mount
	for _, p := range r.Write {
		out = append(out, mount{From: p, At: p, NoExec: r.Listed})
	}
	for _, p := range r.Read {
		noexec := r.Listed && !slices.ContainsFunc(reach.RealAll(reach.SystemDirs), func(s string) bool { return reach.Within(p, s) || reach.Within(s, p) })
		if _, err := os.Lstat(p); err == nil && (noexec || reach.PrivateParent(p) != "") {
			out = append(out, mount{From: p, At: p, ReadOnly: true, NoExec: noexec})
		}
	}
	// A program in a root that is mounted noexec is shown once more, read-only.
	for _, p := range r.Programs {
		real, err := filepath.EvalSymlinks(p)
		at := func(m mount) bool { return m.At == real }
		if err == nil && (reach.InAny(real, r.Write) || reach.InAny(real, r.Read) || reach.PrivateParent(real) != "") && !slices.ContainsFunc(out, at) {
			out = append(out, mount{From: real, At: real, ReadOnly: true})
		}
	}
	return out
}
