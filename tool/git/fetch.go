package git

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

const dirSchema = `"directory":{"type":"string","x-writ-path":"read","description":"The repository, or a directory in it; the workspace when left out."}`

var fetchDefinition = define(tool.Definition{
	Name: "git_fetch", Title: "Fetch from a server",
	Description: "Fetch branches of a repository on a server into refs/remotes of a local one, without changing files. The URL is said in the call: that is where it goes, whatever the repository's configuration has.",
	Action:      "vcs:clone", Class: writ.ClassReadOnly, Tier: "expensive", Policy: boxed(action.Medium, policy.All),
	Examples: []tool.Example{example("what is new", `{"url":"https://github.com/org/project","directory":"project"}`)},
	Failures: append([]string{"the directory is in no repository"}, outwardFailures...),
}, `{"type":"object","additionalProperties":false,"required":["url"],"properties":{`+urlSchema+`,`+dirSchema+`,
	"remote":{"type":"string","maxLength":200,"x-writ-text":true,"description":"Below which name of refs/remotes the branches go; origin when left out."},
	"branch":{"type":"string","maxLength":200,"x-writ-text":true,"description":"Only this branch; all when left out."},
	"prune":{"type":"boolean","description":"Remove what is gone on the server from refs/remotes."},
	"tags":{"type":"boolean","description":"Fetch all tags, or none; those of what is fetched when left out."},
	"depth":{"type":"integer","minimum":1,"maximum":1000000,"description":"Fetch only so many commits."},`+waitSchema+`}}`)

type fetchArgs struct {
	URL       string `json:"url"`
	Directory string `json:"directory"`
	Remote    string `json:"remote"`
	Branch    string `json:"branch"`
	Prune     bool   `json:"prune"`
	Tags      *bool  `json:"tags"`
	Depth     int    `json:"depth"`
	Timeout   int    `json:"timeout_seconds"`
}

func (r runner) fetch(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a fetchArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	u, err := ParseURL(a.URL)
	if err != nil {
		return writ.Result{}, err
	}
	remote, err := checkName("remote", cmp.Or(a.Remote, "origin"))
	if err != nil {
		return writ.Result{}, err
	}
	only, err := maybeName("branch", a.Branch)
	if err != nil {
		return writ.Result{}, err
	}
	which := cmp.Or(string(only), "*")
	spec := "+refs/heads/" + which + ":refs/remotes/" + string(remote) + "/" + which
	nick := rand.Text()
	j := job{remote: nick, verb: []string{"fetch", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head"}, operand: []string{nick, spec}, dir: at(w, "/directory"), url: &u, seconds: a.Timeout}
	switch {
	case a.Tags != nil && *a.Tags:
		j.verb = append(j.verb, "--tags")
	case a.Tags != nil:
		j.verb = append(j.verb, "--no-tags")
	}
	if a.Prune {
		j.verb = append(j.verb, "--prune")
	}
	if a.Depth > 0 {
		j.verb = append(j.verb, "--depth="+strconv.Itoa(a.Depth))
	}
	return r.run(ctx, w, j)
}
