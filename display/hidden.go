package display

import (
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a character is never shown as it is, wherever it stands.
//
// Whatever is not graphic is hidden: controls, format characters (bidi controls,
// joiners, tags), line and paragraph separators, private use, surrogates, and code
// points this Go does not know. Format characters that some fonts draw are hidden
// too, because terminals give them no room.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r != '\n' && r != '\t' && (r < ' ' || r == 0x7F)
	}
	return known().of[r]&graphic == 0
}

// blank is what Unicode counts as a letter, mark or symbol and draws as nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // braille without dots
		{Lo: 0xFFFC, Hi: 0xFFFC, Stride: 1}, // stands for an object that is not there
	},
	R32: []unicode.Range32{
		{Lo: 0x1107F, Hi: 0x1107F, Stride: 1}, // Brahmi number joiner
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // Egyptian blanks
		{Lo: 0x16FE4, Hi: 0x16FE4, Stride: 1}, // Khitan filler
		{Lo: 0x1D159, Hi: 0x1D159, Stride: 1}, // null notehead
	},
}

// nature says in a word or two why a spelled-out character is one.
func nature(r rune) string {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return "reorders text"
	case unicode.IsControl(r):
		return "control"
	case unicode.Is(unicode.Zs, r):
		return "unusual space"
	case unicode.In(r, unicode.Zl, unicode.Zp):
		return "line break"
	case unicode.Is(unicode.Co, r):
		return "private use"
	case !hidden(r):
		return "mark without its letter, or one too many on it"
	}
	return "invisible"
}

// A mark is drawn on or beside the character before it.
type mark uint8

const (
	noMark  mark = iota
	stacked      // takes no room, so any number fit in one place
	spacing      // takes room
)

func markOf(r rune) mark {
	if r < 0x300 {
		return noMark
	}
	return markIn(known().of[r])
}

func markIn(t trait) mark {
	switch {
	case t&stacks != 0:
		return stacked
	case t&widens != 0:
		return spacing
	}
	return noMark
}

// conjoins reports whether r is the vowel or the end of a Hangul syllable, a letter
// that terminals draw on the one before it.
func conjoins(r rune) bool { return unicode.Is(conjoining, r) }

var conjoining = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x1160, Hi: 0x11FF, Stride: 1}, {Lo: 0xD7B0, Hi: 0xD7FF, Stride: 1}}}
