package protect

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// harmless are the settings of git that neither run nor load anything, nor point git at
// another place. What git adds to its many settings is not harmless until it is listed
// here. A star stands for any subsection.
var harmless = map[string]func(string) bool{
	"core.repositoryformatversion": anything, "core.filemode": anything, "core.bare": anything, "core.logallrefupdates": anything,
	"core.ignorecase": anything, "core.precomposeunicode": anything, "core.symlinks": anything, "core.autocrlf": anything, "core.eol": anything,
	"core.safecrlf": anything, "core.compression": anything, "core.quotepath": anything, "core.sparsecheckout": anything, "core.sparsecheckoutcone": anything,
	"core.untrackedcache": anything, "core.preloadindex": anything, "core.commitgraph": anything, "core.multipackindex": anything, "core.protecthfs": anything, "core.protectntfs": anything,
	"extensions.objectformat": anything, "extensions.refstorage": anything, "extensions.partialclone": anything, "extensions.worktreeconfig": anything, "extensions.relativeworktrees": anything,
	"user.name": anything, "user.email": anything, "user.useconfigonly": anything, "init.defaultbranch": anything,
	"branch.*.remote": remoteName, "branch.*.merge": anything, "branch.*.rebase": anything, "branch.*.description": anything, "branch.*.pushremote": remoteName,
	"branch.autosetuprebase": anything, "branch.autosetupmerge": anything,
	"remote.*.url": plainURL, "remote.*.pushurl": plainURL, "remote.*.fetch": anything, "remote.*.push": anything, "remote.*.tagopt": anything,
	"remote.*.prune": anything, "remote.*.mirror": anything, "remote.*.promisor": anything, "remote.*.partialclonefilter": anything, "remote.pushdefault": remoteName,
	"submodule.active": anything, "submodule.recurse": anything, "submodule.*.url": plainURL, "submodule.*.active": anything, "submodule.*.path": relativePath,
	"submodule.*.branch": anything, "submodule.*.ignore": anything, "submodule.*.shallow": anything, "submodule.*.fetchrecursesubmodules": anything,
	"submodule.*.update": plainUpdate,
	"pull.rebase":        anything, "pull.ff": anything, "push.default": anything, "push.autosetupremote": anything, "fetch.prune": anything, "merge.ff": anything,
	"merge.conflictstyle": anything, "rebase.autostash": anything, "rebase.autosquash": anything, "gc.auto": anything, "color.ui": anything, "commit.gpgsign": isFalse, "tag.gpgsign": isFalse,
}

func anything(string) bool     { return true }
func isFalse(v string) bool    { return v == "false" }
func remoteName(v string) bool { return v == "." || plainURL(v) }

// plainURL refuses what git takes for an option, transports that are programs (ext::), and
// quotes and comments within, which git takes out after we have looked.
func plainURL(v string) bool {
	return v != "" && !strings.HasPrefix(v, "-") && !strings.Contains(v, "::") && !strings.ContainsAny(v, `"\#;`)
}

func relativePath(v string) bool {
	return plainURL(v) && !strings.HasPrefix(v, "/") && !slices.Contains(strings.Split(v, "/"), "..")
}

// plainUpdate: an update that begins with an exclamation mark is a command.
func plainUpdate(v string) bool {
	return slices.Contains([]string{"checkout", "merge", "rebase", "none"}, v)
}

var (
	sectionLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\[\s*([A-Za-z0-9-]+)(?:\s+"((?:[^"\\]|\\["\\])*)")?\s*\]\s*(?:[#;].*)?$`)
	})
	keyLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?))?\s*$`) })
)

// risky lists the settings of a file in git's format that are not known to be harmless, as
// "key=value". A line that is not as simple as git itself writes it counts as one.
func risky(text string) []string {
	var out []string
	section, known := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		bare := strings.TrimSpace(line)
		if bare == "" || bare[0] == '#' || bare[0] == ';' {
			continue
		}
		if m := sectionLine().FindStringSubmatch(line); m != nil {
			section, known = strings.ToLower(m[1])+".", true
			if section == "remote." && strings.Contains(m[2], ":") { // git takes a URL for a remote of that name first
				out = append(out, bare)
			}
			if strings.Contains(line, `"`) {
				section += "*."
			}
			continue
		}
		m := keyLine().FindStringSubmatch(line)
		if m == nil || !known || strings.HasSuffix(line, `\`) || strings.ContainsAny(line, "\x00\r") {
			out = append(out, bare)
			continue
		}
		key, value := section+strings.ToLower(m[1]), unquote(m[2])
		if ok := harmless[key]; ok == nil || !ok(value) {
			out = append(out, key+"="+value)
		}
	}
	return out
}

// unquote takes the quotes from around a value.
func unquote(v string) string {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// plainAttributes reports whether a .gitattributes file asks for nothing that a program
// would be run for: no filters, and drivers for diff and merge only of those in git itself.
func plainAttributes(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '"' || strings.HasPrefix(line, "[attr]") || strings.ContainsRune(line, 0) {
			return false
		}
		for _, attr := range strings.Fields(line)[1:] {
			if !plainAttribute(attr) {
				return false
			}
		}
	}
	return true
}

var (
	attrNames = []string{"text", "eol", "crlf", "binary", "diff", "merge", "export-ignore", "export-subst", "whitespace", "ident", "encoding", "working-tree-encoding", "conflict-marker-size", "delta"}
	diffs     = []string{"ada", "bash", "bibtex", "cpp", "csharp", "css", "dts", "elixir", "fortran", "fountain", "golang", "html", "java", "kotlin", "markdown", "matlab", "objc", "pascal", "perl", "php", "python", "ruby", "rust", "scheme", "tex"}
)

func plainAttribute(attr string) bool {
	name, value, set := strings.Cut(strings.TrimLeft(attr, "-!"), "=")
	switch {
	case strings.HasPrefix(name, "linguist-") || strings.HasPrefix(name, "gitlab-"):
		return true
	case !slices.Contains(attrNames, name):
		return false
	case name == "diff" && set:
		return slices.Contains(diffs, value)
	case name == "merge" && set:
		return value == "text" || value == "binary" || value == "union"
	}
	return true
}
