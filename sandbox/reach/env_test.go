package reach

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterEnv(t *testing.T) {
	const path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	private := []string{"HOME=/tmp/home", "TEMP=/tmp", "TMP=/tmp", "TMPDIR=/tmp"}
	for _, tc := range []struct {
		name   string
		daemon []string
		named  []string
		extra  map[string]string
		given  map[string]string
		opts   Options
		want   []string // besides the private ones; a missing PATH means the default
	}{
		{name: "nothing"},
		{name: "allowlist", daemon: []string{"USER=u", "LANG=C", "LC_ALL=C", "TERM=x", "TZ=UTC", "EDITOR=vi", "HOME=/root", "TMPDIR=/x"},
			want: []string{"LANG=C", "LC_ALL=C", "TERM=x", "TZ=UTC", "USER=u"}},
		{name: "named by the confinement", daemon: []string{"EDITOR=vi", "PAGER=less"}, named: []string{"EDITOR"}, want: []string{"EDITOR=vi"}},
		{name: "denylist beats named", daemon: []string{"API_TOKEN=1", "AWS_SECRET_ACCESS=2", "my_password=3", "SSH_PRIVATE=4", "X_CREDENTIALS=5", "GIT_DIR=6"},
			named: []string{"API_TOKEN", "AWS_SECRET_ACCESS", "my_password", "SSH_PRIVATE", "X_CREDENTIALS", "GIT_DIR"}},
		{name: "denylist beats the allowlist", daemon: []string{"LC_KEYS=1"}},
		{name: "denylist beats overrides", extra: map[string]string{"LD_PRELOAD": "x", "ld_audit": "x", "BASH_ENV": "x", "ENV": "x", "NODE_OPTIONS": "x",
			"PYTHONSTARTUP": "x", "PYTHONPATH": "x", "PERL5OPT": "x", "RUBYOPT": "x", "JAVA_TOOL_OPTIONS": "x", "DYLD_INSERT_LIBRARIES": "x", "GIT_SSH": "x"}},
		{name: "denylist beats the operator", daemon: []string{"NODE_OPTIONS=x", "A=1"}, opts: Options{EnvAllow: []string{"*"}}, want: []string{"A=1"}},
		{name: "overrides", extra: map[string]string{"WRIT_TASK_ID": "7", "LANG": "de"}, daemon: []string{"LANG=C"}, want: []string{"LANG=de", "WRIT_TASK_ID=7"}},
		{name: "what an operator gave may be a secret", daemon: []string{"API_KEY=daemon's"}, extra: map[string]string{"API_KEY": "the caller's", "B_TOKEN": "the caller's"},
			given: map[string]string{"API_KEY": "1", "LANG": "de", "HOME": "/root", "PATH": "/evil:/bin"}, want: []string{"API_KEY=1", "LANG=de", "PATH=/bin"}},
		{name: "but no code", given: map[string]string{"LD_PRELOAD": "x", "NODE_OPTIONS": "x", "GIT_SSH": "x", "A B": "1", "OK": "a\x00b"}},
		{name: "private stays private", extra: map[string]string{"HOME": "/root", "TMPDIR": "/", "TMP": "/", "TEMP": "/"}},
		{name: "shell functions and broken names", extra: map[string]string{"BASH_FUNC_ls%%": "() { :; }", "A B": "1", "A=B": "1", "": "1", "9A": "1", "OK": "a\x00b"}},
		{name: "path is limited", daemon: []string{"PATH=/evil:/usr/bin:.::/usr/bin/../../evil:/bin:relative"}, want: []string{"PATH=/usr/bin:/bin"}},
		{name: "path override is limited", extra: map[string]string{"PATH": "/workspace/bin:/bin"}, want: []string{"PATH=/bin"}},
		{name: "prefixes end at a directory", daemon: []string{"PATH=/opt/tools-evil:/opt/tools/bin:/opt:/bin"}, opts: Options{PathPrefixes: []string{"/opt/tools"}},
			want: []string{"PATH=/opt/tools/bin:/bin:/opt/tools"}},
		{name: "relative and joined prefixes are nothing", daemon: []string{"PATH=x/bin:/bin"}, opts: Options{PathPrefixes: []string{"x", "", "/a:/evil"}}, want: []string{"PATH=/bin"}},
		{name: "unsafe any path", daemon: []string{"PATH=/evil:/bin"}, opts: Options{UnsafeAnyPath: true}, want: []string{"PATH=/evil:/bin"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := map[string]bool{}
			for _, kv := range append(append([]string{}, private...), tc.want...) {
				want[kv] = true
			}
			if !strings.Contains(strings.Join(tc.want, "\n"), "PATH=") {
				want[path] = true
			}
			got := map[string]bool{}
			for _, kv := range filterEnv(tc.daemon, tc.named, tc.extra, tc.given, tc.opts) {
				got[kv] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The short ways say what path.Match says.
func TestMatches(t *testing.T) {
	names := []string{"", "KEY", "MY_KEY_2", "LD_PRELOAD", "LD_", "LD", "ENV", "ENVX", "LC_ALL", "a*b", "a?b", "*", "x[y]"}
	for _, p := range []string{"", "*", "**", "*KEY*", "LD_*", "ENV", "LC_*", "*X", "a*b", "a?b", "[A-K]*", `a\*b`, "*KEY", "K*Y", "***"} {
		for _, name := range names {
			want, err := path.Match(p, name)
			if got := matchAny(patterns([]string{p}), name); got != (want && err == nil) {
				t.Errorf("%q, %q: %v, path.Match says %v", p, name, got, want)
			}
		}
	}
}
