package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// In a clone without the content of older files one works as in any other, and what would
// need such content fails without asking a server for it, whoever that is.
func TestGitInBloblessClones(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	names := lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}})
	f.repository("plain", map[string]string{"README": "one\n"})
	f.commit("plain", map[string]string{"README": "two\n"})
	served := filepath.Join(f.root, "plain.git")
	f.git(filepath.Join(f.work, "plain"), "push", "-q", served, "main")
	f.git(served, "config", "uploadpack.allowFilter", "true")
	w := newWorld(t, gitAgent, "egress:\n  hosts: {forge.test: {class: read_only}}\n").init()
	url := "https://forge.test/plain.git"
	does := func(tool string, ok bool, args map[string]any) outcome {
		t.Helper()
		args["directory"] = "b"
		o := w.call(tool, args)
		if (o.code == 0) != ok {
			t.Errorf("%s: %+v", tool, o)
		}
		return o
	}
	does("git_clone", true, map[string]any{"url": url, "blobless": true})
	w.write(filepath.Join(w.ws, "b/mine"), "mine\n")
	does("git_commit", true, map[string]any{"message": "mine", "paths": []string{"b/mine"}})
	f.commit("plain", map[string]string{"README": "three\n"})
	f.git(filepath.Join(f.work, "plain"), "push", "-q", served, "main")
	does("git_fetch", true, map[string]any{"url": url})
	if o := w.agreed("git_push", map[string]any{"url": url, "directory": "b", "branch": "main", "to": "mine"}); o.code != 0 {
		t.Errorf("push: %+v", o)
	}
	asked := len(names.Asked())
	does("git_log", true, map[string]any{})
	if o := does("git_log", false, map[string]any{"patch": true}); !strings.Contains(o.out, "lazy fetching disabled") {
		t.Errorf("%+v", o)
	}
	if n := len(names.Asked()); n != asked {
		t.Errorf("it asked for %q", names.Asked()[asked:])
	}
	// For a git that goes and gets it, it is there to be got.
	if said := plainly(filepath.Join(w.ws, "b"), "log", "-p"); !strings.Contains(said, "+one") {
		t.Errorf("a git that asks says\n%s", said)
	}
}
