package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// What looks at a repository, or commits to it, runs no program that a repository names,
// goes to no server, shows what is there and changes nothing outside of the workspace. For
// a git that takes the repository as it is, each row does what it is about.
func TestGitOfHostileRepositories(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	f := newForge(t)
	names := lab.Names(t, map[string][][]string{"forge.test": {{lab.Public}}})
	f.repository("plain", map[string]string{"README": "one\n", "a.x": "one\n"})
	f.commit("plain", map[string]string{"README": "two\n"})
	f.git(filepath.Join(f.work, "plain"), "push", "-q", filepath.Join(f.root, "plain.git"), "main")
	w := newWorld(t, gitAgent, "").init()
	outside := filepath.Join(w.home, "outside")
	f.git(w.home, "clone", "-q", filepath.Join(f.root, "plain.git"), outside)
	in := func(dir, commands string) string {
		cmd := exec.Command("sh", "-ec", commands)
		cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "HOME=/nonexistent", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", commands, err, out)
		}
		return string(out)
	}
	in(w.home, "chown -R nobody:nogroup outside")
	state := func() string { return in(outside, "find . -type f -print0 | sort -z | xargs -0 sha256sum") }
	// What signs a commit is looked at by a program that the configuration names.
	const signed = `{ git cat-file commit HEAD | sed '/^$/q' | sed '$d'; printf 'gpgsig -----BEGIN SIGNED MESSAGE-----\n x\n -----END SIGNED MESSAGE-----\n\nsigned\n'; } | git hash-object -t commit -w --stdin | xargs git update-ref HEAD; `
	// What git remembers of the newest commit gets another tree, $T, and its sum is made right.
	const forged = `G=.git/objects/info/commit-graph; chmod u+w $G; perl -e '
		my ($file, $commit, $tree) = @ARGV; local $/; open my $f, "+<:raw", $file or die; my $d = <$f>;
		my %at = map { substr($d, 8 + 12 * $_, 4), unpack("Q>", substr($d, 12 + 12 * $_, 8)) } 0 .. unpack("x6C", $d) - 1;
		for my $i (0 .. unpack("N", substr($d, $at{OIDF} + 1020, 4)) - 1) {
			substr($d, $at{CDAT} + 36 * $i, 20) = pack("H*", $tree) if unpack("H*", substr($d, $at{OIDL} + 20 * $i, 20)) eq $commit;
		}
		use Digest::SHA; substr($d, -20) = Digest::SHA::sha1(substr($d, 0, -20)); seek $f, 0, 0; print $f $d;
	' $G $(git rev-parse HEAD) $T`
	for i, c := range []struct {
		name, make string // commands in a clone
		git        string // what shows that it works
		tool       string
		args       map[string]any
		sign       string // in what git says
		ok         bool
	}{
		{"diff in a submodule", `git clone -q . sub; git add -f sub 2>/dev/null; git commit -qm sub; cd sub; git config diff.evil.command env; echo 'README diff=evil' >.git/info/attributes; echo x >README; git commit -qam x; cd ..; git config diff.submodule diff`,
			"diff", "git_diff", map[string]any{}, "env: ", true},
		{"log of a submodule", `git clone -q . sub; git add -f sub 2>/dev/null; git commit -qm sub; cd sub; git config diff.evil.command env; echo 'README diff=evil' >.git/info/attributes; echo x >README; git commit -qam x; cd ..; git config diff.submodule diff; git commit -qam sub2`,
			"log -p", "git_log", map[string]any{"patch": true}, "env: ", true},
		{"who signed", signed + `git config format.pretty %GG; git config gpg.x509.program env`, "log", "git_log", map[string]any{}, "env: ", true},
		{"who signed, by ssh", signed + `git cat-file commit HEAD | sed 's/SIGNED MESSAGE/SSH SIGNATURE/' | git hash-object -t commit -w --stdin | xargs git update-ref HEAD; git config format.pretty %GG; git config gpg.ssh.program env; touch all; git config gpg.ssh.allowedSignersFile all`,
			"log", "git_log", map[string]any{}, "env: ", true},
		{"another author", `git config format.pretty 'tformat:by somebody trusted'`, "log", "git_log", map[string]any{}, "by somebody trusted", true},
		{"replaced", `echo bad >bad; git add bad; git commit -qm bad; git replace HEAD HEAD~1`, "log -1", "git_log", map[string]any{"limit": 1}, "commit of plain", true},
		{"grafted", `git rev-parse HEAD >.git/info/grafts`, "log", "git_log", map[string]any{}, "grafts is deprecated", true},
		{"lazy", `git config core.repositoryformatversion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url https://forge.test/plain.git; rm -rf .git/objects/pack/* .git/objects/??`,
			"log -1", "git_log", map[string]any{}, "asked for forge.test", false},
		{"a filter without a shell", `mkdir -p .git/info; echo '*.x filter=evil' >.git/info/attributes; git config filter.evil.clean /bin/false; touch a.x`, "status", "git_status", map[string]any{}, "'/bin/false' failed 1", true},
		{"a filter of the system", `mkdir -p .git/info; echo '*.x filter=evil' >.git/info/attributes; git config filter.evil.clean env; echo new >a.x`, "diff", "git_diff", map[string]any{}, "+GIT_", true},
		{"a filter of git's own", `mkdir -p .git/info; echo '*.x filter=evil' >.git/info/attributes; git config filter.evil.clean "$(git --exec-path)/git-get-tar-commit-id"; git config filter.evil.required true; echo new >a.x`, "diff", "git_diff", map[string]any{}, "failed", true},
		{"a filter that is required", `mkdir -p .git/info; echo '*.x filter=evil.y' >.git/info/attributes; git config filter.evil.y.clean env; git config filter.evil.y.required true; echo new >a.x`, "diff", "git_commit", map[string]any{"message": "x"}, "+GIT_", false},
		{"a filter by an included file", `printf '[filter "evil"]\n\tclean = env\n' >.git/more; git config include.path more; mkdir -p .git/info; echo '*.x filter=evil' >.git/info/attributes; echo new >a.x`, "diff", "git_diff", map[string]any{}, "+GIT_", true},
		{"other people", `printf 'Trusted Person <trusted@example> <x>\n' >.mailmap; git config log.mailmap true; git commit -q --allow-empty -m byx`, "log -1", "git_log", map[string]any{"limit": 1}, "Trusted Person", true},
		{"a tree that is not there", `echo three >README; git commit -qam real; echo benign >>a.x; git add a.x; T=$(git write-tree); git reset -q --hard; git commit-graph write --reachable; ` + forged, "log -p -1", "git_log", map[string]any{"patch": true, "limit": 1}, "+benign", true},
		{"colours of a diff", `git config color.diff always; echo x >>README`, "diff", "git_diff", map[string]any{}, "\x1b[", true},
		{"colours of a status", `git config color.status always; echo x >>README`, "status", "git_status", map[string]any{}, "\x1b[", true},
		{"files elsewhere", `git config core.worktree ` + outside, "checkout -q -b other HEAD~1", "git_branch", map[string]any{"do": "create", "name": "other", "from": "HEAD~1"}, "", true},
		{"a repository elsewhere", `rm -rf .git; echo gitdir: ` + outside + `/.git >.git`, "commit -qam x", "git_commit", map[string]any{"message": "x"}, "", false},
		{"a repository behind a link", `rm -rf .git; ln -s ` + outside + `/.git .git; echo x >README`, "commit -qam x", "git_commit", map[string]any{"message": "x"}, "", false},
		{"common parts elsewhere", `echo ` + outside + `/.git >.git/commondir; echo x >>README`, "commit -qam x", "git_commit", map[string]any{"message": "x"}, "", false},
		{"objects elsewhere", `rm -rf .git/objects; ln -s ` + outside + `/.git/objects .git/objects; echo x >>README`, "commit -qam x", "git_commit", map[string]any{"message": "x"}, "", false},
		{"the index elsewhere", `rm .git/index; ln -s ` + outside + `/.git/index .git/index; echo x >>README`, "add README", "git_commit", map[string]any{"message": "x"}, "", false},
	} {
		dir := filepath.Join(w.ws, fmt.Sprintf("r%d", i))
		f.git(w.ws, "clone", "-q", filepath.Join(f.root, "plain.git"), dir)
		in(dir, c.make)
		in(w.ws, "cp -a "+dir+" control; cp -a "+outside+" "+outside+".kept")
		w.give()
		asked, was := len(names.Asked()), state()
		works := func(said string) bool {
			if len(names.Asked()) > asked {
				said += "asked for " + names.Asked()[asked]
			}
			return c.sign == "" && state() != was || c.sign != "" && strings.Contains(said, c.sign)
		}
		said := ""
		for range 5 { // git says nothing of a program that ends before it has read everything
			if said = plainly(filepath.Join(w.ws, "control"), strings.Fields(c.git)...); works(said) {
				break
			}
		}
		if !works(said) {
			t.Errorf("%s proves nothing: a git that obeys says\n%s", c.name, said)
		}
		in(w.ws, "rm -rf control "+outside+"; mv "+outside+".kept "+outside)
		asked, was = len(names.Asked()), state()
		sub, _ := c.args["directory"].(string)
		c.args["directory"] = filepath.Join(filepath.Base(dir), sub)
		if o := w.call(c.tool, c.args); works(o.out) || (o.code == 0) != c.ok {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
	w.verifies()
}
