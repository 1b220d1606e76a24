package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
)

const (
	day     = 24 * time.Hour
	maxDays = 3650
)

// UnmarshalText reads a duration of at least a second and at most ten years.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	var v time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		v = time.Duration(n) * day
	} else {
		v, err = time.ParseDuration(s)
	}
	if err != nil || v < time.Second || v > maxDays*day {
		return fmt.Errorf("%q is not a duration of 1s to %dd; write 90s, 15m, 24h or 7d", s, maxDays)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

var backends = []string{"auto", "native", "bwrap", "firejail", "seatbelt", "subprocess", "docker"}

// Drivers are the sandbox drivers that can be named.
func Drivers() []string {
	return slices.DeleteFunc(slices.Clone(backends), func(s string) bool { return s == "auto" })
}

// looseBackends keep no protected names from commands that may write around them.
var looseBackends = []Backend{"bwrap", "firejail", "seatbelt", "subprocess"}

var laterBackends = []string{"k8s", "wasm"}

// UnmarshalText takes the drivers this version has.
func (k *Backend) UnmarshalText(b []byte) error {
	s := string(b)
	if slices.Contains(laterBackends, s) {
		return fmt.Errorf("backend %q is not built into this version of writ; there are %s", s, strings.Join(backends, ", "))
	}
	if !slices.Contains(backends, s) {
		return &action.UnknownError{What: "backend", Got: s, Known: backends}
	}
	*k = Backend(s)
	return nil
}

// UnmarshalText takes the three strategies.
func (s *Strategy) UnmarshalText(b []byte) error {
	return word(s, "strategy", b, "per-agent", "per-task", "per-call")
}

// UnmarshalText takes the three classes.
func (c *Class) UnmarshalText(b []byte) error {
	return word(c, "egress class", b, "none", "read_only", "write")
}

// Least is the class that a tool has at least: none where nothing is written.
func (c Class) Least() writ.Class {
	switch c {
	case "", "none":
		return writ.ClassNone
	case "read_only":
		return writ.ClassReadOnly
	}
	return writ.ClassWrite
}

// defaults is the configuration of somebody who wrote nothing.
func defaults() *File {
	f := &File{
		Listen:     Listen{Address: "127.0.0.1:7323"},
		Workspaces: map[string]Workspace{},
		Agents:     map[string]Agent{},
		ToolAccess: ToolAccess{Levels: map[access.Level]Level{}, RestrictedCommands: slices.Clone(restrictedCommands)},
		Autonomy:   Autonomy{Default: access.Semi, Presets: map[access.Autonomy]Preset{}},
		Sandboxing: Sandboxing{
			DefaultBackend: "auto",
			Subprocess:     Subprocess{TimeoutSeconds: 30, KillGraceSeconds: 5, WorkspaceOnly: true, RestrictedPath: true},
			Docker:         dockerDefaults(),
			Lifecycle:      Lifecycle{Strategy: "per-agent", Grace: Duration(30 * time.Second), Idle: Duration(5 * time.Minute)},
		},
		Approvals: Approvals{
			Expiry: Duration(24 * time.Hour), Timeout: TimeoutDeny, FourEyes: FourEyesDangerous, Quorum: 1, MaxPending: 20,
			Rate: Rate{writ.Quota{Max: 60, Per: writ.PerWindow, Window: time.Hour}},
		},
		Disclosure:  disclosureDefaults(),
		LogShipping: logShippingDefaults(),
	}
	for _, l := range access.Levels() {
		f.ToolAccess.Levels[l] = Level{}
	}
	for _, a := range access.Autonomies() {
		f.Autonomy.Presets[a] = Preset{}
	}
	return f
}

// restrictedCommands is what terminal: restricted_commands runs. coreutils and
// findutils stand for the programs of those packages.
var restrictedCommands = []string{
	"coreutils", "findutils", "grep", "rg", "sed", "awk", "diff", "patch", "git", "jq",
	"make", "go", "node", "npm", "python3", "pytest", "cargo",
}

// packages are words of restricted_commands that stand for several programs.
var packages = map[string][]string{
	"coreutils": strings.Fields(`arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit cut date dd df
		dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls
		md5sum mkdir mkfifo mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink
		realpath rm rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum
		sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami yes [`),
	"findutils": {"find", "xargs"},
	"grep":      {"grep", "egrep", "fgrep"},
	"awk":       {"awk", "gawk", "mawk"},
	"diff":      {"diff", "cmp", "diff3", "sdiff"},
	"go":        {"go", "gofmt"},
	"make":      {"make", "sh"}, // which runs what a makefile says
	"npm":       {"npm", "npx", "sh"},
}

// Programs expands restricted_commands into program names.
func Programs(commands []string) []string {
	var out []string
	for _, c := range commands {
		if ps, ok := packages[c]; ok {
			out = append(out, ps...)
		} else {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SystemPath is where programs are looked for.
var SystemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func (c *Config) programPath() []string {
	return slices.Concat(SystemPath, c.File.Sandboxing.Subprocess.ExtraSafePathPrefixes)
}

// hasProgram says whether a word of restricted_commands is a program of this machine, or
// stands for several.
func (c *Config) hasProgram(word string) bool {
	_, several := packages[word]
	return several || slices.ContainsFunc(c.programPath(), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, word))
		return err == nil && info.Mode().IsRegular()
	})
}
