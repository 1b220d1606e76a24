package firejail

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// A profile is what firejail is told, a line each, in the order in which it does it.
type profile struct {
	plan   *reach.Plan
	lines  []string
	hidden []wrapped.File
}

// kernels are where the kernel has file systems of its own: firejail has its own ways
// with them, and Landlock grants nothing in them but single files.
var kernels = []string{"/proc", "/sys", "/dev", "/run/firejail"}

// always is what holds for every box.
var always = []string{"net none", "ipc-namespace", "noroot", "caps.drop all", "nonewprivs", "seccomp", "nogroups", "private-dev", "deterministic-shutdown"}

// newProfile works it out. What firejail cannot be told, or cannot do, is an error.
func newProfile(p *reach.Plan) (*profile, error) {
	f := &profile{plan: p, lines: slices.Clone(always)}
	err := f.temporary()
	if err == nil {
		err = f.sealed()
	}
	if err == nil {
		err = f.writable()
	}
	if err == nil {
		err = f.hide()
	}
	return f, err
}

// say adds a line about a path. Firejail expands globs, macros and a home directory in
// them; there is no way to quote.
func (f *profile) say(verb, path string) error {
	if strings.ContainsAny(path, "*?[]{}$~,\\\"'`#%") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		strings.TrimSpace(path) != path || strings.Contains(path, "  ") {
		return fmt.Errorf("driver firejail cannot name %q; rename it, or use another driver", path)
	}
	f.lines = append(f.lines, verb+" "+path)
	return nil
}

// temporary makes /tmp the box's own, with the roots that lie in it.
func (f *profile) temporary() error {
	below := false
	for _, p := range slices.Concat(f.plan.Write, f.plan.Read) {
		switch dir := reach.PrivateParent(p); dir {
		case "":
		case reach.PrivateTmp:
			below = true
			if err := f.say("whitelist", p); err != nil {
				return err
			}
		default:
			return fmt.Errorf("driver firejail cannot show %s, since %s is the box's own; use a directory elsewhere", p, dir)
		}
	}
	if !below {
		f.lines = append(f.lines, "private-tmp")
	}
	return nil
}

// sealed makes every mount read-only.
func (f *profile) sealed() error {
	now, err := mounted.Now()
	if err != nil {
		return err
	}
	home, err := homeOf(f.plan.UID)
	if err != nil {
		return err
	}
	at := slices.DeleteFunc(now.Points(), func(path string) bool {
		return reach.InAny(path, kernels) || slices.Contains(reach.PrivateDirs, path) || reach.PrivateParent(path) != ""
	})
	at = append(at, home) // which firejail mounts on its own, as it does roots in /tmp
	at = append(at, slices.DeleteFunc(slices.Clone(f.plan.Read), func(path string) bool { return reach.PrivateParent(path) == "" })...)
	slices.Sort(at)
	for _, path := range slices.Compact(at) {
		if _, err := os.Stat(path); err != nil {
			continue // nobody inside gets there either
		}
		if err := f.say("read-only", path); err != nil {
			return err
		}
	}
	return nil
}

// writable lets what may be written be written, and with a list of programs keeps
// programs out of it.
func (f *profile) writable() error {
	for _, p := range f.plan.Write {
		if err := f.say("read-write", p); err != nil {
			return err
		}
	}
	if !f.plan.Listed {
		return nil
	}
	noExec := slices.Concat(reach.PrivateDirs, f.plan.Write)
	for _, p := range f.plan.Read {
		within := func(s string) bool { return reach.Within(p, s) || reach.Within(s, p) }
		if _, err := os.Lstat(p); err == nil && !slices.ContainsFunc(reach.RealAll(reach.SystemDirs), within) {
			noExec = append(noExec, p)
		}
	}
	for _, p := range noExec {
		if err := f.say("noexec", p); err != nil {
			return err
		}
	}
	for _, p := range reach.RealAll(f.plan.Programs) {
		if reach.InAny(p, noExec) {
			return fmt.Errorf("driver firejail cannot let %s be executed, since nothing in its directory may be; install it elsewhere", p)
		}
	}
	return nil
}

// hide covers what is out of reach whatever else can be seen.
func (f *profile) hide() (err error) {
	f.hidden, err = wrapped.ToHide(f.plan, f.plan.Hide)
	if err != nil {
		return err
	}
	for _, h := range f.hidden {
		if err := f.say("blacklist", h.Path); err != nil {
			return err
		}
	}
	return nil
}

// homeOf is the home directory of a user, as firejail finds it, or why that user cannot
// use it.
func homeOf(uid int) (string, error) {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "", fmt.Errorf("driver firejail takes only users of the password file, and %d is none; "+otherwise, uid)
	}
	if u.Username == "nobody" {
		return "", errors.New("driver firejail does not take user nobody; " + otherwise)
	}
	home, err := filepath.EvalSymlinks(u.HomeDir)
	if err != nil {
		return "", fmt.Errorf("driver firejail needs the home directory of user %s, %s; create it", u.Username, u.HomeDir)
	}
	return home, nil
}

const otherwise = "run the daemon as an ordinary user, or use driver native"
