package display

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// traits is all that is asked about characters, looked up once for all of them: a
// megabyte of text asks a million times, and package unicode searches its tables anew
// each time.
type traits struct {
	of      [unicode.MaxRune + 1]trait
	scripts []string // their names; the first is none
}

// A trait is what a character is like: bits, and above them the number of its script.
type trait uint16

const (
	graphic     trait = 1 << iota // is shown as it is; see hidden
	stacks                        // a mark that takes no room
	widens                        // a mark that takes room
	inWord                        // invisible characters too, which would otherwise divide a word into parts of one script each
	alphabetic                    // a letter, or a number written with one: it has a script
	alnum                         // a letter or digit
	rightToLeft                   // of a script that is
	space

	scriptShift = 8
)

func (t trait) script() uint8 { return uint8(t >> scriptShift) }

// known is the traits of every character, worked out when the first one outside ASCII
// is met.
var known = sync.OnceValue(func() *traits {
	k := &traits{scripts: []string{""}}
	k.set(graphic, unicode.GraphicRanges...)
	k.clear(graphic, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, blank)
	k.of[' '] |= graphic
	k.set(inWord, unicode.L, unicode.N, unicode.M, unicode.Cf)
	k.set(alphabetic, unicode.L, unicode.Nl)
	k.set(alnum, unicode.L, unicode.Nd)
	k.set(rightToLeft, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam, unicode.Mandaic, unicode.Samaritan)
	k.set(space, unicode.White_Space)
	k.set(stacks, unicode.Mn, unicode.Me, conjoining)
	k.set(widens, unicode.Mc)
	k.nameScripts()
	return k
})

func (k *traits) set(bit trait, in ...*unicode.RangeTable) {
	for _, table := range in {
		each(table, func(r rune) { k.of[r] |= bit })
	}
}

func (k *traits) clear(bit trait, in ...*unicode.RangeTable) {
	for _, table := range in {
		each(table, func(r rune) { k.of[r] &^= bit })
	}
}

// nameScripts gives each letter its script. Letters that Unicode made for symbols or for
// another width are scripts of their own here: they look like plain ones and are not.
func (k *traits) nameScripts() {
	give := func(name string, table *unicode.RangeTable) {
		k.scripts = append(k.scripts, name)
		n := trait(len(k.scripts)-1) << scriptShift
		each(table, func(r rune) {
			if k.of[r]&alphabetic != 0 {
				k.of[r] = k.of[r]&(1<<scriptShift-1) | n
			}
		})
	}
	var names []string
	for name := range unicode.Scripts {
		if name != "Common" && name != "Inherited" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		give(strings.ReplaceAll(name, "_", " "), unicode.Scripts[name])
	}
	give("fullwidth", between(0xFF21, 0xFF5A))
	give("mathematical", between(0x1D400, 0x1D7FF))
	give("letterlike", between(0x2100, 0x218F))
}

func between(lo, hi uint32) *unicode.RangeTable {
	return &unicode.RangeTable{R32: []unicode.Range32{{Lo: lo, Hi: hi, Stride: 1}}}
}

func each(table *unicode.RangeTable, do func(rune)) {
	for _, in := range table.R16 {
		for r := rune(in.Lo); r <= rune(in.Hi); r += rune(in.Stride) {
			do(r)
		}
	}
	for _, in := range table.R32 {
		for r := rune(in.Lo); r <= rune(in.Hi); r += rune(in.Stride) {
			do(r)
		}
	}
}
