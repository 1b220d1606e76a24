package prove

import (
	"context"
	"strings"
)

// environmentProbes: variables that make programs load or run something, or move what
// they trust, do not get into a box (§8.2, group H).
func environmentProbes() []Probe {
	var all []Probe
	for _, name := range strings.Fields(`LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH LD_DEBUG_OUTPUT DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONSTARTUP PYTHONPATH NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB
		RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS GIT_SSH_COMMAND GIT_EXEC_PATH GIT_CONFIG_GLOBAL GIT_DIR GIT_EXTERNAL_DIFF PATH HOME TMPDIR
		AWS_SECRET_ACCESS_KEY GITHUB_TOKEN DB_PASSWORD MY_CREDENTIALS SSH_PRIVATE_FILE api_key`) {
		p := row(name, `[ "$GOOD" = yes ]`, `case "${`+name+`-}" in *evil*) exit 0;; esac; no absent`, "absent")
		p.env = map[string]string{name: "/evil", "GOOD": "yes"}
		all = append(all, p)
	}
	exported := row("a function", `[ "$GOOD" = yes ]`, `declare -F cat || no absent`, "absent")
	exported.env = map[string]string{"BASH_FUNC_cat%%": "() { /evil; }", "GOOD": "yes"}
	all = append(all, exported)
	for _, name := range ours {
		all = append(all, row("of the daemon, "+name, `[ "$WS" ]`, `[ "${`+name+`-}" ] || no absent`, "absent"))
	}
	all = append(all,
		row("of the daemon, by proc", `cat /proc/$$/environ >/dev/null`, `tr '\0' '\n' </proc/$$/environ | grep WRIT_PROVE || no absent`, "absent"),
		Probe{Name: "what it has", try: tryEnvironment})
	return group("environment", "", all)
}

// tryEnvironment: the home and the temporary directory are the box's own and can be
// used; what is passed arrives unchanged.
func tryEnvironment(ctx context.Context, w *world) error {
	const text = "a b\tc\"'$x\n\\ü"
	o := w.bash(ctx, w.confinement(), `printf '%s' "$GOOD"; cd; touch x $TMPDIR/y; [ "$PWD" = "$HOME" ]; [ -z "$(find / -maxdepth 1 -path "$HOME")" ]`, map[string]string{"GOOD": text})
	if o.Error != nil || o.Exit.Code != 0 {
		return inconclusive("%s", o)
	}
	if o.Out != text {
		return broken("a variable arrived as %q", o.Out)
	}
	return nil
}
