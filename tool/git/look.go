package git

import (
	"cmp"
	"context"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

const pathsSchema = `{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":4096,"x-writ-path":"read","x-writ-link":true},"description":"Only these files and directories."}`

var statusDefinition = define(tool.Definition{
	Name: "git_status", Title: "Show what has changed",
	Description: "Show the branch and which files differ from the last commit. It goes to no server and runs nothing that the repository says.",
	Action:      "vcs:read", Class: writ.ClassNone, Tier: "cheap", Policy: boxed(action.Low, policy.None),
	Examples: []tool.Example{example("of a clone", `{"directory":"project"}`)},
	Failures: []string{"the directory is in no repository"},
}, `{"type":"object","additionalProperties":false,"properties":{`+dirSchema+`}}`)

func (r runner) status(ctx context.Context, w writ.Writ) (writ.Result, error) {
	return r.run(ctx, w, job{verb: []string{"status", "--short", "--branch", "--ignore-submodules=dirty"}, dir: at(w, "/directory")})
}

var logDefinition = define(tool.Definition{
	Name: "git_log", Title: "Show commits",
	Description: "List commits, the newest first: hash, author, date and message. It goes to no server and runs nothing that the repository says.",
	Action:      "vcs:read", Class: writ.ClassNone, Tier: "cheap", Policy: boxed(action.Low, policy.None),
	Examples: []tool.Example{example("the last five", `{"directory":"project","limit":5}`), example("of a branch, since another", `{"from":"main","to":"topic/parser"}`)},
	Failures: []string{"the directory is in no repository", "there is no such commit"},
}, `{"type":"object","additionalProperties":false,"properties":{`+dirSchema+`,
	"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"At most so many; 20 when left out."},
	"from":{"type":"string","maxLength":200,"x-writ-text":true,"description":"Only what came after this commit."},
	"to":{"type":"string","maxLength":200,"x-writ-text":true,"description":"Up to this commit; HEAD when left out."},
	"patch":{"type":"boolean","description":"With what each changed."},
	"paths":`+pathsSchema+`}}`)

type logArgs struct {
	Directory string   `json:"directory"`
	Limit     int      `json:"limit"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Patch     bool     `json:"patch"`
	Paths     []string `json:"paths"`
}

func (r runner) log(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a logArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	to, err := checkRevision("to", cmp.Or(a.To, "HEAD"))
	if err != nil {
		return writ.Result{}, err
	}
	j := job{verb: []string{"log", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--date=iso-strict", "--max-count=" + strconv.Itoa(cmp.Or(a.Limit, 20))}, dir: at(w, "/directory"), operand: atAll(w, "/paths", len(a.Paths))}
	if a.Patch {
		j.verb = append(j.verb, "--patch")
	}
	j.verb = append(j.verb, "--end-of-options", to)
	if a.From != "" {
		from, err := checkRevision("from", a.From)
		if err != nil {
			return writ.Result{}, err
		}
		j.verb = append(j.verb, "^"+from)
	}
	return r.run(ctx, w, j)
}

var diffDefinition = define(tool.Definition{
	Name: "git_diff", Title: "Show differences",
	Description: "Show what differs: of the files from what is staged, of what is staged from the last commit (staged), or of one commit from another (from, to). It goes to no server and runs nothing that the repository says.",
	Action:      "vcs:read", Class: writ.ClassNone, Tier: "cheap", Policy: boxed(action.Low, policy.None),
	Examples: []tool.Example{example("what would be committed", `{"staged":true}`), example("two branches", `{"from":"main","to":"topic/parser"}`)},
	Failures: []string{"the directory is in no repository", "there is no such commit"},
}, `{"type":"object","additionalProperties":false,"properties":{`+dirSchema+`,
	"staged":{"type":"boolean","description":"What is staged, instead of the files."},
	"from":{"type":"string","maxLength":200,"x-writ-text":true,"description":"A commit to compare from."},
	"to":{"type":"string","maxLength":200,"x-writ-text":true,"description":"A commit to compare to; goes with from."},
	"stat":{"type":"boolean","description":"Only which files, and how much."},
	"paths":`+pathsSchema+`}}`)

type diffArgs struct {
	Directory string   `json:"directory"`
	Staged    bool     `json:"staged"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Stat      bool     `json:"stat"`
	Paths     []string `json:"paths"`
}

func (r runner) diff(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a diffArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if a.To != "" && (a.From == "" || a.Staged) {
		return writ.Result{}, writ.Fail(writ.Invalid, "git_diff: to goes with from, and not with staged", nil)
	}
	j := job{verb: []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}, dir: at(w, "/directory"), operand: atAll(w, "/paths", len(a.Paths))}
	if a.Staged {
		j.verb = append(j.verb, "--cached")
	}
	if a.Stat {
		j.verb = append(j.verb, "--stat")
	}
	j.verb = append(j.verb, "--end-of-options")
	for _, c := range []struct{ name, value string }{{"from", a.From}, {"to", a.To}} {
		if c.value == "" {
			continue
		}
		rev, err := checkRevision(c.name, c.value)
		if err != nil {
			return writ.Result{}, err
		}
		j.verb = append(j.verb, rev)
	}
	return r.run(ctx, w, j)
}
