package protect

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
)

func TestRisky(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"# x\n\n[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", nil},
		{"[remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", nil},
		{"[user]\r\n\tname = A B\r\n", nil},
		{"[core]\n\tfsmonitor = touch x\n", []string{"core.fsmonitor=touch x"}},
		{"[CORE]\n\tFsMonitor = x\n", []string{"core.fsmonitor=x"}},
		{"[core] fsmonitor = x\n", []string{"[core] fsmonitor = x"}},
		{"[core.x]\nfsmonitor = x\n", []string{"[core.x]", "fsmonitor = x"}},
		{"[core]\nhooksPath=x\nsshCommand=x\npager=x\neditor=x\nworktree=/\ngitProxy=x\naskPass=x\n", []string{"core.hookspath=x", "core.sshcommand=x", "core.pager=x", "core.editor=x", "core.worktree=/", "core.gitproxy=x", "core.askpass=x"}},
		{"[diff]\nexternal=x\n[diff \"a\"]\ntextconv=x\n[filter \"lfs\"]\nclean=x\n[merge \"m\"]\ndriver=x\n", []string{"diff.external=x", "diff.*.textconv=x", "filter.*.clean=x", "merge.*.driver=x"}},
		{"[credential]\nhelper=!x\n[include]\npath=x\n[includeIf \"gitdir:/\"]\npath=x\n[alias]\nst=!x\n[gpg]\nprogram=x\n[uploadpack]\npackObjectsHook=x\n[url \"ext::\"]\ninsteadOf=x\n", []string{"credential.helper=!x", "include.path=x", "includeif.*.path=x", "alias.st=!x", "gpg.program=x", "uploadpack.packobjectshook=x", "url.*.insteadof=x"}},
		{"[remote \"o\"]\nurl=ext::sh -c x\nuploadpack=x\nproxy=x\nvcs=x\n", []string{"remote.*.url=ext::sh -c x", "remote.*.uploadpack=x", "remote.*.proxy=x", "remote.*.vcs=x"}},
		{"[remote \"o\"]\nurl=ext:\":\"sh\n", []string{`remote.*.url=ext:":"sh`}},
		{"[remote \"o\"]\nurl=--upload-pack=x\n[branch \"b\"]\nremote=-x\n", []string{"remote.*.url=--upload-pack=x", "branch.*.remote=-x"}},
		{"[submodule \"s\"]\npath=a\nurl=../b\nupdate=!x\n", []string{"submodule.*.update=!x"}},
		{"[submodule \"s\"]\npath=../a\nurl=../b\nupdate=checkout\n", []string{"submodule.*.path=../a"}},
		{"[user]\nname=a\\\n[core]\nfsmonitor=x\n", []string{`name=a\`, "core.fsmonitor=x"}},
		{"\ufeff[core]\nbare=false\n", []string{"\ufeff[core]", "bare=false"}},
		{"[user]\nname=a\x00b\n", []string{"name=a\x00b"}},
		{"name=a\n", []string{"name=a"}},
		{"[commit]\ngpgsign=true\n", []string{"commit.gpgsign=true"}},
		{"[new]\nthing=x\n", []string{"new.thing=x"}},
	} {
		if diff := cmp.Diff(c.want, risky(c.text)); diff != "" {
			t.Errorf("%q:\n%s", c.text, diff)
		}
		agrees(t, c.text)
	}
}

var middle = regexp.MustCompile(`^([^.]+)\..*\.([^.]+)$`)

// agrees: where nothing is risky, git itself finds nothing that is not harmless either.
func agrees(t *testing.T, text string) {
	t.Helper()
	if len(risky(text)) > 0 {
		return
	}
	need.Programs(t, "git")
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "config", "-z", "-f", path, "--list").Output()
	if err != nil {
		return // git does not read it at all
	}
	for _, item := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if item == "" {
			continue
		}
		key, value, _ := strings.Cut(item, "\n")
		key = middle.ReplaceAllString(key, "$1.*.$2")
		if ok := harmless[key]; ok == nil || !ok(value) {
			t.Errorf("%q: git reads %s=%q", text, key, value)
		}
	}
}

func FuzzRisky(f *testing.F) {
	f.Add("[core]\n\tfsmonitor = x\n")
	f.Add("[remote \"a\\\"b\"]\n\turl = \"https://x\" # y\n[core \"\"]\nbare\n")
	f.Add("[core] ; x\nbare = true ; \\\nfsmonitor = x\n")
	f.Fuzz(func(t *testing.T, text string) { agrees(t, text) })
}

func TestAttributes(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "# x\n* text=auto eol=lf\n*.png binary -diff\n*.go diff=golang linguist-generated\n/x export-ignore merge=union\n": true,
		"*.psd filter=lfs diff=lfs merge=lfs -text\n": false,
		"* diff=evil\n":         false,
		"* merge=evil\n":        false,
		"[attr]x filter=evil\n": false,
		"\"a b\" filter=evil\n": false,
		"* new\n":               false,
	} {
		if got := plainAttributes(text); got != want {
			t.Errorf("plainAttributes(%q) = %t", text, got)
		}
	}
}
