package display

import (
	"testing"
	"unicode"
)

// TestTraits: the table says what package unicode says, of every character.
func TestTraits(t *testing.T) {
	k := known()
	if len(k.scripts) > 255 {
		t.Fatalf("%d scripts do not fit into a byte", len(k.scripts))
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		is := k.of[r]
		for what, has := range map[trait]bool{
			graphic:     r == ' ' || unicode.IsGraphic(r) && !unicode.In(r, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, blank),
			stacks:      unicode.In(r, unicode.Mn, unicode.Me) || 0x1160 <= r && r <= 0x11FF || 0xD7B0 <= r && r <= 0xD7FF,
			widens:      unicode.Is(unicode.Mc, r),
			inWord:      unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.In(r, unicode.M, unicode.Cf),
			alphabetic:  unicode.IsLetter(r) || unicode.Is(unicode.Nl, r),
			alnum:       unicode.IsLetter(r) || unicode.IsDigit(r),
			rightToLeft: unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam, unicode.Mandaic, unicode.Samaritan),
			space:       unicode.IsSpace(r),
		} {
			if (is&what != 0) != has {
				t.Fatalf("%U: trait %#x is %v", r, what, !has)
			}
		}
	}
	for r, want := range map[rune]string{'a': "Latin", 'é': "Latin", 'р': "Cyrillic", '漢': "Han", 'ｐ': "fullwidth", '𝗉': "mathematical", '\u212A': "letterlike", '1': "", 'µ': "", '\u0301': "", '።': "", 'አ': "Ethiopic"} {
		if got := k.scripts[k.of[r].script()]; got != want {
			t.Errorf("%c is %q, not %q", r, got, want)
		}
	}
}
