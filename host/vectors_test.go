package host

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestVectors holds the package to its published table, every column of every row.
func TestVectors(t *testing.T) {
	const file = "testdata/vectors.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, seen := map[string]int{}, map[string]int{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		at := fmt.Sprintf("%s:%d", file, i+1)
		columns := strings.Split(line, "\t")
		kind, inputs, want := columns[0], columns[1:len(columns)-1], columns[len(columns)-1]
		row := strings.Join(columns[:len(columns)-1], "\t")
		if first, ok := seen[row]; ok {
			t.Errorf("%s: the same row as line %d", at, first)
		}
		seen[row] = i + 1
		rows[kind]++
		for j, in := range inputs {
			if strings.HasPrefix(in, `"`) {
				if inputs[j], err = strconv.Unquote(in); err != nil {
					t.Fatalf("%s: column %d: %v", at, j+2, err)
				}
			}
		}
		check, ok := checks[kind]
		if !ok || len(inputs) != check.inputs {
			t.Fatalf("%s: unknown kind %q with %d inputs", at, kind, len(inputs))
		}
		if got := check.run(inputs); got != want {
			t.Errorf("%s: %s %q\n got %s\nwant %s", at, kind, inputs, got, want)
		}
	}
	total := 0
	for kind := range checks {
		if rows[kind] == 0 {
			t.Errorf("%s: no row of kind %q", file, kind)
		}
		total += rows[kind]
	}
	if total < 300 {
		t.Errorf("%s: %d rows, want at least 300", file, total)
	}
}

// checks is what each kind of row runs: the last column is what it returns.
var checks = map[string]struct {
	inputs int
	run    func(in []string) string
}{
	"parse":    {1, func(in []string) string { return shown(Parse(in[0])) }},
	"server":   {1, func(in []string) string { return shown(ParseServer(in[0])) }},
	"endpoint": {1, func(in []string) string { return shown(ParseEndpoint(in[0])) }},
	"url":      {1, func(in []string) string { return shown(ParseURL(in[0])) }},
	"pattern":  {1, func(in []string) string { return shown(ParsePattern(in[0])) }},
	"match":    {2, runMatch},
	"list":     {2, runList},
	"contains": {2, runContains},
	"class":    {1, runClass},
	"special":  {1, runSpecial},
}

func shown[T fmt.Stringer](v T, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return v.String()
}

func runMatch(in []string) string {
	p, err := ParsePattern(in[0])
	if err != nil {
		return "error: " + err.Error()
	}
	e, err := ParseEndpoint(in[1])
	if err != nil {
		return "error: " + err.Error()
	}
	return strconv.FormatBool(p.Match(e))
}

func runList(in []string) string {
	var list Patterns
	for s := range strings.SplitSeq(in[0], ",") {
		if s == "" {
			continue
		}
		p, err := ParsePattern(s)
		if err != nil {
			return "error: " + err.Error()
		}
		list = append(list, p)
	}
	e, err := ParseEndpoint(in[1])
	if err != nil {
		return "error: " + err.Error()
	}
	return strconv.FormatBool(list.Match(e))
}

func runContains(in []string) string {
	p, err := ParsePattern(in[0])
	if err != nil {
		return "error: " + err.Error()
	}
	q, err := ParsePattern(in[1])
	if err != nil {
		return "error: " + err.Error()
	}
	return strconv.FormatBool(p.Contains(q))
}

func runClass(in []string) string {
	if in[0] == "" {
		return string(Classify(netip.Addr{}))
	}
	addr, err := netip.ParseAddr(in[0])
	if err != nil {
		return "error: " + err.Error()
	}
	return string(Classify(addr))
}

func runSpecial(in []string) string {
	h, err := Parse(in[0])
	if err != nil {
		return "error: " + err.Error()
	}
	if reason, ok := SpecialName(h); ok {
		return reason
	}
	return "-"
}
