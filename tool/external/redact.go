package external

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ/secret"
)

// redactor takes credentials out of what a server answers. It knows a value as it is and
// as servers write it back: in base64 at any place of a longer text, in hexadecimal, and
// each of these percent-encoded, or escaped as in JSON or HTML, in letters of any case. It
// holds against echoes (debugging pages, errors that quote a request); a server that
// means to tell the agent a credential knows it, and can.
type redactor []string

// Redactor takes values out of texts; see redactor. The zero one takes out nothing.
type Redactor struct{ of redactor }

// NewRedactor is for values that are to be taken out. Of one with several lines it is each
// line; a text that is too short is found everywhere, and is not looked for.
func NewRedactor(values ...string) Redactor {
	var lines []string
	for _, v := range values {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				lines = append(lines, line)
			}
		}
	}
	return Redactor{newRedactor(lines...)}
}

// Clean is the text without them.
func (r Redactor) Clean(text string) string {
	if len(r.of) == 0 {
		return text
	}
	return r.of.line(text)
}

// Equal reports whether two take out the same.
func (r Redactor) Equal(o Redactor) bool { return slices.Equal(r.of, o.of) }

// newRedactor is for values, and for the texts that were made of them.
func newRedactor(values ...string) redactor {
	var r redactor
	add := func(s string) {
		if len(s) >= shortest && !slices.Contains(r, s) {
			r = append(r, s)
		}
	}
	for _, v := range values {
		add(v)
		add(hex.EncodeToString([]byte(v)))
		for shift := range 3 {
			core := base64Core(v, shift)
			add(core)
			add(strings.NewReplacer("+", "-", "/", "_").Replace(core))
		}
	}
	slices.SortFunc(r, func(a, b string) int { return len(b) - len(a) }) // the longest first
	return r
}

// shortest is how short a form may be: a shorter one is found in every text.
const shortest = 6

// base64Core is what base64 of any text has in it that contains v after a number of
// bytes that leaves shift when divided by three. The ends depend on what stands there.
func base64Core(v string, shift int) string {
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
	text = text[[]int{0, 2, 3}[shift]:]
	text = strings.TrimRight(text, "=")
	if (shift+len(v))%3 != 0 && text != "" {
		text = text[:len(text)-1]
	}
	return text
}

// clean replaces every form that begins in the first limit bytes of text, and drops what
// comes after those. Text should go on beyond the limit, so that a form across it is
// known for one.
func (r redactor) clean(text string, limit int) string {
	var b strings.Builder
	from, at := 0, 0
	for at < min(limit, len(text)) {
		n := r.match(text[at:])
		if n == 0 {
			at++
			continue
		}
		b.WriteString(text[from:at])
		b.WriteString(secret.Shown)
		at += n
		from = at
	}
	if from < at {
		b.WriteString(text[from:at])
	}
	return b.String()
}

// line is clean for a short text.
func (r redactor) line(text string) string { return r.clean(text, len(text)) }

// match is how many bytes at the beginning of text are a form, or 0.
func (r redactor) match(text string) int {
	escape := strings.IndexByte(`%\&+`, text[0]) >= 0
	for _, form := range r {
		if !escape && fold(text[0]) != fold(form[0]) {
			continue // most of them, and cheaper than to find out
		}
		if n := matchEscaped(text, form); n > 0 {
			return n
		}
	}
	return 0
}

// matchEscaped goes over a form once, and keeps every place of text it can have come to:
// a % may be one, or the beginning of an escape.
func matchEscaped(text, form string) int {
	places := []int{0}
	for i := range len(form) {
		var next []int
		for _, p := range places {
			for _, n := range escapes(text[p:], form[i]) {
				if !slices.Contains(next, p+n) {
					next = append(next, p+n)
				}
			}
			if gap := broken(text[p:]); i > 0 && gap > 0 {
				for _, n := range escapes(text[p+gap:], form[i]) {
					if !slices.Contains(next, p+gap+n) {
						next = append(next, p+gap+n)
					}
				}
			}
		}
		if len(next) == 0 {
			return 0
		}
		places = next
	}
	return slices.Max(places)
}

// broken is how many bytes at the beginning of text only break a line or set what follows
// apart, as encoders do that write so many characters a line.
func broken(text string) int {
	n := 0
	for n < len(text) && n < 64 {
		rest := text[n:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			n++
		case strings.HasPrefix(rest, `\n`), strings.HasPrefix(rest, `\r`), strings.HasPrefix(rest, `\t`), strings.HasPrefix(rest, "=\n"):
			n += 2
		case strings.HasPrefix(rest, "=\r\n"):
			n += 3
		default:
			return n
		}
	}
	return n
}

// escapes is how many bytes at the beginning of text stand for a character: itself, %XX
// once or twice, \uXXXX, \xXX, \c, or an entity of HTML.
func escapes(text string, c byte) []int {
	var out []int
	if text == "" {
		return nil
	}
	if fold(text[0]) == fold(c) {
		out = append(out, 1)
	}
	switch text[0] {
	case '%':
		for _, lead := range []string{"%", "%25", "%2525"} {
			if rest, ok := strings.CutPrefix(text, lead); ok && (hexByte(rest, 2, c) || c == ' ' && hexByte(rest, 2, '+')) {
				out = append(out, len(lead)+2)
			}
		}
	case '\\':
		for lead, digits := range map[string]int{`\u`: 4, `\U`: 8, `\x`: 2} {
			if rest, ok := strings.CutPrefix(text, lead); ok && hexByte(rest, digits, c) {
				out = append(out, len(lead)+digits)
			}
		}
		if len(text) > 1 && text[1] == c && strings.IndexByte(`/"\'`, c) >= 0 {
			out = append(out, 2)
		}
	case '&':
		if n := entity(text, c); n > 0 {
			out = append(out, n)
		}
	case '+':
		if c == ' ' {
			out = append(out, 1)
		}
	}
	return out
}

func hexByte(text string, digits int, c byte) bool {
	if len(text) < digits {
		return false
	}
	v, err := strconv.ParseUint(text[:digits], 16, 32)
	return err == nil && v < 0x80 && fold(byte(v)) == fold(c)
}

var entities = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func entity(text string, c byte) int {
	end := strings.IndexByte(text[:min(len(text), 12)], ';')
	if end < 2 {
		return 0
	}
	name := strings.ToLower(text[1:end])
	if named, ok := entities[name]; ok && named == c {
		return end + 1
	}
	number, base := strings.TrimPrefix(name, "#"), 10
	if rest, ok := strings.CutPrefix(number, "x"); ok {
		number, base = rest, 16
	}
	v, err := strconv.ParseUint(number, base, 32)
	if name[0] != '#' || err != nil || v > 0x7f || fold(byte(v)) != fold(c) {
		return 0
	}
	return end + 1
}

func fold(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
