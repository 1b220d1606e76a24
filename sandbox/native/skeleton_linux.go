package native

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A skeleton is the part of a root that every box has: the system, read-only. It is
// made once, by the factory, and boxes get copies of its mounts. The files that it is
// made of are therefore everybody's, and nothing is ever added to them.
type skeleton struct {
	at     string   // where the factory has it
	listed bool     // without programs
	empty  []string // what there is nothing in: a box can have it for itself, or mount there
	bound  []string // host directories that are shown whole
	built  bool
}

func skeletonFor(listed bool) skeleton {
	if listed {
		return skeleton{at: "/only", listed: true}
	}
	return skeleton{at: "/any"}
}

// tiny bounds directories that hold nothing but names.
const tiny = "mode=755,size=64k,nr_inodes=4096"

// build makes the skeleton.
func (k *skeleton) build(s *script) {
	s.doing("make a root")
	s.mkdir(k.at, 0o755)
	s.tmpfs(k.at, 0, "mode=755,size=16m,nr_inodes=16384")
	dirs := reach.SystemDirs
	if k.listed {
		dirs = reach.SystemLibraries
	}
	for _, dir := range dirs {
		k.show(s, dir)
	}
	if k.listed {
		for _, dir := range []string{"/bin", "/sbin"} {
			if to, err := os.Readlink(dir); err == nil { // by which scripts name their interpreter
				s.symlink(to, k.at+dir)
			}
		}
		k.leave(s, reach.RealAll(reach.ProgramDirs)) // a box puts in what is listed
		for _, parent := range []string{"/usr", "/usr/local"} {
			k.leave(s, below(parent))
		}
	}
	s.mkdir(k.at+"/proc", 0o555)
	s.mkdir(k.at+"/tmp", 0o755)
	k.devices(s)
	k.configuration(s)
	k.leave(s, []string{"/var", sshDir})
	s.symlink("../tmp", k.at+"/var/tmp")
	k.leave(s, below("/"))
	s.seal(k.at)
}

// leave makes places for directories and files of the host that are not shown.
func (k *skeleton) leave(s *script, paths []string) {
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || reach.InAny(path, k.bound) || slices.Contains(k.empty, path) || slices.Contains(notEmpty, path) {
			continue
		}
		s.doing("make a place for " + path)
		switch {
		case info.IsDir():
			s.mkdirs(k.at, path)
		case info.Mode().IsRegular():
			s.file(k.at+path, nil)
		default:
			continue
		}
		k.empty = append(k.empty, path)
	}
}

// notEmpty are directories that every box has something in.
var notEmpty = []string{"/dev", "/etc", "/proc", "/sys", "/tmp", "/usr", "/usr/local"}

func below(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}

// show puts a directory of the system in, or the symlink that the host has for it.
func (k *skeleton) show(s *script, dir string) {
	info, err := os.Lstat(dir)
	if err != nil || reach.InAny(dir, k.bound) {
		return
	}
	if to, err := os.Readlink(dir); err == nil {
		if filepath.Dir(dir) == "/" {
			s.symlink(to, k.at+dir)
		}
		return
	}
	if !info.IsDir() {
		return
	}
	s.doing("show " + dir)
	s.mkdirs(k.at, dir)
	s.bind(dir, k.at+dir, readOnly)
	k.bound = append(k.bound, dir)
}

// devices are the harmless ones.
func (k *skeleton) devices(s *script) {
	s.mkdir(k.at+"/dev", 0o755)
	for _, dev := range append(slices.Clip(reach.SystemDevices), "/dev/tty") { // which is a box's own terminal, or none
		s.doing("show " + dev)
		s.file(k.at+dev, nil)
		s.bind(dev, k.at+dev, unix.MOUNT_ATTR_NOSUID|noExec)
	}
	s.mkdir(k.at+"/dev/pts", 0o755)
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "shm": "../tmp"} {
		s.symlink(to, k.at+"/dev/"+name)
	}
}

// own is what a box has in place of the host's: names are asked of the way out, whomever
// the host asks, and none but the box's own is known without asking.
var own = map[string]string{
	"/etc/resolv.conf": "nameserver 127.0.0.1\n",
	"/etc/hosts":       "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
}

// maxCopied bounds files of the system that are copied.
const maxCopied = 4 << 20

// large files are copied by the kernel, where everybody may read them: to bring them along
// in a script takes more time than all else of it.
const large = 16 << 10

// configuration is what libraries ask for: small files as copies, directories as they
// are, symlinks where they lead into the system.
func (k *skeleton) configuration(s *script) {
	s.mkdir(k.at+"/etc", 0o755)
	for path, text := range own {
		s.file(k.at+path, []byte(text))
	}
	for _, path := range reach.GlobAll(reach.SystemFiles) {
		if own[path] != "" {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || strings.HasPrefix(path, "/proc/") {
			continue
		}
		s.doing("show " + path)
		s.mkdirs(k.at, filepath.Dir(path))
		if to, err := os.Readlink(path); err == nil {
			full := to
			if !filepath.IsAbs(to) {
				full = filepath.Join(filepath.Dir(path), to)
			}
			if reach.InAny(full, k.bound) {
				s.symlink(to, k.at+path)
				continue
			}
			if info, err = os.Stat(path); err != nil {
				continue
			}
		}
		switch {
		case info.IsDir():
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue
			}
			s.mkdirs(k.at, path)
			s.bind(real, k.at+path, readOnly)
			k.bound = append(k.bound, path)
		case info.Mode().IsRegular() && info.Size() > large && info.Size() <= maxCopied && info.Mode()&0o004 != 0:
			if real, err := filepath.EvalSymlinks(path); err == nil {
				s.copied(real, k.at+path, maxCopied)
			}
		case info.Mode().IsRegular() && info.Size() <= maxCopied:
			if text, err := os.ReadFile(path); err == nil {
				s.file(k.at+path, text)
			}
		}
	}
}
