package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// mostListed is how much of a list is read: a few thousand files' names.
const mostListed = 1 << 20

// listed is what git says, for the tool itself to read; or the result of a git that failed.
func (r runner) listed(ctx context.Context, w writ.Writ, j job) (string, writ.Result, error) {
	stdout, stderr := sandbox.NewTail(mostListed), sandbox.NewTail(mostListed)
	box, driver, err := r.Boxes.Start(ctx, w, sandbox.Spec{Argv: j.argv(w.Call().Agent), Dir: j.dir, Stdout: stdout, Stderr: stderr})
	if err != nil {
		return "", writ.Result{}, err
	}
	exit, err := box.Wait(ctx)
	if err != nil {
		return "", writ.Result{}, err
	}
	if exit.Code != 0 || exit.Limit != "" {
		ended := fmt.Sprintf("exit status %d", exit.Code)
		if exit.Limit != "" {
			ended = "ended: " + sandbox.Meaning(exit.Limit)
		}
		text := fmt.Sprintf("[stderr]\n%s[%s]\n", strings.ToValidUTF8(stderr.String(), "\uFFFD"), ended)
		return "", writ.Result{Content: text, IsError: true, Metadata: map[string]any{"driver": driver, "exit_code": exit.Code, "limit": exit.Limit}}, nil
	}
	if stdout.Cut() != "" {
		return "", writ.Result{}, writ.Fail(writ.Invalid, fmt.Sprintf("git %s says more than can be looked through at once; name fewer paths", j.verb[0]), nil)
	}
	return stdout.String(), writ.Result{}, nil
}

// filters are those that a repository defines by its configuration: git runs them on files
// that it looks at, as far as a box can execute them, and there is no switch for all.
func (r runner) filters(ctx context.Context, w writ.Writ, dir string) ([]string, writ.Result, error) {
	text, res, err := r.listed(ctx, w, job{verb: []string{"config", "--null", "--name-only", "--get-regexp", `^filter\.`}, bare: true, dir: dir})
	var out []string
	for key := range strings.SplitSeq(text, "\x00") {
		key = strings.TrimPrefix(key, "filter.")
		if last := strings.LastIndexByte(key, '.'); last >= 0 && !slices.Contains(out, key[:last]) {
			out = append(out, key[:last])
		}
	}
	return out, res, err
}

// unfiltered are the settings that leave all of them out. Where something is recorded, one
// that is required is missed, and nothing is.
func (j job) unfiltered() (pairs [][2]string) {
	for _, name := range j.filters {
		for _, what := range []string{"clean", "smudge", "process"} {
			pairs = append(pairs, [2]string{"filter." + name + "." + what, ""})
		}
		if !j.records {
			pairs = append(pairs, [2]string{"filter." + name + ".required", "false"})
		}
	}
	return pairs
}
