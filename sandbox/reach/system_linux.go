package reach

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SystemDirs are what programs are made of. With a list of programs,
// SystemLibraries stand in for them.
var SystemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

var SystemLibraries = []string{
	"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
	"/usr/share", "/usr/include", "/usr/local/lib", "/usr/local/lib64", "/usr/local/share", "/usr/local/include", "/usr/local/etc",
}

// ProgramDirs hold programs. With a list of programs, nothing in them can be
// read unless it is listed.
var ProgramDirs = append([]string{"/usr/games", "/usr/local/games", "/usr/libexec", "/usr/local/libexec", "/usr/local/go", "/snap"}, SystemPath...)

// SystemFiles are readable in every box: configuration without secrets that
// libraries ask for, and what the kernel says of the machine as a whole.
var SystemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/gai.conf",
	"/etc/protocols", "/etc/services", "/etc/networks", "/etc/rpc", "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf",
	"/etc/os-release", "/etc/debian_version", "/etc/alpine-release", "/etc/redhat-release", "/etc/lsb-release",
	"/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust", "/etc/crypto-policies", "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc",
	"/etc/inputrc", "/etc/terminfo", "/etc/mime.types", "/etc/magic", "/etc/magic.mime", "/etc/shells", "/etc/xattr.conf",
	"/etc/gitconfig", "/etc/gitattributes", "/etc/perl", "/etc/fonts", "/etc/vim", "/etc/manpath.config", "/etc/groff", "/etc/java", "/etc/lsb-base-logging.sh",
	"/etc/java-*", "/etc/python3*", "/etc/php",
	"/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version", "/proc/filesystems", "/proc/vmstat",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/kernel/version", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/ngroups_max",
	"/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/random", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count",
	"/proc/sys/fs/file-max", "/proc/sys/fs/pipe-max-size", "/proc/sys/net/core/somaxconn",
	// Of the command's own process; not /proc/self/net, which is the host's.
	"/proc/self/maps", "/proc/self/smaps", "/proc/self/status", "/proc/self/stat", "/proc/self/statm", "/proc/self/cmdline", "/proc/self/comm",
	"/proc/self/cgroup", "/proc/self/limits", "/proc/self/auxv", "/proc/self/environ", "/proc/self/fd", "/proc/self/fdinfo",
	"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage",
}

// SystemDevices are in every box.
var SystemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Loaders match the ELF loaders of glibc and musl. The kernel opens them as it
// opens a program, so a dynamic program needs the right to execute its loader.
var Loaders = []string{"/lib/ld-*.so.*", "/lib64/ld-*.so.*", "/lib32/ld-*.so.*", "/lib/*/ld-linux*.so.*"}

// GlobAll is every existing path that a pattern matches.
func GlobAll(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		if !strings.ContainsAny(p, "*?[") {
			out = append(out, p)
			continue
		}
		found, _ := filepath.Glob(p) // its only error is a bad pattern
		out = append(out, found...)
	}
	return out
}

// Interpreters are the programs that the #! lines of a script name: its own, that
// of its interpreter if that is a script again, and so on.
func Interpreters(path string) []string {
	var out []string
	for range 4 { // the kernel goes no deeper
		next := interpreter(path)
		if !filepath.IsAbs(next) {
			break
		}
		out, path = append(out, next), next
	}
	return out
}

func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		if words := strings.Fields(rest); len(words) > 0 {
			return words[0]
		}
	}
	return ""
}

// Without is root, or what lies below it so that nothing at or below a cut is
// included. Symlinks are left out: they lead to what has a path of its own.
func Without(root string, cut []string) []string {
	if slices.ContainsFunc(cut, func(c string) bool { return Within(root, c) }) {
		return nil
	}
	if !slices.ContainsFunc(cut, func(c string) bool { return Within(c, root) }) {
		return []string{root}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			out = append(out, Without(filepath.Join(root, e.Name()), cut)...)
		}
	}
	return out
}
