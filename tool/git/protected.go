package git

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

// protected are the files, from the top of the repository, that have changed and have a
// protected name: what a box sees of them is not what is there, and what a clone brought of
// them lies in the quarantine. Those that the call names itself are its own to commit.
func (r runner) protected(ctx context.Context, w writ.Writ, dir string, paths []string) ([]string, writ.Result, error) {
	untracked := "--untracked-files=no"
	if len(paths) > 0 {
		untracked = "--untracked-files=all"
	}
	j := job{verb: []string{"status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty", untracked}, operand: paths, dir: dir}
	filters, res, err := r.filters(ctx, w, dir)
	if err != nil || res.IsError {
		return nil, res, err
	}
	j.filters = filters
	status, res, err := r.listed(ctx, w, j)
	if err != nil || res.IsError {
		return nil, res, err
	}
	return leaveOut(status, paths), writ.Result{}, nil
}

// leaveOut reads what git status says with -z: two letters, a space, and the file.
func leaveOut(status string, paths []string) []string {
	var out []string
	for line := range strings.SplitSeq(status, "\x00") {
		if len(line) > 3 && policy.WriteProtected(line[3:]) != "" && !named(line[3:], paths) {
			out = append(out, line[3:])
		}
	}
	return out
}

// named reports whether a path of the call is the protected file, or the protected
// directory that it lies in.
func named(file string, paths []string) bool {
	for at := path.Clean(file); policy.WriteProtected(at) != ""; at = path.Dir(at) {
		if slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(p, "/"+at) }) {
			return true
		}
	}
	return false
}

// pathspecs are what to add, for git's standard input: the paths of the call, or all that
// git knows, without what is left out.
func pathspecs(paths, without []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(":(literal)" + p + "\x00")
	}
	if len(paths) == 0 {
		b.WriteString(":(top)\x00")
	}
	for _, p := range without {
		b.WriteString(":(top,exclude,literal)" + p + "\x00")
	}
	return b.String()
}

// leftOut says what a commit is without.
func leftOut(files []string) string {
	const most = 10
	if len(files) == 0 {
		return ""
	}
	var names []string
	for _, f := range files[:min(most, len(files))] {
		names = append(names, fmt.Sprintf("%q", f))
	}
	if more := len(files) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("[left out of the commit, since it is protected: %s]\n", strings.Join(names, ", "))
}
