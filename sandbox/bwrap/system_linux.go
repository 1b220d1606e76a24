package bwrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// options are the arguments of bubblewrap, in a file of their own. It returns the
// descriptor as the box has it.
func (v *view) options() (string, error) {
	all := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--die-with-parent", "--new-session", "--as-pid-1", "--clearenv",
		// Not for the command, but for what becomes it: bubblewrap has no option for
		// mounts without programs, nor for the number of files in one.
		"--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP",
	}
	all = append(all, v.args...)
	f, err := wrapped.InMemory(strings.Join(all, "\x00") + "\x00")
	if err != nil {
		return "", err
	}
	return v.pass(f), nil
}

// system puts in what every box has.
func (v *view) system() {
	for _, dir := range v.plan.System {
		v.directory(dir)
	}
	for _, dir := range []string{"/bin", "/sbin"} {
		if to, err := os.Readlink(dir); err == nil { // by which scripts name their interpreter
			v.symlink(to, dir)
		}
	}
	for _, dir := range []string{"/dev", "/etc", "/usr", "/var"} { // not for their owner alone, as bubblewrap makes them
		v.add("--perms", "0755", "--dir", dir)
	}
	for _, dev := range reach.SystemDevices {
		v.add("--dev-bind", dev, dev)
	}
	for _, l := range [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"../tmp", "shm"}} {
		v.symlink(l[0], "/dev/"+l[1])
	}
	v.configuration()
	v.add("--proc", "/proc")
	v.temporary(reach.PrivateTmp)
	v.add("--perms", "0700", "--dir", reach.PrivateHome)
	if !reach.InAny("/var/tmp", v.plan.Read) && !reach.InAny("/var/tmp", v.plan.Write) {
		v.symlink("../tmp", "/var/tmp")
	}
}

// temporary makes an empty directory of the box's own.
func (v *view) temporary(dir string) {
	v.add("--perms", "1777", "--size", fmt.Sprint(wrapped.TemporaryBytes), "--tmpfs", dir)
	v.bounded = append(v.bounded, dir)
	if v.plan.Listed {
		v.noExec = append(v.noExec, dir)
	}
}

// directory shows one of the system, or makes the symlink that the host has for it.
func (v *view) directory(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || reach.InAny(dir, v.bound) {
		return
	}
	if to, err := os.Readlink(dir); err == nil {
		if filepath.Dir(dir) == "/" {
			v.symlink(to, dir)
		}
		return
	}
	if info.IsDir() {
		v.add("--ro-bind", dir, dir)
		v.bound = append(v.bound, dir)
	}
}

// configuration is what libraries ask for: files and directories as they are, symlinks
// where they lead into the system.
func (v *view) configuration() {
	for _, path := range reach.GlobAll(reach.SystemFiles) {
		info, err := os.Stat(path)
		if err != nil || strings.HasPrefix(path, "/proc/") || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if to, err := os.Readlink(path); err == nil {
			full := to
			if !filepath.IsAbs(to) {
				full = filepath.Join(filepath.Dir(path), to)
			}
			if reach.InAny(full, v.bound) {
				v.symlink(to, path)
				continue
			}
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			v.add("--ro-bind", real, path)
			if info.IsDir() {
				v.bound = append(v.bound, path)
			}
		}
	}
}

// job is what becomes of the process inside.
func (v *view) job() wrapped.Job {
	p := v.plan
	any := !p.Listed
	grants := []restrict.Grant{
		{Path: "/", Read: true, Exec: any}, {Path: "/dev", Device: true}, {Path: "/proc", Read: true}, {Path: reach.PrivateTmp, Write: true, Exec: any},
	}
	for _, w := range p.Write {
		grants = append(grants, restrict.Grant{Path: inside(w), Write: true, Exec: any, Strict: true})
	}
	if reach.InAny("/var/tmp", v.shown) {
		grants = append(grants, restrict.Grant{Path: "/var/tmp", Write: true, Exec: any})
	}
	if p.Listed {
		for _, path := range slices.Concat([]string{p.Path}, reach.RealAll(p.Programs), reach.RealAll(reach.GlobAll(reach.Loaders))) {
			grants = append(grants, restrict.Grant{Path: inside(path), Read: true, Exec: true})
		}
	}
	hidden := slices.Clone(v.hidden)
	for i := range hidden {
		hidden[i].Path = inside(hidden[i].Path)
	}
	c := supervise.Of(p)
	c.Dir, c.Alone = inside(p.Dir), true
	return wrapped.Job{Command: c, Grants: grants, Bound: v.bounded, NoExec: v.noExec, Exec: v.exec, Hidden: hidden}
}
