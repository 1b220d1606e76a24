package reach

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Home and temporary files are the box's own, always.
const (
	PrivateTmp  = "/tmp"
	PrivateHome = "/tmp/home"
)

// envAllow is what a box gets of the daemon's environment.
var envAllow = patterns([]string{"HOME", "PATH", "USER", "LANG", "LC_*", "TERM", "TZ", "TMPDIR", "TEMP", "TMP"})

// envSecret and envCode beat every allowance: names that carry secrets, and names that make
// some interpreter or loader run code of the caller's choice. The former come through all
// the same where an operator gave that one program the value.
var envSecret = patterns([]string{"*KEY*", "*SECRET*", "*TOKEN*", "*PASSWORD*", "*CREDENTIAL*", "*PRIVATE*"})

var envCode = patterns([]string{
	"LD_*", "DYLD_*", "PYTHONPATH", "PYTHONSTARTUP", "NODE_PATH", "NODE_OPTIONS", "RUBYLIB", "RUBYOPT",
	"PERL5LIB", "PERL5OPT", "BASH_ENV", "ENV", "GIT_*", "JAVA_TOOL_OPTIONS",
})

// SystemPath is where programs of the system are. Nothing else is in a box's
// PATH unless the operator named its prefix.
var SystemPath = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// filterEnv is the environment of a box: from what the daemon has, the names of
// the allowlist and of the confinement; then extra and what was given on top. Everything
// passes the denylist; a name that is not an identifier is dropped, since a shell may take
// it for an exported function.
func filterEnv(daemon, named []string, extra, given map[string]string, o Options) []string {
	allow := envAllow
	if o.EnvAllow != nil {
		allow = patterns(o.EnvAllow)
	}
	env := map[string]string{}
	for _, kv := range daemon {
		name, value, _ := strings.Cut(kv, "=")
		if matchAny(allow, name) || slices.Contains(named, name) {
			env[name] = value
		}
	}
	maps.Copy(env, extra)
	maps.DeleteFunc(env, func(name, _ string) bool { return matchAny(envSecret, strings.ToUpper(name)) })
	maps.Copy(env, given)
	env["PATH"] = filterPath(env["PATH"], o)
	maps.Copy(env, map[string]string{"HOME": PrivateHome, "TMPDIR": PrivateTmp, "TEMP": PrivateTmp, "TMP": PrivateTmp})
	var out []string
	for name, value := range env {
		if identifier(name) && !matchAny(envCode, strings.ToUpper(name)) && !strings.ContainsRune(value, 0) {
			out = append(out, name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// NotGiven says why a variable would not come through to a box, whoever gives it; empty:
// it would.
func NotGiven(name string) string {
	if matchAny(envSecret, strings.ToUpper(name)) {
		return "such names carry secrets"
	}
	return NeverGiven(name)
}

// NeverGiven says why a variable would not come through to a box also where its operator
// gave it; empty: it would.
func NeverGiven(name string) string {
	switch {
	case slices.Contains([]string{"HOME", "TMPDIR", "TEMP", "TMP"}, name):
		return "a box has its own"
	case !identifier(name):
		return "it is no name of a variable"
	case matchAny(envCode, strings.ToUpper(name)):
		return "such names carry code that some program would run"
	}
	return ""
}

// filterPath keeps of list the system's directories and what lies at or below a
// prefix, in their order, and puts prefixes that are missing at the end.
func filterPath(list string, o Options) string {
	if o.UnsafeAnyPath && list != "" {
		return list
	}
	var keep []string
	add := func(dir string) {
		if !slices.Contains(keep, dir) && !strings.Contains(dir, ":") {
			keep = append(keep, dir)
		}
	}
	for _, dir := range filepath.SplitList(list) {
		dir = filepath.Clean(dir)
		if slices.Contains(SystemPath, dir) || slices.ContainsFunc(o.PathPrefixes, func(p string) bool { return Within(dir, p) }) {
			add(dir)
		}
	}
	if len(keep) == 0 {
		keep = slices.Clone(SystemPath)
	}
	for _, p := range o.PathPrefixes {
		if filepath.IsAbs(p) {
			add(filepath.Clean(p))
		}
	}
	return strings.Join(keep, ":")
}

// Within reports whether the cleaned absolute path p is dir or lies below it.
func Within(p, dir string) bool {
	if !filepath.IsAbs(p) || !filepath.IsAbs(dir) {
		return false
	}
	dir = filepath.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// A pattern is one of path.Match, taken apart: this runs for every call, on every variable.
type pattern struct {
	text          string // between the stars, or the whole
	before, after bool   // there is a star
	odd           bool   // it is of another kind
}

func patterns(all []string) []pattern {
	out := make([]pattern, len(all))
	for i, p := range all {
		inner := strings.TrimSuffix(strings.TrimPrefix(p, "*"), "*")
		out[i] = pattern{inner, strings.HasPrefix(p, "*"), strings.HasSuffix(p, "*"), false}
		if strings.ContainsAny(inner, `*?[\`) || inner == "" {
			out[i] = pattern{text: p, odd: true}
		}
	}
	return out
}

func (p pattern) matches(name string) bool {
	switch {
	case p.odd:
		ok, err := path.Match(p.text, name)
		return ok && err == nil
	case p.before && p.after:
		return strings.Contains(name, p.text)
	case p.before:
		return strings.HasSuffix(name, p.text)
	case p.after:
		return strings.HasPrefix(name, p.text)
	}
	return name == p.text
}

func matchAny(patterns []pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(name) })
}

func identifier(name string) bool {
	for i, c := range name {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
