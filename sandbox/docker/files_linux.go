package docker

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/calls"
)

// files are what boxes are shown of the driver's own.
type files struct {
	dir     string
	nothing string // a file that cannot be read
	empty   string // a directory in which there is nothing
	names   string // resolv.conf
	hosts   string
	calls   string // the filter of system calls of a container
}

// own makes them, once.
func (d *Driver) own() (*files, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files != nil {
		return d.files, nil
	}
	f := &files{dir: d.opts.State, nothing: filepath.Join(d.opts.State, "nothing"), empty: filepath.Join(d.opts.State, "empty"), names: filepath.Join(d.opts.State, "resolv.conf"), hosts: filepath.Join(d.opts.State, "hosts"), calls: filepath.Join(d.opts.State, "seccomp.json")}
	profile, err := calls.Profile()
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	err = errors.Join(os.MkdirAll(f.dir, 0o711), os.MkdirAll(f.empty, 0o555)) // the user of a box has to get to them
	for path, is := range map[string]struct {
		text string
		mode os.FileMode
	}{
		f.nothing: {"", 0},
		f.names:   {"nameserver 127.0.0.1\noptions timeout:5 attempts:2\n", 0o444},
		f.calls:   {profile, 0o444},
		f.hosts:   {"127.0.0.1 localhost\n::1 localhost\n", 0o444},
	} {
		next := path + ".next"
		err = errors.Join(err, os.WriteFile(next, []byte(is.text), 0o600), os.Chmod(next, is.mode), os.Rename(next, path))
	}
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the files that boxes are shown cannot be made in "+f.dir+"; it must be a directory that this program can write", err)
	}
	d.files = f
	return f, nil
}
