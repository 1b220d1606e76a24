package git

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

var pushDefinition = define(tool.Definition{
	Name: Push, Title: "Push to a server",
	Description: "Push one branch of a local repository to a server. It changes something outside, so a person is asked. The URL is said in the call: that is where it goes, whatever the repository's configuration has.",
	Action:      "vcs:push", Class: writ.ClassWrite, Tier: "expensive", Policy: boxed(action.High, policy.All),
	Examples: []tool.Example{example("a branch for review", `{"url":"https://github.com/org/project","directory":"project","branch":"topic/parser"}`)},
	Failures: append([]string{"the directory is in no repository, or has no such branch", "the server has commits that the branch does not (fetch first), or refuses"}, outwardFailures...),
}, `{"type":"object","additionalProperties":false,"required":["url","branch"],"properties":{`+urlSchema+`,`+dirSchema+`,
	"branch":{"type":"string","minLength":1,"maxLength":200,"x-writ-text":true,"description":"The local branch."},
	"to":{"type":"string","maxLength":200,"x-writ-text":true,"description":"What it is called on the server; the same when left out."},
	"force":{"type":"boolean","description":"Also where commits on the server are lost by it."},`+waitSchema+`}}`)

type pushArgs struct {
	URL       string `json:"url"`
	Directory string `json:"directory"`
	Branch    string `json:"branch"`
	To        string `json:"to"`
	Force     bool   `json:"force"`
	Timeout   int    `json:"timeout_seconds"`
}

func (r runner) push(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a pushArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	u, err := ParseURL(a.URL)
	if err != nil {
		return writ.Result{}, err
	}
	from, err := checkName("branch", a.Branch)
	if err != nil {
		return writ.Result{}, err
	}
	to, err := checkName("to", cmp.Or(a.To, a.Branch))
	if err != nil {
		return writ.Result{}, err
	}
	spec := "refs/heads/" + string(from) + ":refs/heads/" + string(to)
	if a.Force {
		spec = "+" + spec
	}
	remote := rand.Text()
	return r.run(ctx, w, job{
		remote: remote, verb: []string{"push", "--no-recurse-submodules", "--no-verify", "--no-signed", "--no-follow-tags"}, operand: []string{remote, spec},
		dir: at(w, "/directory"), url: &u, seconds: a.Timeout,
	})
}
