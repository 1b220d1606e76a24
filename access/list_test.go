package access

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ/action"
)

// every is each tool that a word stands for, and others that none does.
var every = strings.Fields(`read_file search_files stat list_directory write_file edit_file delete_file move_file shell_command shell_job
	code_runner web_fetch http_request html_extract web_search list_tools load_tool load_tool_resource git_push writ_stop writ_agents github__issue
	github__pull git__hub writ_x__t writ__t`)

func TestVocabulary(t *testing.T) {
	want := map[string]string{ // §14.1, in the gate
		"fs_read":      "read_file search_files stat",
		"fs_list":      "list_directory",
		"fs_write":     "write_file edit_file delete_file move_file",
		"fs_*":         "read_file search_files stat list_directory write_file edit_file delete_file move_file",
		"execute_bash": "shell_command shell_job code_runner",
		"web_fetch":    "web_fetch http_request html_extract",
		"web_search":   "web_search",
		"subagent":     "",
		"notebook":     "",
		"discovery":    "list_tools load_tool load_tool_resource",
		"@builtin":     "list_tools load_tool load_tool_resource",
		"*":            strings.Join(every, " "),
	}
	for word, tools := range want {
		for _, spelt := range []string{word, strings.ToUpper(word)} {
			if got := selected(t, spelt); got != tools {
				t.Errorf("%s is %s, want %s", spelt, got, tools)
			}
		}
	}
	for _, w := range Words() {
		if _, ok := want[w]; !ok {
			t.Errorf("%s is a word and not in the table", w)
		}
	}
	if len(Words()) != len(want) {
		t.Errorf("words %v", Words())
	}
}

func selected(t *testing.T, entry string) string {
	t.Helper()
	e, err := ParseEntry(entry)
	if err != nil {
		t.Errorf("%s: %v", entry, err)
	}
	if e.Text != entry {
		t.Errorf("%s shows as %s", entry, e.Text)
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(every), func(s string) bool { return !e.Match(s) }), " ")
}

func TestEntries(t *testing.T) {
	for entry, want := range map[string]string{
		"read_file":       "read_file",
		"READ_File":       "read_file",
		"read_*":          "read_file",
		"*_file":          "read_file write_file edit_file delete_file move_file",
		"????":            "", // only stat has four letters, and a glob needs a letter
		"sta?":            "stat",
		"[rw]*_file":      "read_file write_file",
		"[^r]ead_file":    "",
		"l*":              "list_directory list_tools load_tool load_tool_resource",
		"@github":         "github__issue github__pull",
		"@GitHub":         "github__issue github__pull",
		"@github:issue":   "github__issue",
		"@GITHUB:ISSUE":   "github__issue",
		"@git":            "git__hub",
		"@git:hub":        "git__hub",
		"@writ":           "writ_stop writ_agents",
		"@writ:stop":      "writ_stop",
		"@writ_x":         "writ_x__t",
		"@none":           "",
		"github__*":       "github__issue github__pull",
		"no_such_tool":    "",
		"load_tool":       "load_tool",
		"shell-command":   "",
		"*a*":             "read_file search_files stat shell_command html_extract web_search load_tool load_tool_resource writ_agents",
		"web_*":           "web_fetch web_search",
		"web_fetch*":      "web_fetch",
		"[a-f]*_file":     "edit_file delete_file",
		"move_file[]x]":   "",
		"read_file[a-z]*": "",
	} {
		if entry == "????" || entry == "move_file[]x]" {
			if _, err := ParseEntry(entry); err == nil {
				t.Errorf("%s is taken", entry)
			}
			continue
		}
		if got := selected(t, entry); got != want {
			t.Errorf("%s is %q, want %q", entry, got, want)
		}
	}
}

func TestMalformedEntries(t *testing.T) {
	for _, s := range []string{
		"", " ", "read file", " read_file", "read_file ", "\tstat", "**", "?*", "[", "[]", "[a", "read_[", "read_[z-", "a]b[", "\\*", "a/b", "fs_read,fs_list",
		"@", "@@", "@a:", "@:b", "@a:b:c", "@a b", "@a:*", "@*", "@a/b", "@a__b", "@a_", "@builtin:x", "!stat", "read_file()", "é", "read_file\x00", "{a,b}", "$x", "-", "--", "a.b",
	} {
		e, err := ParseEntry(s)
		var u *action.UnknownError
		if !errors.As(err, &u) || u.Got != s || u.Form == "" {
			t.Errorf("%q: %v", s, err)
		}
		for _, tool := range every {
			if e.Match(tool) {
				t.Errorf("%q: what comes with the error selects %s", s, tool)
			}
		}
	}
}

func TestLiteral(t *testing.T) {
	for s, want := range map[string]string{"Read_File": "read_file", "@srv:x": "srv__x", "fs_read": "", "subagent": "", "*": "", "a?": "", "[ab]c": "", "@srv": "", "@writ": ""} {
		e, err := ParseEntry(s)
		if err != nil || e.Literal() != want {
			t.Errorf("%s: %q, %v", s, e.Literal(), err)
		}
	}
}

func TestListMatch(t *testing.T) {
	var l List
	for i, s := range []string{"fs_read", "read_*", "*"} {
		e, err := ParseEntry(s)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, Set[Entry]{e, string(rune('a' + i))})
	}
	for tool, at := range map[string]string{"read_file": "a", "read_mail": "b", "other": "c"} {
		if e, ok := l.Match(tool); !ok || e.At != at {
			t.Errorf("%s: %v %t", tool, e, ok)
		}
	}
	if _, ok := (List{}).Match("x"); ok {
		t.Error("the empty list selects something")
	}
}
