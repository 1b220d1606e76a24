package wire

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/writ-run/writ"
)

// A Field is one member of an object that AppendObject writes. The zero Field is
// refused.
type Field struct {
	key  string
	kind fieldKind
	text string
	n    int64
}

type fieldKind uint8

const (
	fieldNone fieldKind = iota
	fieldText
	fieldInt
	fieldRaw
)

// Str is a string member.
func Str(key, v string) Field { return Field{key: key, kind: fieldText, text: v} }

// Int is a number member. Beyond ±2⁵³ a JSON number no longer stands for one
// integer, and AppendObject refuses it: write such a number with Str.
func Int(key string, v int64) Field { return Field{key: key, kind: fieldInt, n: v} }

// Bool is a true or false member.
func Bool(key string, v bool) Field { return Raw(key, strconv.FormatBool(v)) }

// Raw is a member whose value is canonical already, as Canonical, Marshal and
// AppendObject make it. It is written as it is and not checked: never hand over
// anything that came from elsewhere.
func Raw(key, canonical string) Field { return Field{key: key, kind: fieldRaw, text: canonical} }

// AppendObject appends the canonical form of an object to dst. It is Marshal for
// records written with every call: no reflection, and no allocation when dst has
// room. The fields are sorted in place. An integer beyond ±2⁵³, a key given
// twice and an empty field are errors, and dst is then returned as it was.
func AppendObject(dst []byte, fields ...Field) ([]byte, error) {
	slices.SortFunc(fields, func(a, b Field) int { return compare(a.key, b.key) })
	for i, f := range fields {
		if err := f.check(); err != nil {
			return dst, err
		}
		if i > 0 && fields[i-1].key == f.key {
			return dst, f.fail("is given twice; give each key once")
		}
	}
	dst = append(dst, '{')
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, f.key), ':')
		switch f.kind {
		case fieldText:
			dst = AppendString(dst, f.text)
		case fieldInt:
			dst = strconv.AppendInt(dst, f.n, 10)
		case fieldRaw:
			dst = append(dst, f.text...)
		}
	}
	return append(dst, '}'), nil
}

func (f Field) check() error {
	const most = 1 << 53
	switch {
	case f.kind == fieldNone:
		return f.fail("has no value; make fields with Str, Int, Bool or Raw")
	case f.kind == fieldRaw && f.text == "":
		return f.fail("has an empty value; give it canonical JSON")
	case f.kind == fieldInt && (f.n > most || f.n < -most):
		return f.fail("is an integer beyond 2^53; write it as a string")
	case !utf8.ValidString(f.key):
		return f.fail("is not valid UTF-8; use keys that are") // two keys must not become one
	}
	return nil
}

func (f Field) fail(what string) *writ.Error {
	return writ.Fail(writ.Invalid, fmt.Sprintf("JSON: field %s %s", quote(f.key, mostKey), what), nil)
}

// AppendString appends s to dst as a canonical JSON string. Each byte that is
// not part of valid UTF-8 becomes U+FFFD, as with encoding/json; where two such
// texts must stay apart, use Marshal, which refuses them.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < ' ':
			dst = append(append(dst, s[from:i]...), controls[c]...)
		case c == '"' || c == '\\':
			dst = append(append(dst, s[from:i]...), '\\', c)
		case c < utf8.RuneSelf:
			i++
			continue
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size != 1 {
				i += size
				continue
			}
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
