package access

import (
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ/action"
)

// vocabulary is the one meaning of each word, in the gate. Words whose tools
// belong to other runtimes (subagent, notebook) select nothing here.
var vocabulary = map[string][]string{
	"fs_read":      {"read_file", "search_files", "stat"},
	"fs_list":      {"list_directory"},
	"fs_write":     {"write_file", "edit_file", "delete_file", "move_file"},
	"fs_*":         {"read_file", "search_files", "stat", "list_directory", "write_file", "edit_file", "delete_file", "move_file"},
	"execute_bash": {"shell_command", "shell_job", "code_runner"},
	"web_fetch":    {"web_fetch", "http_request", "html_extract"},
	"web_search":   {"web_search"},
	"discovery":    Discovery,
	"@builtin":     Discovery,
	"subagent":     {},
	"notebook":     {},
}

// Discovery tools are permitted to every agent; a list that denies one does not load.
var Discovery = []string{"list_tools", "load_tool", "load_tool_resource"}

// Words lists the vocabulary, for suggestions.
func Words() []string {
	words := []string{"*"}
	for w := range vocabulary {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// Entry is one entry of an allow or deny list.
type Entry struct {
	Text   string
	names  []string // a word of the vocabulary
	glob   string   // a tool name or a glob over names, in lower case
	server string   // @server: every tool of that upstream
}

// ParseEntry reads a list entry: a tool name, a glob over names, @server,
// @server:tool, or a word of the vocabulary. Letter case does not matter; there
// is no other leniency.
func ParseEntry(text string) (Entry, error) {
	s := strings.ToLower(text)
	e := Entry{Text: text}
	if names, ok := vocabulary[s]; ok {
		e.names = names
		return e, nil
	}
	unknown := &action.UnknownError{
		What: "list entry", Got: text, Known: Words(), Form: "a tool's name, a glob, @server, @server:tool, or a word such as fs_read",
	}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		server, tool, one := strings.Cut(rest, ":")
		if !validServer(server) || one && !validName(tool) {
			return Entry{}, unknown
		}
		if e.server = server; one {
			e.server, e.glob = "", prefix(server)+tool
		}
		return e, nil
	}
	if _, err := path.Match(s, "x"); err != nil || !validName(strings.Map(dropGlob, s)) && s != "*" {
		return Entry{}, unknown
	}
	e.glob = s
	return e, nil
}

// prefix is how the names of a server's tools begin. writ's own operations are
// tools of the server writ.
func prefix(server string) string {
	if server == "writ" {
		return "writ_"
	}
	return server + "__"
}

// validServer refuses names that would run into the separator: @a must not select
// the tools of a server a__b, nor of one called a_. @builtin is a word, and has no
// tools to pick from.
func validServer(s string) bool {
	return validName(s) && !strings.Contains(s, "__") && !strings.HasSuffix(s, "_") && s != "builtin"
}

func dropGlob(r rune) rune {
	if strings.ContainsRune("*?[]^-", r) {
		return -1
	}
	return r
}

func validName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// Match reports whether the entry selects a tool. Names compare case-insensitively.
func (e Entry) Match(tool string) bool {
	tool = strings.ToLower(tool)
	switch {
	case e.names != nil:
		return slices.Contains(e.names, tool)
	case e.server == "writ": // not a tool of some server called writ_x
		return strings.HasPrefix(tool, prefix("writ")) && !strings.Contains(tool, "__")
	case e.server != "":
		return strings.HasPrefix(tool, prefix(e.server))
	}
	ok, _ := path.Match(e.glob, tool)
	return ok
}

// Literal is the tool name an entry spells out, empty for globs, words and servers.
func (e Entry) Literal() string {
	if e.names != nil || e.server != "" || strings.ContainsAny(e.glob, "*?[") {
		return ""
	}
	return e.glob
}

// List is an allow or deny list with where each entry was written.
type List []Set[Entry]

// Match returns the first entry that selects the tool.
func (l List) Match(tool string) (Set[Entry], bool) {
	for _, e := range l {
		if e.V.Match(tool) {
			return e, true
		}
	}
	return Set[Entry]{}, false
}
