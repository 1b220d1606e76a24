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
	remote  string   // what the remote and its URL are called in this run, which no repository can have said anything about; empty: by the URL
	seconds int
	filters []string // that the repository defines
}

// outwardFor is how long a run that goes to a server may take where nobody says.
const outwardFor = 120

// settings are off whatever a repository says: all by which git runs, loads or follows
// something, shows what is not there, or asks a server for more than the call does. They
// beat every file.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false", "sequence.editor=false", "core.askPass=",
	"core.sshCommand=false", "core.alternateRefsCommand=", "core.attributesFile=/dev/null",
	"core.protectHFS=true", "core.protectNTFS=true", "credential.helper=", "credential.interactive=false",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "status.submoduleSummary=false", "diff.ignoreSubmodules=dirty",
	"diff.submodule=short", // for git in a submodule is another one, without the options of this
	"diff.external=", "filter.lfs.smudge=", "filter.lfs.clean=", "filter.lfs.process=", "fetch.uriProtocols=",
	"transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false", "commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "log.showSignature=false",
	"gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false", "format.pretty=medium",
	"push.followTags=false", "push.pushOption=", "push.default=nothing", "advice.detachedHead=false", "init.defaultBranch=main", "log.decorate=short",
	"push.negotiate=false",                                // which asks by the URL, and so where insteadOf leads
	"core.commitGraph=false", "core.multiPackIndex=false", // what they say of commits, nobody holds against the commits
	"core.warnAmbiguousRefs=true", "core.commentChar=#", "log.mailmap=false", "log.showRoot=true", "i18n.logOutputEncoding=UTF-8", "i18n.commitEncoding=UTF-8", "status.showUntrackedFiles=normal",
	"color.ui=false", "color.diff=false", "color.status=false", "color.branch=false",
}

// environment is what git takes from nothing else. What is shown is what there is, and what
// would be pushed: without replacements and grafts.
var environment = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_GRAFT_FILE=/dev/null/none",    // a file that is there, and empty, git warns of
	"GIT_HTTP_USER_AGENT=git/2 (writ)", // else the repository's, with whole requests in it
	"GIT_PROXY_COMMAND=",               // of several core.gitProxy the first counts, which is the repository's
}

// argv puts a command line together of what is known, with what the call says after it.
func (j job) argv(agent string) []string {
	out := slices.Concat([]string{"env"}, environment, []string{
		"GIT_AUTHOR_NAME=" + agent, "GIT_AUTHOR_EMAIL=" + agent + "@writ.invalid", "GIT_COMMITTER_NAME=" + agent, "GIT_COMMITTER_EMAIL=" + agent + "@writ.invalid",
	})
	if j.url != nil {
		out = append(out, j.url.bound(j.remote)...)
	} else {
		out = append(out, "GIT_ALLOW_PROTOCOL=none")
		out = append(out, configured(j.unfiltered())...)
	}
	if j.remote != "" || j.url == nil { // a clone without the content of files fetches that when it checks out
		out = append(out, "GIT_NO_LAZY_FETCH=1")
	}
	out = append(out, "git", "--no-pager")
	if j.stdin == "" {
		out = append(out, "--literal-pathspecs")
	}
	if !j.records { // what a filter would have made of a file must not be left out of a commit
		out = append(out, "-c", "filter.lfs.required=false")
	}
	for _, s := range settings {
		out = append(out, "-c", s)
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
	if j.url == nil {
		var res writ.Result
		var err error
		if j.filters, res, err = r.filters(ctx, w, j.dir); err != nil || res.IsError {
			return res, err
		}
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
