package disclose

import (
	"sort"
	"strings"
)

// rare is how many letters of a word seldom follow the one before them: encoders
// have a token for what is often written, and pieces for the rest.
func rare(word string) int {
	n := 0
	for k := 1; k < len(word); k++ {
		if strings.IndexByte(follows[word[k-1]|32-'a'], word[k]|32) < 0 {
			n++
		}
	}
	return n
}

// follows is, for each letter from a to z, which ones often follow it in words that
// are one token. It was fitted to the words of code and prose in ten languages.
var follows = [26]string{
	"bcdefgilmnprstuvxy", "aejloruy", "adehklmortu", "bdeiorsy", "acdeflmnopqrstvwxy", "aefgiortu", "aehinorsu",
	"aeiotu", "abcdefglmnoprstxz", "eko", "ens", "adeilosty", "abemnopt", "acdegilnopstuy",
	"abcdfgiklmnoprstuvwx", "adehloprstu", "u", "acdegikmnorstvy", "cehikmopstu", "acehiorstuwy",
	"abcdegilmnprst", "aegio", "aehinosw", "aept", "mnopstz", "",
}

// foreign is what one character beyond ASCII costs, in hundredths.
func foreign(r rune) int {
	return scripts[sort.Search(len(scripts)-1, func(i int) bool { return r < scripts[i].below })].cost
}

// scripts holds the cost of the characters below each bound, and at the end that of
// all others. Of scripts that share a block the dearer counts.
var scripts = [...]struct {
	below rune
	cost  int
}{
	{0x0250, 95},   // Latin
	{0x0370, 150},  // phonetic signs, combining marks
	{0x0400, 100},  // Greek
	{0x0530, 55},   // Cyrillic
	{0x0590, 200},  // Armenian
	{0x0600, 115},  // Hebrew
	{0x0780, 82},   // Arabic
	{0x0900, 200},  // Thaana, N'Ko
	{0x0E00, 150},  // scripts of India
	{0x0E80, 90},   // Thai
	{0x10A0, 300},  // Lao, Tibetan, Burmese
	{0x1100, 210},  // Georgian
	{0x1E00, 300},  // Ethiopic, Khmer, Mongolian
	{0x2000, 130},  // Vietnamese, polytonic Greek
	{0x2070, 110},  // dashes and quotation marks
	{0x2600, 160},  // arrows, mathematics, frames
	{0x2E80, 250},  // symbols
	{0x3100, 100},  // kana
	{0x4E00, 250},  // rarer Chinese
	{0xA000, 120},  // Chinese
	{0xAC00, 300},  // Yi and others
	{0xD7B0, 115},  // Korean
	{0xFE00, 250},  // private use, presentation forms
	{0xFE10, 150},  // variation selectors
	{0xFF00, 250},  // more presentation forms
	{0x10000, 120}, // full width forms; what is not UTF-8
	{0x1F000, 400}, // ancient scripts
	{0x1FB00, 250}, // emoji
	{0, 400},
}
