// Package spell finds the word somebody probably meant, for errors that end with
// the next thing to do.
package spell

import "strings"

// Nearest is the known word closest to got, or "" when none is close. A word of
// which half or more would have to change is not: "x" must not suggest "*".
func Nearest(got string, known []string) string {
	best, distance := "", 3
	if len(got) <= 4 {
		distance = 2
	}
	lower := strings.ToLower(got)
	for _, k := range known {
		if d := edits(lower, strings.ToLower(k), distance); d < distance && 2*d < max(len(got), len(k)) {
			best, distance = k, d
		}
	}
	return best
}

// Hint is "; did you mean …?", or "" when no word is close.
func Hint(got string, known []string) string {
	if n := Nearest(got, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// edits is the number of insertions, deletions, replacements and swaps of
// neighbours between a and b, or limit when it is at least that.
func edits(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var before, prev, row [66]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return min(prev[len(b)], limit)
}
