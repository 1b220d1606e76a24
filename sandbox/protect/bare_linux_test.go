package protect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A directory that looks like a repository is also what it would be otherwise: whoever can
// make it look like one hides nothing by that.
func TestLooksBare(t *testing.T) {
	for _, step := range []string{"from the beginning", "by a run"} {
		t.Run(step, func(t *testing.T) {
			root := workspace(t, ".env=x", ".git/config=[core]\n", "sub/.env=x", "sub/.vscode/a=b", "modules/m/.env=x", "modules/m/r/.git/config=[core]\n", "x/y=z")
			f := finder(t, Options{})
			c := prepared(t, f, root, nil)
			if step == "from the beginning" {
				ended(t, c)
			}
			for _, item := range []string{"HEAD=ref: refs/heads/x", "objects/", "refs/"} {
				put(t, root, item)
			}
			put(t, root, "objects/o/.vscode/evil=x")
			want := []string{"objects/o/.vscode"}
			if step == "from the beginning" {
				c = prepared(t, f, root, nil)
				want = nil
			}
			if diff := cmp.Diff(want, ended(t, c)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			next := cover(t, f, root)
			got := map[string]bool{}
			for _, line := range lines(next) {
				got[line] = true
			}
			for _, line := range []string{"mask .env", "mask sub/.env", "ro sub/.vscode/", "mask modules/m/.env", "ro .git/config", "ro modules/"} {
				if !got[line] {
					t.Errorf("no %q in %q", line, lines(next))
				}
			}
			ended(t, next)
		})
	}
}

// What git takes for a repository, or is led to, is looked at like one.
func TestTakenForARepository(t *testing.T) {
	const evil = "[core]\n\tfsmonitor = evil\n"
	for name, c := range map[string]struct {
		items []string
		want  []string
	}{
		"objects is a link":            {[]string{"g/HEAD=ref: refs/heads/x", "g/objects>../o", "g/refs/", "o/", "g/config=" + evil}, []string{"g/config"}},
		"refs is a link":               {[]string{"g/HEAD=ref: refs/heads/x", "g/objects/", "g/refs>../o", "o/", "g/config=" + evil}, []string{"g/config"}},
		"all are links":                {[]string{"g/HEAD>../h", "g/objects>../o", "g/refs>../o", "h=ref: refs/heads/x", "o/", "g/config=" + evil}, []string{"g/config"}},
		"objects is a program":         {[]string{"g/HEAD=ref: refs/heads/x", "g/objects=x", "g/refs/", "g/config=" + evil}, []string{"g/config"}},
		"the rest is elsewhere":        {[]string{"g/HEAD=ref: refs/heads/x", "g/commondir=../c", "c/objects/", "c/refs/", "c/config=[extensions]\n\tworktreeConfig = true\n", "g/config.worktree=" + evil}, []string{"g/commondir", "g/config.worktree"}},
		"a .git by a link in modules":  {[]string{"r/.git/config=[core]\n\tbare = false\n", "r/.git/modules/s>../../../e", "e/HEAD=x", "e/config=" + evil, "p/.git=gitdir: ../r/.git/modules/s"}, []string{"p/.git", "r/.git/modules/s"}},
		"a .git by way of a link":      {[]string{"r/.git/modules/s/config=[core]\n\tbare = false\n", "l>e/e", "e/e/", "e/r/.git/modules/s/config=" + evil, "p/.git=gitdir: ../l/../r/.git/modules/s"}, []string{"e/r/.git/modules/s/config", "p/.git"}},
		"a submodule":                  {[]string{"r/.git/modules/s/HEAD=x", "r/.git/modules/s/config=[core]\n\tbare = false\n", "r/s/.git=gitdir: ../.git/modules/s"}, nil},
		"harmless where git looks too": {[]string{"g/HEAD=ref: refs/heads/x", "g/objects/", "g/refs/", "g/config=[core]\n\tbare = true\n", "g/hooks/x.sample=y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := workspace(t, "x=y")
			run := prepared(t, finder(t, Options{}), root, nil)
			for _, item := range c.items {
				put(t, root, item)
			}
			if diff := cmp.Diff(c.want, ended(t, run)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
