package git

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ"
)

// A branch is the name of one that git cannot take for anything else: no option, no
// refspec, no expression.
type branch string

// checkName refuses what git-check-ref-format does, and all that is not plain text.
func checkName(argument, s string) (branch, error) {
	bad := s == "" || len(s) > 200 || strings.Trim(s, nameChars+"/+=#") != "" || s[0] == '-' || s[0] == '+' || s[0] == '/' || s == "HEAD" ||
		strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".") || strings.Contains(s, "..") || strings.Contains(s, "//")
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "-") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("%s is not a name of git's; write a plain one such as main or topic/parser", argument), nil)
	}
	return branch(s), nil
}

// maybeName is checkName of an argument that can be left out.
func maybeName(argument, s string) (branch, error) {
	if s == "" {
		return "", nil
	}
	return checkName(argument, s)
}

// checkRevision takes a commit's name: a branch, a tag, a hash, HEAD, and those before it
// (HEAD~2, main^). A range is two of them.
func checkRevision(argument, s string) (string, error) {
	base := strings.TrimRight(s, "~^0123456789")
	if base == "" || base == s || !strings.ContainsAny(s[len(base):], "~^") {
		base = s
	}
	if base == "HEAD" {
		return s, nil
	}
	if _, err := checkName(argument, base); err != nil {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("%s is not a name of a commit; write a branch, a tag, a hash, HEAD or HEAD~2", argument), nil)
	}
	return s, nil
}
