package display

import (
	"strconv"
	"strings"
)

// string reads the JSON string that begins here. It takes only the escapes of
// canonical form, of which each stands for one ASCII character: half a surrogate
// pair, which every reader takes for something else, cannot be written with them.
func (w *walker) string() (string, error) {
	w.at++
	rest := w.text[w.at:]
	end := strings.IndexAny(rest, `"\`)
	if rest[end] == '"' {
		w.at += end + 1
		return rest[:end], nil
	}
	var b strings.Builder
	for {
		b.WriteString(rest[:end])
		if rest[end] == '"' {
			w.at = len(w.text) - len(rest) + end + 1
			return b.String(), nil
		}
		c, size := unescape(rest[end:])
		if size == 0 {
			return "", errNotCanonical
		}
		b.WriteByte(c)
		rest = rest[end+size:]
		end = strings.IndexAny(rest, `"\`)
	}
}

// unescape is the character of the JSON escape that s begins with, and the size of
// the escape; 0 for one that canonical form does not use.
func unescape(s string) (c byte, size int) {
	const letters, meant = `"\bfnrt`, "\"\\\b\f\n\r\t"
	if i := strings.IndexByte(letters, s[1]); i >= 0 {
		return meant[i], 2
	}
	if !strings.HasPrefix(s, `\u00`) {
		return 0, 0
	}
	n, err := strconv.ParseUint(s[4:6], 16, 8)
	if err != nil || n >= ' ' {
		return 0, 0
	}
	return byte(n), 6
}
