package display

import "strings"

// widest is the most columns of a preview.
const widest = 1 << 16

// Preview is the beginning of s as safe text of one line, at most so many columns
// wide. When there is more it ends in "… (12,345 bytes)", the size of all of s,
// and never inside an escape or a character; where even that does not fit, it is
// only that.
func Preview(s string, most int) string {
	most = min(max(most, 0), widest)
	more := "… (" + counted(len(s), "byte") + ")"
	room := most - (len(more) - 1) // "…" has three bytes and at most two columns
	// A column takes 20 bytes at most, a character and its marks of 4 each, so this
	// is wider than what is shown, and what cutting there does to the last few
	// characters is not seen.
	safe := Line(s[:min(len(s), 20*most+64)])
	at, used, cut := 0, 0, 0
	for at < len(safe) && used <= most {
		u := firstUnit(safe[at:])
		at, used = at+u.size, used+u.columns
		if used <= room {
			cut = at
		}
	}
	// A whole text must not pretend to be the beginning of one.
	const spelled = "<U+2026>"
	dots := strings.LastIndex(safe, "…")
	forged := dots >= 0 && strings.HasPrefix(safe[dots:], "… (") && strings.HasSuffix(strings.TrimRight(safe, " "), ")")
	if forged {
		used += len(spelled)
	}
	switch {
	case used > most:
		return safe[:cut] + more
	case forged:
		return safe[:dots] + spelled + safe[dots+len("…"):]
	}
	return safe
}
