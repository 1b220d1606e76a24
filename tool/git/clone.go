package git

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

const urlSchema = `"url":{"type":"string","minLength":1,"maxLength":2048,"x-writ-url":"git","description":"https://host/path, ssh://user@host/path or user@host:path, without password."}`
const waitSchema = `"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds before it is ended; 120 when left out."}`

var outwardFailures = []string{
	"the URL is neither https nor ssh, or has a password in it", "the host may not be reached, has an address that is not public, or sends git on to another one",
	"the server wants a credential that the operator has not set up", "it runs into the time limit",
}

var cloneDefinition = define(tool.Definition{
	Name: "git_clone", Title: "Clone a repository",
	Description: "Copy a repository from a server into a new directory of the workspace. Submodules and large files (LFS) are not fetched, and nothing that the repository says is run. Names that other programs obey, such as .vscode or a .gitattributes with filters, are moved out of the copy and reported.",
	Action:      "vcs:clone", Class: writ.ClassReadOnly, Tier: "expensive", Policy: boxed(action.Medium, policy.All),
	Examples: []tool.Example{example("the last state of a project", `{"url":"https://github.com/org/project","depth":1}`)},
	Failures: append([]string{"the directory is there already and not empty"}, outwardFailures...),
}, `{"type":"object","additionalProperties":false,"required":["url"],"properties":{`+urlSchema+`,
	"directory":{"type":"string","x-writ-path":"write","description":"New directory; the last part of the URL in the workspace when left out."},
	"branch":{"type":"string","maxLength":200,"x-writ-text":true,"description":"Branch or tag to check out; the server's choice when left out."},
	"depth":{"type":"integer","minimum":1,"maximum":1000000,"description":"Fetch only so many commits; all when left out."},
	"blobless":{"type":"boolean","description":"Fetch of files only what is checked out, and of older ones none: for large repositories. Looking at an older file fails afterwards."},`+waitSchema+`}}`)

type cloneArgs struct {
	URL       string `json:"url"`
	Directory string `json:"directory"`
	Branch    string `json:"branch"`
	Depth     int    `json:"depth"`
	Blobless  bool   `json:"blobless"`
	Timeout   int    `json:"timeout_seconds"`
}

func (r runner) clone(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a cloneArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	u, err := ParseURL(a.URL)
	if err != nil {
		return writ.Result{}, err
	}
	only, err := maybeName("branch", a.Branch)
	if err != nil {
		return writ.Result{}, err
	}
	to := at(w, "/directory")
	if to == "" {
		if to = u.name(); to == "" {
			return writ.Result{}, writ.Fail(writ.Invalid, "git_clone: the URL does not end in a name; say directory", nil)
		}
	}
	j := job{verb: []string{"clone", "--no-recurse-submodules", "--template=", "--origin=origin"}, operand: []string{u.String(), to}, url: &u, seconds: a.Timeout}
	if only != "" {
		j.verb = append(j.verb, "--branch="+string(only))
	}
	if a.Depth > 0 {
		j.verb = append(j.verb, "--depth="+strconv.Itoa(a.Depth))
	}
	if a.Blobless {
		j.verb = append(j.verb, "--filter=blob:none")
	}
	res, err := r.run(ctx, w, j)
	if err == nil && !res.IsError {
		res.Metadata["directory"] = filepath.Clean(to)
	}
	return res, err
}
