package git

import (
	"context"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

var branchDefinition = define(tool.Definition{
	Name: "git_branch", Title: "Look after branches",
	Description: "List, create, switch to or delete branches of a local repository. It goes to no server and runs nothing that the repository says.",
	Action:      "vcs:branch", Class: writ.ClassNone, Tier: "cheap", Policy: boxed(action.Low, policy.None),
	ActionBy: &tool.ActionBy{Argument: "do", Types: map[string]action.Type{"list": "vcs:read", "create": "vcs:branch", "switch": "vcs:branch", "delete": "vcs:branch"}},
	Examples: []tool.Example{example("begin one", `{"do":"create","name":"topic/parser","directory":"project"}`)},
	Failures: []string{"the directory is in no repository", "there is such a branch already, or none", "files that would be lost have changed", "delete: its commits are on no other branch"},
}, `{"type":"object","additionalProperties":false,"required":["do"],"properties":{
	"do":{"type":"string","enum":["list","create","switch","delete"],"description":"list: all, also those of servers. create: make one and switch to it. switch: to one that is there. delete: one whose commits are on another."},`+dirSchema+`,
	"name":{"type":"string","maxLength":200,"x-writ-text":true,"description":"The branch; needed unless do is list."},
	"from":{"type":"string","maxLength":200,"x-writ-text":true,"description":"With create: the commit to begin at; HEAD when left out."}}}`)

type branchArgs struct {
	Do        string `json:"do"`
	Directory string `json:"directory"`
	Name      string `json:"name"`
	From      string `json:"from"`
}

func (r runner) branch(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a branchArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if (a.Do == "list") != (a.Name == "") || a.From != "" && a.Do != "create" {
		return writ.Result{}, writ.Fail(writ.Invalid, "git_branch: name goes with create, switch and delete, and from with create", nil)
	}
	j := job{dir: at(w, "/directory")}
	if a.Do == "list" {
		j.verb = []string{"branch", "--list", "--all", "--verbose", "--no-color", "--no-column"}
		return r.run(ctx, w, j)
	}
	name, err := checkName("name", a.Name)
	if err != nil {
		return writ.Result{}, err
	}
	switch a.Do {
	case "switch":
		j.verb = []string{"switch", "--no-recurse-submodules", "--no-guess", "--end-of-options", string(name)}
	case "delete":
		j.verb, j.operand = []string{"branch", "--delete"}, []string{string(name)}
	case "create":
		j.verb = []string{"switch", "--no-recurse-submodules", "--no-track", "--create=" + string(name), "--end-of-options"}
		if a.From != "" {
			from, err := checkRevision("from", a.From)
			if err != nil {
				return writ.Result{}, err
			}
			j.verb = append(j.verb, from)
		}
	}
	j.bare = a.Do != "delete"
	return r.run(ctx, w, j)
}

var commitDefinition = define(tool.Definition{
	Name: "git_commit", Title: "Commit",
	Description: "Commit files of a local repository. Author and committer are the agent. It goes to no server and runs no hook, filter or signing program.",
	Action:      "vcs:commit", Class: writ.ClassNone, Tier: "cheap", Policy: boxed(action.Medium, policy.None),
	Examples: []tool.Example{example("two files", `{"message":"parser: read hexadecimal numbers","paths":["project/parse.go","project/parse_test.go"],"directory":"project"}`)},
	Failures: []string{"the directory is in no repository", "nothing has changed", "a path is not in the repository"},
}, `{"type":"object","additionalProperties":false,"required":["message"],"properties":{
	"message":{"type":"string","minLength":1,"maxLength":20000,"x-writ-text":true,"description":"First a line that says what it does; after an empty line, why."},`+dirSchema+`,
	"paths":{"type":"array","maxItems":1000,"items":{"type":"string","minLength":1,"maxLength":4096,"x-writ-path":"read","x-writ-link":true},"description":"Files and directories to add first, new ones included, from the workspace (project/parse.go, also with directory: project). When left out, all that git knows and that has changed: new files are committed only when they are named here. Protected names such as .vscode and .envrc are left out, and reported, unless they are named themselves."}}}`)

type commitArgs struct {
	Message   string   `json:"message"`
	Directory string   `json:"directory"`
	Paths     []string `json:"paths"`
}

// commit stages by itself what has no protected name, and commits then what is staged.
func (r runner) commit(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a commitArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if strings.TrimSpace(a.Message) == "" || strings.ContainsRune(a.Message, 0) {
		return writ.Result{}, writ.Fail(writ.Invalid, "git_commit: the message is empty, or has a NUL in it; write what the commit does", nil)
	}
	dir, paths := at(w, "/directory"), atAll(w, "/paths", len(a.Paths))
	without, res, err := r.protected(ctx, w, dir, paths)
	if err != nil || res.IsError {
		return whose(res, paths), err
	}
	add := job{verb: []string{"add", "--pathspec-from-file=-", "--pathspec-file-nul"}, stdin: pathspecs(paths, without), bare: true, dir: dir, records: true}
	if len(paths) == 0 {
		add.verb = append(add.verb, "--update")
	}
	if res, err = r.run(ctx, w, add); err != nil || res.IsError {
		return whose(res, paths), err
	}
	res, err = r.run(ctx, w, job{verb: []string{"commit", "--no-verify", "--no-gpg-sign", "--no-post-rewrite", "--cleanup=strip", "--message=" + a.Message}, dir: dir, records: true})
	res.Content += leftOut(without)
	return res, err
}

// whose says of paths that git did not find where they begin.
func whose(res writ.Result, paths []string) writ.Result {
	if len(paths) > 0 {
		res.Content += "[paths are from the workspace, not from directory]\n"
	}
	return res
}
