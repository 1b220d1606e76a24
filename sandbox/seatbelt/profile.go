package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Plan is what one box may touch. Paths are absolute, clean and without symlinks: rules
// are about what a path leads to. The zero value reaches the system alone.
type Plan struct {
	Read, Write []string // files and directories, with all below
	Hide        []string // out of reach whatever Read and Write say
	Listed      bool     // only Programs run
	Programs    []string // files, or directories with all below
	Private     string   // a directory of the box's own, for its temporary files and home
	Config      []string // names that stay read-only below Write
	Git         []string // the same, directly in a .git
}

// System is what programs are made of.
var system = []string{
	"/bin", "/sbin", "/usr", "/System", "/Library/Apple", "/Library/Developer/CommandLineTools", "/private/var/db/dyld", "/private/var/db/timezone",
}

// libraries stand in for system where only listed programs run.
var libraries = []string{
	"/usr/lib", "/usr/share", "/System", "/Library/Apple/System/Library", "/private/var/db/dyld", "/private/var/db/timezone",
}

var (
	systemFiles = []string{
		"/private/etc/passwd", "/private/etc/group", "/private/etc/hosts", "/private/etc/services", "/private/etc/protocols", "/private/etc/localtime",
		"/private/etc/shells", "/private/etc/profile", "/private/etc/bashrc", "/private/etc/zshenv", "/private/etc/ssl/cert.pem", "/private/etc/ssl/openssl.cnf",
	}
	systemLinks = []string{"/etc", "/tmp", "/var"} // to where the above really are
	devices     = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}
	// services that libraries ask before main begins: users and groups, the temporary
	// directory of a user, changes of the time zone.
	services = []string{
		"com.apple.bsd.dirhelper", "com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
	}
	// kernelValues say what machine this is, and nothing of other processes, as
	// kern.procargs2 would.
	kernelValues = []string{
		"kern.argmax", "kern.hostname", "kern.maxfilesperproc", "kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.ostype", "kern.osvariant_status",
		"kern.osversion", "kern.secure_kernel", "kern.usrstack64", "kern.version", "sysctl.proc_cputype", "sysctl.proc_native", "sysctl.proc_translated", "vm.loadavg",
	}
	kernelPrefixes = []string{"hw.", "machdep.cpu."}
)

// Profile is the plan in the language of sandbox-exec.
func Profile(p Plan) (string, error) {
	for _, at := range slices.Concat(p.Read, p.Write, p.Hide, p.Programs, []string{p.Private}) {
		if err := check(at); err != nil {
			return "", err
		}
	}
	w := &writer{}
	w.line("(version 1)")
	w.line("(deny default)")
	w.processes(p)
	w.machine()
	w.files(p)
	w.protected(p)
	// A set-id bit lends this user's rights to whoever runs the file later.
	w.line("(deny file-write-setugid)")
	w.hidden(p)
	w.line("(deny network*)")
	return w.String(), nil
}

type writer struct{ strings.Builder }

func (w *writer) line(s string) { w.WriteString(s + "\n") }

// rule writes one rule; without a filter it would be about everything, so there is none.
func (w *writer) rule(verdict, operations string, filters []string) {
	if len(filters) == 0 {
		return
	}
	w.line("(" + verdict + " " + operations)
	for _, f := range filters {
		w.line("  " + f)
	}
	w.line(")")
}

func (w *writer) processes(p Plan) {
	w.line("(allow process-fork)")
	w.line("(allow process-info* (target same-sandbox))")
	w.line("(allow signal (target same-sandbox))")
	if p.Listed {
		w.rule("allow", "process-exec* file-read* file-map-executable", subpaths(p.Programs))
		return
	}
	w.rule("allow", "process-exec* file-map-executable", subpaths(slices.Concat(system, p.Read, p.Write, []string{p.Private})))
}

func (w *writer) machine() {
	w.rule("allow", "mach-lookup", each("global-name", services))
	w.rule("allow", "sysctl-read", slices.Concat(each("sysctl-name", kernelValues), each("sysctl-name-prefix", kernelPrefixes)))
}

func (w *writer) files(p Plan) {
	base := system
	if p.Listed {
		base = libraries
		w.rule("allow", "file-map-executable", subpaths(libraries))
	}
	w.rule("allow", "file-read*", slices.Concat(subpaths(base), each("literal", systemFiles), each("literal", []string{"/"}), subpaths(p.Read)))
	w.rule("allow", "file-read-metadata", each("literal", append(ancestors(slices.Concat(base, systemFiles, devices, p.Programs, p.Read, p.Write, []string{p.Private})), systemLinks...)))
	w.rule("allow", "file-read* file-write-data file-ioctl", each("literal", devices))
	w.rule("allow", "file-read* file-write*", subpaths(append(slices.Clone(p.Write), p.Private)))
}

// protected keeps configuration of other programs read-only, whatever the case of its name:
// file systems here ignore that. A .git cannot be renamed to get at what is in it.
func (w *writer) protected(p Plan) {
	var config, git []string
	for _, root := range p.Write {
		in := "^" + literal(strings.TrimSuffix(root, "/")) + "/(.*/)?"
		for _, name := range p.Config {
			config = append(config, "(regex "+quote(in+folded(name)+"(/|$)")+")")
		}
		if len(p.Git) == 0 {
			continue
		}
		git = append(git, "(regex "+quote(in+folded(".git")+"$")+")")
		for _, name := range p.Git {
			config = append(config, "(regex "+quote(in+folded(".git")+"/"+folded(name)+"(/|$)")+")")
		}
	}
	w.rule("deny", "file-write*", config)
	w.rule("deny", "file-write-unlink", git)
	w.rule("allow", "file-write*", subpaths(p.named()))
}

// named are the roots that a policy names although they are protected.
func (p Plan) named() []string {
	var out []string
	for _, root := range p.Write {
		before := ""
		for part := range strings.SplitSeq(strings.ToLower(root), "/") {
			if slices.Contains(p.Config, part) || before == ".git" && slices.Contains(p.Git, part) {
				out = append(out, root)
				break
			}
			before = part
		}
	}
	return out
}

// hidden takes Hide out of reach. Rules are about paths, so the directories that it is in
// cannot be renamed either.
func (w *writer) hidden(p Plan) {
	var above []string
	for _, at := range ancestors(p.Hide) {
		if slices.ContainsFunc(p.Write, func(root string) bool { return root == "/" || at == root || strings.HasPrefix(at, root+"/") }) {
			above = append(above, at)
		}
	}
	w.rule("deny", "file-write-unlink", each("literal", above))
	w.rule("deny", "file* process-exec*", subpaths(p.Hide))
}

func subpaths(paths []string) []string { return each("subpath", paths) }

func each(filter string, values []string) []string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprintf("(%s %s)", filter, quote(v)))
	}
	return out
}

// ancestors are the directories above paths: programs look at each on their way.
func ancestors(paths []string) []string {
	var out []string
	for _, p := range paths {
		for at := path.Dir(p); at != "/"; at = path.Dir(at) {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
