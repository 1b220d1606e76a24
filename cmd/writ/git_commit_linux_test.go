package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// A commit takes by itself nothing that has a protected name: what a clone brought of them
// lies in the quarantine, and is not to be deleted for everybody.
func TestGitCommitLeavesOutProtected(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}})
	f.repository("plain", map[string]string{"a": "one\n", "gone": "x\n", "sub/b": "one\n", ".vscode/settings.json": "{}\n", "sub/.envrc": "x\n", ".envrc": "x\n", ".gitattributes": "*.x filter=evil\n", "key.pem": "x\n"})
	w := newWorld(t, gitAgent, "egress:\n  hosts:\n    forge.test: {class: read_only}\n").init()
	if o := w.call("git_clone", map[string]any{"url": "https://forge.test/plain.git", "directory": "h"}); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	for _, c := range []struct {
		name    string
		command string // in the clone, before
		args    map[string]any
		code    int
		say     string // what the result says
		want    string // what the commit changes
	}{
		{"only what is protected", "true", map[string]any{"directory": "h"}, 1, `[left out of the commit, since it is protected: `, ""},
		{"all that git knows", "echo two >a; rm gone; echo n >new", map[string]any{"directory": "h"}, 0, `".vscode/settings.json"`, "M\ta D\tgone"},
		{"from a directory below", "echo three >a; echo two >sub/b", map[string]any{"directory": "h/sub"}, 0, `"sub/.envrc"`, "M\ta M\tsub/b"},
		{"a directory that is named", "echo three >sub/b; echo n >sub/new", map[string]any{"directory": "h", "paths": []string{"h/sub"}}, 0, `[left out of the commit, since it is protected: "sub/.envrc"]`, "M\tsub/b A\tsub/new"},
		{"a name with signs in it", "echo n >'new*'; echo n >':(top)'", map[string]any{"directory": "h", "paths": []string{"h/new*", "h/:(top)"}}, 0, ``, "A\t:(top) A\tnew*"},
		{"a path that is not from the workspace", "true", map[string]any{"directory": "h", "paths": []string{"new"}}, 1, `[paths are from the workspace, not from directory]`, ""},
		{"a protected file that is named", "true", map[string]any{"directory": "h", "paths": []string{"h/.vscode/settings.json"}}, 0, ``, "D\t.vscode/settings.json"},
	} {
		before := f.git(filepath.Join(w.ws, "h"), "rev-parse", "HEAD")
		w.shell("cd h && " + c.command)
		c.args["message"] = c.name
		o := w.call("git_commit", c.args)
		changed := strings.Join(strings.Split(strings.TrimSpace(f.git(filepath.Join(w.ws, "h"), "diff", "--no-renames", "--name-status", strings.TrimSpace(before), "HEAD")), "\n"), " ")
		if o.code != c.code || !strings.Contains(o.out+o.err, c.say) || changed != c.want {
			t.Errorf("%s: it changes %q, want %q: %+v", c.name, changed, c.want, o)
		}
	}
}
