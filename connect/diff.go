package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// around is how many lines of the rest are shown on either side of a change.
const around = 3

// Diff shows what changes, in the manner of diff -u. Values that do not change are left
// out: other servers' tokens stand in these files, and logs are read by others. JSON that
// has much on one line is shown with its members on lines of their own.
func Diff(before, after []byte) string {
	a, b := linesOf(before), linesOf(after)
	head, tail := same(a, b)
	if gone, come := a[head:len(a)-tail], b[head:len(b)-tail]; len(gone) == 1 && len(come) == 1 && (len(a) == 1 && len(b) == 1 || long(gone[0], come[0])) {
		was, err1 := spread(before)
		is, err2 := spread(after)
		if err1 == nil && err2 == nil {
			head, tail = same(was, is)
			return "(on one line in the file, and shown on several)\n" + hunk(was, is, head, tail)
		}
	}
	return hunk(a, b, head, tail)
}

// same counts the lines that are the same at the beginning and at the end.
func same(a, b []string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

func spread(text []byte) ([]string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, bytes.TrimSpace(bytes.TrimPrefix(text, bom)), "", "  ")
	return linesOf(b.Bytes()), err
}

func hunk(a, b []string, head, tail int) string {
	from, until := max(0, head-around), min(tail, around)
	gone, come := quiet(a[head:len(a)-tail], b[head:len(b)-tail])
	var out strings.Builder
	fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", from+min(1, len(a)), len(a)-tail+until-from, from+min(1, len(b)), len(b)-tail+until-from)
	show := func(mark string, lines []string) {
		for _, l := range lines {
			out.WriteString(mark + strings.TrimSuffix(l, "\r") + "\n")
		}
	}
	show(" ", hideAll(a[from:head]))
	show("-", gone)
	show("+", come)
	show(" ", hideAll(a[len(a)-tail:len(a)-tail+until]))
	return out.String()
}

func linesOf(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// quiet takes from changed lines what does not change in them: all but a comma, or all
// but a piece of a file without lines.
func quiet(gone, come []string) (_, _ []string) {
	gone, come = append([]string(nil), gone...), append([]string(nil), come...)
	if len(gone) == 0 || len(come) == 0 {
		return gone, come
	}
	if g, c := strings.TrimSuffix(gone[0], "\r"), strings.TrimSuffix(come[0], "\r"); g+"," == c || g == c+"," {
		gone[0], come[0] = hide(g), hide(c)
	}
	if len(gone) == 1 && len(come) == 1 && long(gone[0], come[0]) {
		gone[0], come[0] = middle(gone[0], come[0])
	}
	return gone, come
}

func long(a, b string) bool { return max(len(a), len(b)) > 120 }

func middle(a, b string) (string, string) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for head > 0 && head < len(a) && !utf8.RuneStart(a[head]) {
		head--
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(a[len(a)-tail]) {
		tail--
	}
	return "…" + a[head:len(a)-tail] + "…", "…" + b[head:len(b)-tail] + "…"
}

func hideAll(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = hide(l)
	}
	return out
}

var (
	bare = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*("[^"\\]*"\s*:\s*|[\w.-]+\s*=\s*)?[][{}, \t\r]*$|^\s*\[[\w. -]+\]\s*$`)
	})
	keyed = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\s*(?:"[^"\\]*"\s*:|[\w.-]+\s*=)\s*)\S.*?([,{[]?)\s*$`)
	})
	space = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*`) })
)

// hide keeps a line's shape and key.
func hide(line string) string {
	if bare().MatchString(line) {
		return line
	}
	if m := keyed().FindStringSubmatch(line); m != nil {
		return m[1] + "…" + m[2]
	}
	end := ""
	if strings.HasSuffix(line, ",") {
		end = ","
	}
	return space().FindString(line) + "…" + end
}
