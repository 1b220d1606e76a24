package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// remedy is how a subtree is had of systemd. DelegateSubgroup puts writ itself one group
// further down, since a group with processes of its own cannot hand controllers on.
const remedy = "start writ with 'systemd-run --user --pty -p Delegate=yes -p DelegateSubgroup=writ writ serve', or put Delegate=yes and DelegateSubgroup=writ into its unit (systemd 254 or newer)"

// base is the directory in which groups of this process are made, with the controllers
// that they get there.
func (h hierarchy) base() (string, []string, error) {
	if !h.unified {
		return h.own, h.has, nil
	}
	available := wanted(list(h.own + "/cgroup.controllers"))
	if len(available) == 0 {
		return "", nil, fmt.Errorf("%s: neither memory nor pids is available in it; %s", h.own, remedy)
	}
	if isTop(h.own) { // the top of the machine's tree may hold processes and hand controllers on
		return handedOn(h.own)
	}
	up := filepath.Dir(h.own)
	switch {
	case h.own == h.top || !delegated(up):
		return "", nil, fmt.Errorf("%s: groups in it could have no limits, since writ itself is in it, and writ does not move itself; %s", h.own, remedy)
	case marked(up):
		if err := handOn(up, available); err != nil {
			return "", nil, fmt.Errorf("%w; %s", err, remedy)
		}
	}
	return handedOn(up)
}

// isTop: only the top of the whole tree has no type.
func isTop(dir string) bool {
	_, err := os.Stat(dir + "/cgroup.type")
	return err != nil
}

// delegated reports whether the groups in a directory are ours to make: systemd marks
// what it gives away, and elsewhere being able to is enough. Where systemd is at work,
// being able to is not: an unmarked directory is systemd's, also when the user owns it.
func delegated(dir string) bool {
	if marked(dir) {
		return true
	}
	_, err := os.Stat("/run/systemd/system")
	return err != nil && unix.Access(dir, unix.W_OK) == nil
}

func marked(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var b [8]byte
		if n, err := unix.Getxattr(dir, name, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

func wanted(controllers []string) []string {
	return slices.DeleteFunc(controllers, func(c string) bool { return c != memory && c != pids })
}

// handedOn is what groups in a directory get already.
func handedOn(dir string) (string, []string, error) {
	has := wanted(list(dir + "/cgroup.subtree_control"))
	if len(has) == 0 {
		return "", nil, fmt.Errorf("%s/cgroup.subtree_control names neither memory nor pids; write '+memory +pids' into it, or %s", dir, remedy)
	}
	return dir, has, nil
}

// handOn lets groups in a directory have controllers.
func handOn(dir string, controllers []string) error {
	word := "+" + strings.Join(controllers, " +")
	if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte(word), 0); err != nil {
		return fmt.Errorf("hand %s on: %w", strings.Join(controllers, ", "), err)
	}
	return nil
}
