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
	from, escaped := w.at, false
	for w.text[w.at] != '"' {
		if w.text[w.at] == '\\' {
			escaped = true
			w.at++
		}
		w.at++
	}
	quoted := w.text[from:w.at]
	w.at++
	if !escaped {
		return quoted, nil
	}
	return unquoted(quoted)
}

func unquoted(s string) (string, error) {
	var b strings.Builder
	b.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		c, size := unescape(s[at:])
		if size == 0 {
			return "", errNotCanonical
		}
		b.WriteString(s[:at])
		b.WriteByte(c)
		s = s[at+size:]
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
