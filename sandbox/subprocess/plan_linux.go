package subprocess

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
)

// plan works out a box as mounts and grants. show are mounts besides those of the writ.
func (d *Driver) plan(w writ.Writ, spec sandbox.Spec, show []mount) (job, error) {
	var shown []string
	for _, m := range show {
		shown = append(shown, m.At)
	}
	p, err := reach.Of(w, spec, d.opts.Options, shown...)
	if err != nil {
		return job{}, err
	}
	if p.Root {
		// Without a user namespace the kernel counts all threads of the user.
		p.Limits.Pids += threadsOf(p.UID)
	}
	hostMnt, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return job{}, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: /proc is not mounted; mount it", err)
	}
	return job{
		Launcher: d.opts.Launcher, HostMnt: hostMnt,
		Path: p.Path, Argv: p.Argv, Dir: p.Dir, Env: p.Env,
		Root: p.Root, UID: p.UID, GID: p.GID,
		Mounts: append(mountsOf(p), show...), Hide: p.Hide, Writable: p.Write,
		Grants: append(grantsOf(p), showGrants(show)...), Listed: p.Listed,
		Limits: p.Limits, Grace: p.Grace, Wall: p.Wall,
	}, nil
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

// grantsOf are the Landlock rules for it.
func grantsOf(r *reach.Plan) []grant {
	var out []grant
	for _, p := range reach.GlobAll(reach.SystemFiles) {
		out = append(out, grant{Path: p, Read: true})
	}
	for _, p := range reach.SystemDevices {
		out = append(out, grant{Path: p, Device: true})
	}
	for _, p := range r.System {
		out = append(out, grant{Path: p, Read: true, Exec: !r.Listed})
	}
	for _, p := range reach.PrivateDirs {
		out = append(out, grant{Path: p, Write: true, Exec: !r.Listed})
	}
	for _, p := range r.Read {
		out = append(out, grant{Path: p, Read: true, Exec: !r.Listed, Strict: true})
	}
	for _, p := range r.Write {
		out = append(out, grant{Path: p, Write: true, Exec: !r.Listed, Strict: true})
	}
	if r.List {
		out = append(out, grant{Path: "/", List: true})
	}
	for _, p := range r.Programs {
		out = append(out, grant{Path: p, Read: true, Exec: true})
	}
	if r.Listed {
		for _, p := range reach.GlobAll(reach.Loaders) {
			out = append(out, grant{Path: p, Read: true, Exec: true})
		}
	}
	return out
}

// showGrants are the rules for what the driver itself puts into a box.
func showGrants(show []mount) []grant {
	var out []grant
	for _, m := range show {
		out = append(out, grant{Path: m.At, Read: true, Exec: true})
	}
	return out
}
