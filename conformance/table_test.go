package main

import (
	"strings"
	"testing"
)

// What the verdict is about: one cell each, against the same table where all is well.
func TestJudge(t *testing.T) {
	scored := oneRun{version: "v", scored: true}
	good, bad := result{passed: 2}, result{passed: 1, failed: 1, why: []string{"it broke"}}
	for _, c := range []struct {
		what                string
		direct, behind, own result
		passed              bool
		expected            map[string]map[string]string
		wants               string // in the error; empty: none
	}{
		{what: "all is well", direct: good, behind: good, own: good, passed: true},
		{what: "worse behind", direct: good, behind: bad, own: good, passed: true, wants: "behind: v/s fails:\n    it broke"},
		{what: "as bad behind as directly", direct: bad, behind: bad, own: good, passed: true},
		{what: "own fails", direct: bad, behind: good, own: bad, passed: true, wants: "own: v/s fails"},
		{what: "as expected", direct: good, behind: bad, own: good, passed: true, expected: map[string]map[string]string{"behind": {"v/s": "why"}}},
		{what: "it passes all the same", direct: good, behind: good, own: good, passed: true, expected: map[string]map[string]string{"behind": {"v/s": "why"}}, wants: "behind: v/s passes; take it out"},
		{what: "there is none", direct: good, behind: good, own: good, passed: true, expected: map[string]map[string]string{"own": {"v/t": "why"}}, wants: "own: there is no v/t"},
		{what: "something required", direct: good, behind: good, own: good, wants: "own: a scenario that v requires fails"},
	} {
		tab := table{expected: c.expected}
		tab.add("direct", scored, map[string]result{"s": c.direct}, true)
		tab.add("behind", scored, map[string]result{"s": c.behind}, true)
		tab.add("own", scored, map[string]result{"s": c.own}, c.passed)
		switch err := tab.judge(); {
		case c.wants == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: got %v, want %q", c.what, err, c.wants)
		}
	}
	tab := table{}
	tab.add("direct", scored, map[string]result{"s": good}, true)
	if err := tab.judge(); err == nil || !strings.Contains(err.Error(), "behind: v/s did not run") {
		t.Errorf("a column that did not run: %v", err)
	}
}
