package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool/exec"
)

// A job is one run of git.
type job struct {
	verb    []string // and its options
	operand []string // after --
	bare    bool     // there is no --, since what would be after it would be something else
	records bool     // it takes files into the repository
	stdin   string   // pathspecs of ours, with what git reads into them
	dir     string   // empty: the workspace
	url     *URL     // nil: it goes nowhere
	remote  string   // what the URL is called in this run: a repository could have a remote of the URL's own name, which leads elsewhere
	seconds int
}

// outwardFor is how long a run that goes to a server may take where nobody says.
const outwardFor = 120

// settings are off whatever a repository says: all by which git runs, loads or follows
// something. They beat every file.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false", "sequence.editor=false", "core.askPass=",
	"core.sshCommand=false", "core.gitProxy=", "core.alternateRefsCommand=", "core.attributesFile=/dev/null",
	"core.protectHFS=true", "core.protectNTFS=true", "credential.helper=", "credential.interactive=false",
	"http.followRedirects=false", "http.proxy=", "http.sslVerify=true", "http.extraHeader=", "http.cookieFile=", "http.saveCookies=false",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "status.submoduleSummary=false", "diff.ignoreSubmodules=dirty",
	"diff.external=", "filter.lfs.smudge=", "filter.lfs.clean=", "filter.lfs.process=",
	"transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false", "commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "log.showSignature=false", "gpg.program=false",
	"push.followTags=false", "push.default=nothing", "advice.detachedHead=false", "init.defaultBranch=main", "color.ui=false", "log.decorate=short",
}

// argv puts a command line together of what is known, with what the call says after it.
func (j job) argv(agent string) []string {
	allow, rewritten := "none", []string(nil)
	if j.url != nil {
		allow, rewritten = "https", j.url.rewritten()
	}
	if rewritten != nil {
		allow = "git"
	}
	out := append([]string{"env"}, rewritten...)
	out = append(out,
		"GIT_ALLOW_PROTOCOL="+allow, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_NAME="+agent, "GIT_AUTHOR_EMAIL="+agent+"@writ.invalid", "GIT_COMMITTER_NAME="+agent, "GIT_COMMITTER_EMAIL="+agent+"@writ.invalid",
		"git", "--no-pager")
	if j.stdin == "" {
		out = append(out, "--literal-pathspecs")
	}
	if !j.records { // what a filter would have made of a file must not be left out of a commit
		out = append(out, "-c", "filter.lfs.required=false")
	}
	for _, s := range settings {
		out = append(out, "-c", s)
	}
	if j.remote != "" {
		out = append(out, "-c", "remote."+j.remote+".url="+j.url.String())
	}
	if j.bare {
		return append(out, j.verb...)
	}
	return slices.Concat(out, j.verb, []string{"--"}, j.operand)
}

// run runs it in the call's box.
func (r runner) run(ctx context.Context, w writ.Writ, j job) (writ.Result, error) {
	if j.url != nil {
		if err := j.decided(w); err != nil {
			return writ.Result{}, err
		}
		j.seconds = cmp.Or(j.seconds, outwardFor)
	}
	res, err := exec.Run(ctx, r.Boxes, w, sandbox.Spec{Argv: j.argv(w.Call().Agent), Stdin: strings.NewReader(j.stdin), Dir: j.dir, Timeout: time.Duration(j.seconds) * time.Second})
	if err != nil || !res.IsError || j.url == nil || r.Refused == nil {
		return res, err
	}
	for _, line := range r.Refused(ctx, w.Call().ID) {
		res.Content += fmt.Sprintf("[not let out: %s]\n", line)
	}
	return res, nil
}

// decided makes sure that where git is sent is what the call was decided for: the text
// was read twice, and a difference would be two opinions on one URL (I4).
func (j job) decided(w writ.Writ) error {
	for _, t := range w.Call().Targets {
		if t.Kind == writ.TargetHost && t.Pointer == "/url" && t.Host == j.url.Endpoint().String() {
			return nil
		}
	}
	return writ.Fail(writ.Denied, "denied: nobody decided about the host of the URL", nil)
}
