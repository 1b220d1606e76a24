package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// aside is a directory for one sidecar and its box, with what only this deployment could
// have named it.
func (d *Driver) aside(name string) (string, error) {
	dir := filepath.Join(d.opts.State, asides, name+"."+d.proof(name))
	err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o711), os.Mkdir(dir, 0o711))
	return dir, err
}

const (
	asides     = "sidecars"
	socketName = "socket"
)

// listen makes a socket in a directory, however long the name of that is. A sidecar is
// root without the right to pass permissions by; who else finds it does not know the secret.
func listen(dir string) (*net.UnixListener, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, socketName)})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then that path may be another's; the directory goes as a whole
	return l, os.Chmod(filepath.Join(dir, socketName), 0o666)
}

// clearAside removes the directories of sidecars that are gone.
func (d *Driver) clearAside() error {
	entries, err := os.ReadDir(filepath.Join(d.opts.State, asides))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if name, proof, ok := strings.Cut(e.Name(), "."); ok && proof == d.proof(name) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.opts.State, asides, e.Name())))
		}
	}
	return err
}
